def load(n):
    return call_mcp_tool_sync("mock.echo", {"n": n})["n"]


list(map(load, inputs["list"]))
