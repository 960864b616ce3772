import asyncio


async def main():
    return (await mock.echo(a=1))["a"]


loop = asyncio.get_event_loop()
first = loop.run_until_complete(main())
other = asyncio.new_event_loop()
second = other.run_until_complete(main())
other.close()
[first, second]
