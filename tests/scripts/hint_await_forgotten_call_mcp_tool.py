found = call_mcp_tool("mcp__mock__echo", {"list": []})
return len(found)
