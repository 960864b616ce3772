    )
early = 1
async def wrapper():
