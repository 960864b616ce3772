import asyncio


async def look(name):
    await mock.fail(message=f"no {name}")


async def main():
    async with asyncio.TaskGroup() as group:
        group.create_task(look("table"))
        group.create_task(asyncio.sleep(60))


await main()
