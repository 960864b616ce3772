return await mcp.callTool("mock", "echo", { n: 1 });
