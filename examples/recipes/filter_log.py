# Filters a long answer where it is: a log of any length goes into the script, ten counts come out.
import re
from collections import Counter

log = await tools.files.read_text_file(path=inputs["path"])
lines = log["content"].splitlines()
errors = [line.split(" ERROR ", 1)[1] for line in lines if " ERROR " in line]
# Messages that differ in their numbers only are one kind.
kinds = Counter(re.sub(r"\d+", "N", message) for message in errors)
{"lines": len(lines), "errors": len(errors), "kinds": dict(kinds.most_common(10))}
