from mcp import runtime

for topic in (search_tools, search_tools_sync, call_tools, state, state.update_sync, llm.ask, mcp.run, McpToolError):
    help(topic)
for word in ("call_mcp_tool_sync", "state.get", "mcp.get_prompt"):
    help(word)
help(runtime.search_tool_docs)
for wrong in ("state.zebra", "runtime.zebra"):
    try:
        help(wrong)
    except McpToolError as error:
        print(error)
