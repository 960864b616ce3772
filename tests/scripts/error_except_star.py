import asyncio

seen = []
try:
    async with asyncio.TaskGroup() as group:
        group.create_task(mock.fail(message="one"))
        group.create_task(asyncio.sleep(60))
except* McpToolError as group:
    seen += [error.message for error in group.exceptions]
except* ValueError:
    seen.append("not this")
return seen
