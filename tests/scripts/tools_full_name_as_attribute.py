echo = tools.mcp__mock__echo


def half():
    try:
        return tools["__".join(["mcp", "mock"])]
    except McpToolError as error:
        return error.code


return [
    await tools.mcp__mock__echo(a=1),
    await tools["mcp__other_server__read_file"]({"b": 2}),
    await echo(c=3),
    echo.__name__,
    half(),
    sorted(tools),
]
