# Groups the commits of a repository by the part that their subject names: `server: faster` is about `server`.
import re
from itertools import groupby

log = await tools.git.git_log(repo_path=inputs["repository"], max_count=inputs.get("commits", 100))
subjects = re.findall(r"^Message: (.*)$", log, re.MULTILINE)
parts = sorted(subject.partition(": ")[::2] for subject in subjects if ": " in subject)
lines = []
for part, changes in groupby(parts, key=lambda pair: pair[0]):
    lines.append(f"## {part}")
    lines += [f"- {change}" for _, change in changes]
print("\n".join(lines))
{"commits": len(subjects), "parts": len({part for part, _ in parts})}
