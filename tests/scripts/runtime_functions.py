from mcp import runtime

return {
    "discovered_servers": runtime.discovered_servers(),
    "list_servers": await runtime.list_servers(),
    "list_tools": (await runtime.list_tools("mock"))[:2],
    "describe_server": runtime.describe_server("other-server"),
    "search_tool_docs": await runtime.search_tool_docs("image", limit=1),
    "query_tool_docs": await runtime.query_tool_docs("mock", "echo"),
    "capability_summary": runtime.capability_summary(),
    "list_loaded_server_metadata": [entry["name"] for entry in runtime.list_loaded_server_metadata()],
}
