cyclic = {}
cyclic["self"] = cyclic
deep = []
for _ in range(200):
    deep = [deep]
messages = []
for args in ("text", 1, [1], True, "text", {"n": object()}, cyclic, {"deep": deep}):
    try:
        messages.append(await mock.echo(args))
    except McpToolError as error:
        messages.append([type(error).__name__, error.code, str(error).split("\n")[0]])
messages += [await mock.echo(), await mock.echo(None), await mock.echo({"d": "1970-01-01T00:00:00.000Z"})]
return messages
