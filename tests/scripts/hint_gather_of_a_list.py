import asyncio

calls = [asyncio.sleep(0) for _ in range(2)]
await asyncio.gather(calls)
