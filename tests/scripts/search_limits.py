return [len(await search_tools("returns", limit=n)) for n in (1, 3)] + [len(await search_tools(""))]
