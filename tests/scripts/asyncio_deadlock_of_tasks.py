import asyncio

event = asyncio.Event()


async def wait_for_it():
    await event.wait()


await asyncio.gather(wait_for_it(), wait_for_it())
