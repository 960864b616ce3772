return call_tool("mock.echo", {"a": 1})
