try:
    await mock.fail(message="no")
except McpToolError as error:
    return error.code
else:
    return "no error"
