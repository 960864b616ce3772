return [
    await search_tools("image", detail="names"),
    await search_tools("image", detail="descriptions"),
    await search_tools("image", detail="full"),
    (await search_tools("image"))[0]["inputSchema"],
    (await get_tool_schema("mcp__mock__image")).get("inputSchema"),
    len(await search_tools(limit=None)),
]
