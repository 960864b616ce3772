from mcp import runtime

answer = await runtime.call_tool("mock", "echo", {"a": {"b": 1}})
try:
    await runtime.call_tool("mock", "fail", {"message": "no"})
except runtime.MCPError as error:
    failure = [error.code, str(error)]
return [answer, answer.a.b, failure]
