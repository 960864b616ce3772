import asyncio
import time
from unittest import mock

values = []
with mock.patch("time.monotonic", return_value=5.0), mock.patch("time.time", return_value=5.0):
    time.sleep(0.01)
    await asyncio.sleep(0.01)
    values.append(await asyncio.wait_for(tools.mock.echo(a=1), 5))
with mock.patch("json.loads", return_value={"a": 2}), mock.patch("json.dumps", return_value="{}"):
    values.append(call_tool("mock", "echo", {"a": 1}))
    try:
        await tools.mock.fail()
    except McpToolError as error:
        values.append([error.code, error.server, error.tool])
values
