try:
    await mock.limited()
except McpToolError as error:
    return [error.code, error.retry_after_ms]
