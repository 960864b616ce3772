from mcp import runtime

return await runtime.query_tool_docs("mock", "ecko")
