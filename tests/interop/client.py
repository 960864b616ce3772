"""A client on the official Python SDK or on FastMCP: does with `cx serve` what clients do, and prints what it saw as
one line of JSON.

    python client.py SDK NOTES COMMAND [ARGUMENT...]
    python client.py SDK NOTES ADDRESS

SDK: `old`, of early 2025; `legacy`, the one of now with a handshake; `auto`, which asks for the newest revision first;
`fastmcp` and `fastmcp-legacy`. NOTES is the file of the upstream server `hangs`."""

import json
import os
import re
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

SDK, NOTES, COMMAND, *ARGUMENTS = sys.argv[1:]
IS_ADDRESS = COMMAND.startswith("http://")

# The maximum of every wait here.
MAX_WAIT = 200
# A cancelled call ends long before its script's time limit.
SOON = 20

# The questions that the person was asked, and the next answers.
questions = []
answers = []


class Old:
    """The SDK of early 2025: a session over streams. It tells the server nothing when a call is cancelled, and
    cannot ask the user."""

    tells_cancellation = False
    asks = False

    def __init__(self, session, protocol, server):
        self.session, self.protocol, self.server = session, protocol, server

    @staticmethod
    @asynccontextmanager
    async def connect():
        from mcp import ClientSession, StdioServerParameters
        from mcp.client.stdio import stdio_client
        from mcp.client.streamable_http import streamablehttp_client

        pipes = StdioServerParameters(command=COMMAND, args=ARGUMENTS, env=dict(os.environ))
        with open(os.devnull, "w") as nowhere:
            transport = streamablehttp_client(COMMAND) if IS_ADDRESS else stdio_client(pipes, errlog=nowhere)
            async with transport as (reader, writer, *_), ClientSession(reader, writer) as session:
                about = await session.initialize()
                yield Old(session, about.protocolVersion, about.serverInfo.name)

    async def tools(self):
        return [tool.name for tool in (await self.session.list_tools()).tools]

    async def call(self, name, arguments, progress=None):
        result = await self.session.call_tool(name, arguments, progress_callback=progress)
        # A field that this SDK does not know.
        return result.isError, result.content, result.model_extra["structuredContent"]

    async def cancel_latest(self):
        from mcp import types

        params = types.CancelledNotificationParams(requestId=self.session._request_id - 1)
        note = types.CancelledNotification(method="notifications/cancelled", params=params)
        await self.session.send_notification(types.ClientNotification(note))

    async def read(self, uri):
        return (await self.session.read_resource(uri)).contents[0].text

    async def resources(self):
        return [str(resource.uri) for resource in (await self.session.list_resources()).resources]


class Now:
    """The SDK of now."""

    tells_cancellation = True
    asks = True

    def __init__(self, client):
        self.client, self.protocol, self.server = client, client.protocol_version, client.server_info.name

    @staticmethod
    @asynccontextmanager
    async def connect():
        from mcp import Client, StdioServerParameters
        from mcp.types import ElicitResult

        async def elicit(_context, params):
            return ElicitResult(**answer(params.message))

        pipes = StdioServerParameters(command=COMMAND, args=ARGUMENTS, env=dict(os.environ))
        server = COMMAND if IS_ADDRESS else pipes
        async with Client(server, mode=SDK, elicitation_callback=elicit) as client:
            yield Now(client)

    async def tools(self):
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, name, arguments, progress=None):
        result = await self.client.call_tool(name, arguments, progress_callback=progress)
        return result.is_error, result.content, result.structured_content

    async def read(self, uri):
        return (await self.client.read_resource(uri)).contents[0].text

    async def resources(self):
        return [str(resource.uri) for resource in (await self.client.list_resources()).resources]


