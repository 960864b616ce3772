return [
    await call_mcp_tool("mcp__mock__echo", {"a": 1}),
    await call_mcp_tool("mcp__other_server__read_file"),
    await call_mcp_tool("mock.echo", {"b": 2}),
]
