return [
    await call_mcp_tool("mcp__mock__echo", a=1),
    await call_mcp_tool("mcp__mock__echo", {"a": 1}, b=2),
    await call_mcp_tool(name="mock.echo", params={"c": 3}),
    call_tool("mock", "echo", a=1),
    call_tool(server="mock", tool="echo", args={"d": 4}),
    call_tools([{"server": "mock", "tool": "echo", "arguments": {"e": 5}}]),
]
