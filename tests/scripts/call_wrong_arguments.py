# What is no dict beside keywords: an answer of `call_tool`, which never raises for a mistake, and an error elsewhere.
shown = [call_tool("demo", "echo", "text", a=1), call_tool("demo", "echo", [], a=1)]
for call in (
    lambda: call_mcp_tool("demo.echo", 3, a=1),
    lambda: call_mcp_tool_sync("demo.echo", ["x"], a=1),
):
    try:
        answer = call()
        shown.append(answer if not hasattr(answer, "__await__") else await answer)
    except TypeError as error:
        shown.append(str(error))
return shown
