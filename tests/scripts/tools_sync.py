return [
    call_mcp_tool_sync("mcp__mock__echo", {"a": 1}),
    call_mcp_tool_sync("mock.echo", b=2),
    [tool["name"] for tool in discover_mcp_tools_sync("image")],
    [tool["name"] for tool in search_tools_sync("counts its calls", limit=1)],
    get_tool_schema_sync("mock.echo")["name"],
    get_tool_schema_sync("mock.nope"),
]
