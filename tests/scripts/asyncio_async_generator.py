import asyncio

closed = []


async def pages():
    try:
        for page in range(10):
            await asyncio.sleep(0)
            yield await mock.echo(page=page)
    finally:
        closed.append(True)


first = []
async for answer in pages():
    first.append(answer["page"])
    if len(first) == 3:
        break
rest = [answer["page"] async for answer in pages() if answer["page"] > 7]
return [first, rest]
