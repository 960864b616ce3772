from mcp import runtime

return await runtime.list_tools()
