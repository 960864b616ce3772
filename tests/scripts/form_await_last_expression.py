import asyncio

await asyncio.sleep(0, [1, 2])
