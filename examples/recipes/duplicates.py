# Finds files with the same content, by their hashes. Contents and hashes stay in the script.
import hashlib
from collections import defaultdict

found = await tools.files.search_files(path=inputs["directory"], pattern="**")
by_hash = defaultdict(list)


async def add(path):
    try:
        file = await tools.files.read_text_file(path=path)
    except McpToolError:
        return  # A directory.
    by_hash[hashlib.sha256(file["content"].encode()).hexdigest()].append(path.rsplit("/", 1)[1])


await asyncio.gather(*(add(path) for path in found["content"].splitlines()))
sorted(sorted(names) for names in by_hash.values() if len(names) > 1)
