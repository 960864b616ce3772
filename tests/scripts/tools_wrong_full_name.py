messages = []
for name in ("mcp__mock__ecco", "mcp__mokk__echo", "echo", "", "mock.ekho"):
    try:
        await call_mcp_tool(name)
    except McpToolError as error:
        messages.append([error.code, error.message])
return messages
