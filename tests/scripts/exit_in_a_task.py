import asyncio
import sys


async def stop():
    sys.exit("from a task")


await asyncio.gather(stop(), asyncio.sleep(60))
