await mcp.run("absent")
