from mcp_tools.mock import ecko

await ecko()
