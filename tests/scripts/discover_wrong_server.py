return await discover_mcp_tools(server="mokk")
