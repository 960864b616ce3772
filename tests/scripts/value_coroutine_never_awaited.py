async def look():
    return 1


look()
return "done"
