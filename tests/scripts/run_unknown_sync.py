try:
    mcp.run_sync("absent")
except McpToolError as error:
    return [error.code, str(error)]
