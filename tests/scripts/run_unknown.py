await mcp.run("nobody")
