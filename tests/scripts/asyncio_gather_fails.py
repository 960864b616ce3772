import asyncio


async def look(name):
    return await mock.fail(message=f"no {name}")


await asyncio.gather(mock.echo(a=1), look("table"))
