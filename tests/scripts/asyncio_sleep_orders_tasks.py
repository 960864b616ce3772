import asyncio
import time

order = []


async def late(name, seconds):
    await asyncio.sleep(seconds)
    order.append(name)


started = time.monotonic()
await asyncio.gather(late("c", 0.06), late("a", 0.01), late("b", 0.03))
return [order, 0.055 < time.monotonic() - started < 1, await asyncio.sleep(0, "result")]
