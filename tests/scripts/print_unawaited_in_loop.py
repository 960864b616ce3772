async def save(n):
    return n


for n in range(2):
    save(n)
return "done"
