# Makes a table of a repository's commits by author and day. The person gets it as CSV; the model gets its size.
import csv
import io
import re
from collections import Counter

log = await tools.git.git_log(repo_path=inputs["repository"], max_count=1000)
authors = re.findall(r"^Author: (.*)$", log, re.MULTILINE)
days = re.findall(r"^Date: (\d{4}-\d{2}-\d{2})", log, re.MULTILINE)
counts = Counter(zip(days, authors, strict=True))

table = io.StringIO()
writer = csv.writer(table)
writer.writerow(["day", "author", "commits"])
writer.writerows([*key, count] for key, count in sorted(counts.items()))
emit({"type": "resource", "resource": {"uri": "file:///commits.csv", "mimeType": "text/csv", "text": table.getvalue()}})
{"rows": len(counts), "commits": len(days)}
