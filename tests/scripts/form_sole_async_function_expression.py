async def times_ten(i: dict):
    return i["n"] * 10
