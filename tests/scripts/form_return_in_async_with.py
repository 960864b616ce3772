import asyncio

async with asyncio.timeout(5):
    return await mock.echo(a=1)
