for attempt in range(3):
    try:
        return await mock.limited()
    except McpToolError as error:
        if error.code not in ("RATE_LIMIT_EXCEEDED", "TIMEOUT"):
            raise
