import asyncio

order = []
for next_done in asyncio.as_completed([mock.sleep(ms=60, i=0), mock.sleep(ms=5, i=1), mock.sleep(ms=30, i=2)]):
    order.append((await next_done)["i"])
async for task in asyncio.as_completed([asyncio.create_task(mock.sleep(ms=1, i=3))]):
    order.append(task.result()["i"])
return order
