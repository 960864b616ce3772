const error = await tools.mock.hang({}, { timeoutMs: 300 }).catch((error) => error);
const quick = await tools.mock.echo({ a: 1 }, { timeoutMs: 60_000 });
return [error.code, error.message, error.server, error.tool, quick];
