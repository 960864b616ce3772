# Handles failed calls by their code: what can be left out, what is worth another way, and what is a mistake.
read, skipped = [], {}
for path in inputs["paths"]:
    try:
        read.append((await tools.files.read_text_file(path=path))["content"])
    except McpToolError as error:
        match error.code:
            case "TOOL_ERROR":  # The tool's own word: no such file, not allowed, …
                skipped[path] = error.message.splitlines()[0]
            case "RESULT_TOO_LARGE":  # A part is better than nothing.
                read.append((await tools.files.read_text_file(path=path, head=100))["content"])
                skipped[path] = "only the first 100 lines"
            case _:  # INVALID_ARGUMENTS, TOOL_NOT_FOUND: the script is wrong. UPSTREAM_UNAVAILABLE: nothing will work.
                raise
{"read": len(read), "letters": len("".join(read)), "skipped": skipped}
