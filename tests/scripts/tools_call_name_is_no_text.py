await call_mcp_tool(7)
