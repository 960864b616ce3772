import asyncio

tasks = {asyncio.create_task(mock.sleep(ms=ms)) for ms in (1, 60_000)}
done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
for task in pending:
    task.cancel()
return [[task.result() for task in done], len(pending)]
