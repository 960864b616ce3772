import asyncio

return {"task": asyncio.create_task(mock.echo(a=1))}
