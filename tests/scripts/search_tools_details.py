return [
    await search_tools("image", detail="names"),
    await search_tools("image", detail="descriptions"),
    await search_tools("image"),
    len(await search_tools(limit=None)),
]
