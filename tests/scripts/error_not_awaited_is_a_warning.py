import asyncio


async def fail():
    raise ValueError("not handled")


first = asyncio.create_task(fail())
second = asyncio.create_task(mock.fail(message="nor here"))
await mock.sleep(ms=5)
return "done"
