await mcp.run("absent");
