return mcp_servers["mokk"]
