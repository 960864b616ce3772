await mcp.run("nobody");
