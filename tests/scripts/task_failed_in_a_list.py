import asyncio


async def work(number):
    if number == 2:
        raise ValueError(f"number {number} does not work")


tasks = [asyncio.create_task(work(number)) for number in range(4)]
await asyncio.sleep(0)
"done"