class FastMCP:
    """FastMCP's client."""

    tells_cancellation = True
    asks = True

    def __init__(self, client):
        session = client.session
        self.client, self.protocol, self.server = client, session.protocol_version, session.server_info.name

    @staticmethod
    @asynccontextmanager
    async def connect():
        from fastmcp import Client
        from fastmcp.client.elicitation import ElicitResult
        from fastmcp.client.transports import StdioTransport

        async def elicit(message, _type, _params, _context):
            return ElicitResult(**answer(message))

        pipes = StdioTransport(
            COMMAND, ARGUMENTS, env=dict(os.environ), keep_alive=False, log_file=Path(os.devnull)
        )
        mode = "legacy" if SDK == "fastmcp-legacy" else "auto"
        server = COMMAND if IS_ADDRESS else pipes
        async with Client(server, mode=mode, elicitation_handler=elicit) as client:
            yield FastMCP(client)

    async def tools(self):
        return [tool.name for tool in await self.client.list_tools()]

    async def call(self, name, arguments, progress=None):
        result = await self.client.call_tool(name, arguments, progress_handler=progress, raise_on_error=False)
        return result.is_error, result.content, result.structured_content

    async def read(self, uri):
        return (await self.client.read_resource(uri))[0].text

    async def resources(self):
        return [str(resource.uri) for resource in await self.client.list_resources()]


def answer(message):
    questions.append(message.splitlines()[0])
    return answers.pop(0)


async def until(condition):
    while not await condition():
        await anyio.sleep(0.01)


async def main():
    kind = {"old": Old, "legacy": Now, "auto": Now}.get(SDK, FastMCP)
    with anyio.fail_after(MAX_WAIT):
        async with kind.connect() as client:
            print(json.dumps(await drive(client)))


async def drive(client):
    seen = {"protocol": client.protocol, "server": client.server, "tools": await client.tools()}

    async def run(code, tool="executeTypescript", progress=None):
        return await client.call(tool, {"code": code}, progress)

    def picked(result):
        is_error, content, structured = result
        fields = {name: structured[name] for name in ("success", "value", "output", "error") if name in structured}
        return {"isError": is_error, "text": content[0].text, **fields}

    seen["typescript"] = picked(await run("console.log('seen'); return 6 * 7 as number"))
    seen["python"] = picked(await run("print('seen')\n6 * 7", "executePython"))
    seen["failing"] = picked(await run("const n = 1;\nthrow new RangeError(`no ${n}`)"))

    heard = []
    # On a busy machine it may also be said that the script still runs.
    beats = []

    async def progress(count, _total, message):
        if message.startswith("running for "):
            beats.append(message)
        else:
            heard.append([round(count * 1000) - len(beats), re.sub(r", \d+ ms$", "", message)])

    calls = "for (let i = 0; i < 2; i++) await tools.well.echo({ i }); call_tool('well', 'fail', {})"
    notes = anyio.Path(NOTES)

    async def is_under_way():
        return len(heard) == 3 and "executed target" in await notes.read_text()

    async def is_told():
        return "cancelled " in await notes.read_text()

    async def is_over():
        health = (await client.call("health", {}))[2]
        return health["connectionPool"]["active"] == 0

    outcome = []

    async def cancelled():
        try:
            await run(f"{calls}; await tools.hangs.target({{}})", progress=progress)
            outcome.append("answered")
        except anyio.get_cancelled_exc_class():
            outcome.append("cancelled")
            raise

    async with anyio.create_task_group() as group:
        group.start_soon(cancelled)
        await until(is_under_way)
        if not client.tells_cancellation:
            await client.cancel_latest()
        group.cancel_scope.cancel()
    seen["cancelled"], seen["progress"] = outcome[0], heard
    # The cancellation reaches the upstream server, and the slot is free.
    with anyio.fail_after(SOON):
        await until(is_told)
        await until(is_over)

    ask = "try { return await tools.well.count({}) } catch (error) { return [error.code, error.message] }"
    answers.extend([
        {"action": "accept", "content": {"approve": True}},
        {"action": "decline"},
        {"action": "accept", "content": {"approve": False, "reason": "not now"}},
        {"action": "accept", "content": {"approve": True}},
    ])
    seen["asked"] = [(await run(ask))[2]["value"] for _ in range(4)]
    seen["questions"] = questions

    seen["guide"] = (await client.read("cx://guide")).splitlines()[0]
    long = (await run("return Array.from({ length: 20000 }, (_, i) => i)"))[2]
    kept = json.loads(await client.read(f"cx://runs/{long['runId']}/value"))
    seen["kept"] = ["value" not in long, len(kept), kept[-1]]
    seen["resources"] = [uri.replace(long["runId"], "ID") for uri in await client.resources()]
    return seen


anyio.run(main)
