import asyncio

task = asyncio.create_task(asyncio.sleep(60))
await asyncio.sleep(0)
task.cancel()
await task
