import asyncio


async def fail():
    raise ValueError("nobody listens")


first = asyncio.create_task(fail())
second = asyncio.create_task(mock.fail(message="nor here"))
await mock.sleep(ms=5)
return "done"
