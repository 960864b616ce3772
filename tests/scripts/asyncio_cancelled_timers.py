import asyncio


async def quick():
    await asyncio.sleep(0)


# In front of all other timers, so that those are not at the head of the queue when they are cancelled.
first = asyncio.create_task(asyncio.sleep(20))
for _ in range(1000):
    await asyncio.wait_for(quick(), 1000)
len(asyncio.get_running_loop()._scheduled) < 200
