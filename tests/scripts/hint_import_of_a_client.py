from mcp import ClientSession
return 1
