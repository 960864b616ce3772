import asyncio


async def attempt(action):
    try:
        return await action
    except OSError as error:
        return str(error)


return [
    await attempt(asyncio.create_subprocess_exec("ls")),
    await attempt(asyncio.create_subprocess_shell("ls")),
]
