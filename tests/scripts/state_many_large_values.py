import asyncio

text = "x" * 1_000_000
await asyncio.gather(*(state.set(f"k{index}", text) for index in range(12)))
return len(await state.keys())
