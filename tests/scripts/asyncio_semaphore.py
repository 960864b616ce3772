import asyncio

semaphore = asyncio.Semaphore(2)
running = most = 0


async def limited(i):
    global running, most
    async with semaphore:
        running += 1
        most = max(most, running)
        await mock.sleep(ms=5)
        running -= 1
    return i


return [await asyncio.gather(*map(limited, range(6))), most]
