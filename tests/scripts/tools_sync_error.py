def load():
    return call_mcp_tool_sync("mock.fail", {"message": "no"})


load()
