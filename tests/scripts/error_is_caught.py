try:
    await mock.fail(message="no such file")
except McpToolError as error:
    return {
        "isToolError": isinstance(error, McpToolError),
        "isError": isinstance(error, Exception),
        "name": type(error).__name__,
        "server": error.server,
        "tool": error.tool,
        "code": error.code,
        "message": error.message,
        "content": error.content,
        "stack": f"{type(error).__name__}: {error}",
    }
