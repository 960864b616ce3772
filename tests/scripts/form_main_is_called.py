async def main(i):
    return i["n"]


y = 9
