failed = None
try:
    await tools.mock.hang({}, {"timeoutMs": 300})
except McpToolError as error:
    failed = error
quick = await tools.mock.echo({"a": 1}, {"timeout": 60})
[failed.code, failed.message, failed.server, failed.tool, quick]
