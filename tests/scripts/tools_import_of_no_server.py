from mcp_tools import mokk
