import asyncio

await asyncio.get_running_loop().create_future()
