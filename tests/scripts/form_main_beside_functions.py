async def main():
    return await sub()


async def sub():
    return 8
