import mcp

return [await mcp.servers(), mcp.servers_sync(), mcp.McpToolError is McpToolError, mcp.tools is tools]
