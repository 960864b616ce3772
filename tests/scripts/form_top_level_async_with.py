from contextlib import asynccontextmanager


@asynccontextmanager
async def opened(name):
    print("open", name)
    try:
        yield name.upper()
    finally:
        print("close", name)


async with opened("a") as a, opened("b") as b:
    result = [a, b]
result
