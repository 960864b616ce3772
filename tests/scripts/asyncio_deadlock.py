import asyncio


async def consumer(queue):
    return await queue.get()


async def main():
    queue = asyncio.Queue()
    return await consumer(queue)


await main()
