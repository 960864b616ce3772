import asyncio

async with asyncio.timeout(5):
    first = await mock.echo(a=1)
try:
    async with asyncio.timeout(0.3):
        await mock.hang()
except TimeoutError:
    second = "late"
return [first, second]
