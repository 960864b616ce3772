import asyncio

queue = asyncio.Queue(maxsize=2)
seen = []


async def work(worker):
    while True:
        number = await queue.get()
        seen.append((await mock.echo(n=number))["n"])
        queue.task_done()


workers = [asyncio.create_task(work(i)) for i in range(3)]
for number in range(6):
    await queue.put(number)
await queue.join()
for worker in workers:
    worker.cancel()
await asyncio.gather(*workers, return_exceptions=True)
return [sorted(seen), all(worker.cancelled() for worker in workers)]
