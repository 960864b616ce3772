import asyncio

async with asyncio.TaskGroup() as group:
    tasks = [group.create_task(mock.echo(i=i)) for i in range(3)]
return [task.result()["i"] for task in tasks]
