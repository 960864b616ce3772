from mcp import runtime

return await runtime.search_tool_docs("image", detail="everything")
