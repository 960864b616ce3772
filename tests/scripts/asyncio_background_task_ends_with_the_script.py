import asyncio


async def forever():
    try:
        while True:
            await asyncio.sleep(0.001)
    finally:
        print("ended")


task = asyncio.create_task(forever())
await asyncio.sleep(0.01)
return "done"
