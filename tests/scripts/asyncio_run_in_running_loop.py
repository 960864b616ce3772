import asyncio


async def main():
    return 1


await asyncio.sleep(0)
asyncio.run(main())
