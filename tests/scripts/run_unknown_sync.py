try:
    mcp.run_sync("nobody")
except McpToolError as error:
    return [error.code, str(error)]
