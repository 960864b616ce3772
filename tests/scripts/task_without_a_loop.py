import asyncio


async def work():
    return 1


task = asyncio.create_task(work())
