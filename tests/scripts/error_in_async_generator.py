async def numbers():
    yield 1
    raise LookupError("no more")


total = 0
async for number in numbers():
    total += number
total
