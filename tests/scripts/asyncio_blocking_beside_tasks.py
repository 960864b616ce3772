import asyncio

order = []


async def background():
    await mock.sleep(ms=5)
    order.append("background")


task = asyncio.create_task(background())
await asyncio.sleep(0)
order.append(call_mcp_tool_sync("mock.sleep", {"ms": 20})["ms"])
order.append(call_tool("mock", "echo", {"a": 1})["ok"])
await task
return order
