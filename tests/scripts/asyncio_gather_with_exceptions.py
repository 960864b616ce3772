import asyncio

results = await asyncio.gather(
    mock.echo(a=1), mock.fail(message="one"), mock.limited(), return_exceptions=True
)
return [result if isinstance(result, dict) else [type(result).__name__, result.code] for result in results]
