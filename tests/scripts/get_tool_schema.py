return [
    await get_tool_schema("mcp__mock__wrapped"),
    await get_tool_schema("mcp__mock__nope"),
    await get_tool_schema("mcp__nope__echo"),
    await get_tool_schema("nonsense"),
    (await get_tool_schema("mock.echo"))["annotations"],
]
