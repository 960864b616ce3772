import mcp.runtime as runtime

return {
    "discovered_servers": runtime.discovered_servers_sync(),
    "list_servers": runtime.list_servers_sync(),
    "list_tools": [tool["name"] for tool in runtime.list_tools_sync("other-server")],
    "describe_server": runtime.describe_server_sync("other-server"),
    "search_tool_docs": [tool["tool"] for tool in runtime.search_tool_docs_sync("image", limit=1)],
    "query_tool_docs": [tool["tool"] for tool in runtime.query_tool_docs_sync("other-server")],
    "capability_summary": runtime.capability_summary_sync() == runtime.capability_summary(),
    "list_loaded_server_metadata": len(runtime.list_loaded_server_metadata_sync()),
}
