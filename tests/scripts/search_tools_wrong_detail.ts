return await search_tools("x", "everything");
