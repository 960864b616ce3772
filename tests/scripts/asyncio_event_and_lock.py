import asyncio

event, lock, condition = asyncio.Event(), asyncio.Lock(), asyncio.Condition()
order = []


async def wait_for_it():
    await event.wait()
    async with lock:
        order.append("woken")
    async with condition:
        condition.notify_all()


task = asyncio.create_task(wait_for_it())
async with lock:
    event.set()
    await asyncio.sleep(0.01)
    order.append("first")
async with condition:
    await condition.wait_for(lambda: "woken" in order)
return order
