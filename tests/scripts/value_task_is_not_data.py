import asyncio

await asyncio.sleep(0)
return {"task": asyncio.create_task(asyncio.sleep(60))}
