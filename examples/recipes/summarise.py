# Summarizes every file of a directory with a language model. The files stay in the script; one line for each comes out.
schema = {
    "type": "object",
    "properties": {"summary": {"type": "string"}, "audience": {"enum": ["users", "developers"]}},
    "required": ["summary", "audience"],
}


async def summarise(path):
    page = await tools.files.read_text_file(path=path)
    question = f"Summarize this page in one sentence, and say who it is for:\n\n{page['content'][:20_000]}"
    answer = await llm.ask(question, schema=schema, max_tokens=100)
    return {"file": path.rsplit("/", 1)[1], **answer}


found = await tools.files.search_files(path=inputs["directory"], pattern=inputs.get("pattern", "*.md"))
paths = sorted(path for path in found["content"].splitlines() if path.startswith("/"))
await asyncio.gather(*(summarise(path) for path in paths))
