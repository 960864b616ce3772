return await search_tools("x", detail="everything")
