value = call_tool("mock", "echo", {"a": 1})
return await value
