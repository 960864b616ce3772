import asyncio

seen = await asyncio.gather(*(state.update("sum", lambda sum, number=number: sum + number, 0) for number in range(200)))


async def add(items):
    items.append(await state.get("sum"))
    return items


items = await state.update("list", add, [])
state.update_sync("list", lambda items: [*items, "more"])
first = await state.update("first", lambda nothing: [nothing])
return {"last": seen[-1], "sum": await state.get("sum"), "list": items, "both": await state.get("list"), "first": first}
