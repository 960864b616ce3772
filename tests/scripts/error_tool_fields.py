errors = []
for call in (mock.fail(message="no"), mock.limited(), mock.unavailable(), mock.nope(), tools.mock["ecco"]()):
    try:
        await call
    except McpToolError as error:
        fields = [error.server, error.tool, error.code, error.message, error.content, error.retry_after_ms]
        errors.append([*fields, str(error), repr(error)])
return errors
