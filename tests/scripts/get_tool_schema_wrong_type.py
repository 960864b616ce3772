await get_tool_schema(7)
