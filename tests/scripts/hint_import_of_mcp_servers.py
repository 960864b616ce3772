from mcp.servers.wiki import search
return await search(query="x")
