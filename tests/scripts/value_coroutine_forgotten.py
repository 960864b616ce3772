async def look():
    return 1


return {"rows": [look()]}
