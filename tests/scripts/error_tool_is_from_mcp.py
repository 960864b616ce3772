from mcp import McpToolError as Imported

try:
    await mock.fail(message="no")
except Imported as error:
    return [Imported is McpToolError, isinstance(error, Exception), type(error).__module__]
