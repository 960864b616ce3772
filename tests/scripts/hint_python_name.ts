return await call_mcp_tool("mcp__mock__echo", {});
