import asyncio

results = await asyncio.gather(*(state.set("k", index) for index in range(10_000)), return_exceptions=True)
return [results.count(None), await state.get("k")]
