import math

messages = []
wrong = [{"time": 5}, {"timeout": 0}, {"timeout": "5"}, {"timeout": True}, {"timeoutMs": -1}, {5: 1}, "soon", [], 5]
for options in wrong:
    try:
        await tools.mock.echo({}, options)
    except TypeError as error:
        messages.append(str(error))
for call in (
    lambda: call_mcp_tool_sync("mock.echo", {}, 5),
    lambda: call_mcp_tool_sync("mock.echo", {}, {}, {}),
    lambda: call_tools([{"server": "mock", "tool": "echo"}], {"time": 5}),
    lambda: call_tools([{"server": "mock", "tool": "echo"}], timeout="5"),
    lambda: search_tools_sync("echo", timeout=0),
    lambda: mcp.get_prompt_sync("mock", "prompt", {}, {"time": 5}),
    lambda: llm.ask_sync("prompt", timeout=-1),
    lambda: llm.ask_sync("prompt", timeout=1, stream=True),
    lambda: search_tools_sync(words="echo"),
):
    try:
        call()
    except TypeError as error:
        messages.append(str(error))
# No time is none, and a time without end is none either.
for options in (None, {}, {"timeout": None}, {"timeout": math.inf}, {"timeout": 10**400}):
    messages.append(await tools.mock.echo({"a": 1}, options))
# These names are the tool's own where arguments are written.
messages.append(await tools.mock.echo(timeout=5, options={"timeout": 0}))
messages.append(await tools.mock.echo(None, {"timeout": 60}, timeout=5))
messages.append(await tools.mock.echo({"timeout": 5}, {"timeout": 60}, options=1))
messages.append(call_mcp_tool_sync("mock.echo", None, {"timeout": 60}, timeout=5, options=1))
messages.append(await call_mcp_tool("mock.echo", timeout=5, options=1))
messages.append(call_tool("mock", "echo", {"a": 1}, {"timeout": 60}, timeout=5))
messages.append(call_tool("mock", "echo", {}, {"time": 5}))
messages
