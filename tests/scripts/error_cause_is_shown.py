try:
    await mock.unavailable()
except McpToolError as cause:
    raise RuntimeError("the report could not be made") from cause
