for _ in range(1_100):
    await state.get("k")
return "more than 1,000 calls"
