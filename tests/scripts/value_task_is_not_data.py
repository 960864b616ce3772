import asyncio

await asyncio.sleep(0)
return {"task": asyncio.create_task(mock.echo(a=1))}
