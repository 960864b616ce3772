# Counts the words of every Markdown file below a directory, four files at a time.
options = inputs or {}
found = await tools.files.search_files(path=options.get("directory", "."), pattern="**/*.md")
paths = [path for path in found["content"].splitlines() if path.startswith("/")]
limit = asyncio.Semaphore(options.get("atOnce", 4))


async def count(path):
    async with limit:
        file = await tools.files.read_text_file(path=path)
    return {"path": path, "words": len(file["content"].split())}


counts = await asyncio.gather(*(count(path) for path in paths))
counts = sorted(counts, key=lambda file: -file["words"])
{"files": len(counts), "words": sum(file["words"] for file in counts), "longest": counts[:3]}
