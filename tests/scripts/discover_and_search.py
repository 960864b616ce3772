everything = await discover_mcp_tools()
some = await discover_mcp_tools(["picture", "image"])
one = await discover_mcp_tools(server="other_server")
found = await search_tools("counts its calls", 2)
return {
    "count": len(everything),
    "some": [tool["name"] for tool in some],
    "one": [[tool["name"], tool["parameters"]] for tool in one],
    "found": [tool["name"] for tool in found],
    "nearest": [tool["name"] for tool in await search_tools("zzzzzz")],
    "first": [everything[0]["name"], everything[0]["description"], everything[0].get("annotations")],
}
