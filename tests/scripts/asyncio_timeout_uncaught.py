import asyncio


async def patient():
    async with asyncio.timeout(0.01):
        await asyncio.sleep(60)


await patient()
