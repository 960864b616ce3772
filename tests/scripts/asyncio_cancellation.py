import asyncio

steps = []


async def patient():
    try:
        await mock.hang()
    except asyncio.CancelledError:
        steps.append("cancelled")
        raise
    finally:
        await asyncio.sleep(0.001)
        steps.append("cleaned up")


task = asyncio.create_task(patient())
await asyncio.sleep(0.3)
task.cancel("enough")
try:
    await task
except asyncio.CancelledError as error:
    steps.append(str(error))
return [steps, task.cancelled()]
