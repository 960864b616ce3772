async def numbers():
    for number in range(3):
        yield number


seen = []
async for number in numbers():
    seen.append(number)
seen
