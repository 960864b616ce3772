return { found: callMCPTool("mcp__mock__echo", { a: 1 }) };
