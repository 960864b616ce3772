return {
    "list": [tool["name"] for tool in await discover_mcp_tools(search_terms=["picture", "image"])],
    "text": [tool["name"] for tool in await discover_mcp_tools("image")],
    "dict": [tool["name"] for tool in await discover_mcp_tools({"search": ["picture", "image"]})],
    "server": [tool["name"] for tool in await discover_mcp_tools(["reads"], server="other-server")],
    "none": await discover_mcp_tools(["zzzzzz"]),
    "all": len(await discover_mcp_tools()),
}
