import asyncio


def failure(call):
    try:
        return call()
    except McpToolError as error:
        return [error.code, error.message, error.server, error.tool]


many = [{"server": "mock", "tool": "hang"}, {"server": "mock", "tool": "echo", "args": {"a": 1}}]
# Other calls are in flight, whose answers arrive while the script blocks.
others = [asyncio.create_task(tools.mock.sleep(ms=5)) for _ in range(3)]
await asyncio.sleep(0)
{
    "by name": failure(lambda: call_mcp_tool_sync("mcp__mock__hang", {}, {"timeout": 0.1})),
    "one": call_tool("mock", "hang", {}, {"timeoutMs": 100}),
    "many": call_tools(many, timeout=0.1, max_parallel=1),
    "many by a dict": call_tools(many, {"maxParallel": 2, "timeoutMs": 100}),
    "answered": call_mcp_tool_sync("mock.echo", {"a": 1}, {"timeout": 60}),
    "others": await asyncio.gather(*others),
}
