"""MCP servers over HTTP, all of them in this process, so that their state can be set and compared without a tool of its
own."""

import asyncio
import socket
import threading
from contextlib import AsyncExitStack, asynccontextmanager

import uvicorn
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Mount


class Backend:
    """One server. Subclasses set `tools`, and have `call`, which returns a call's text, its value and whether it
    failed."""

    def server(self, name):
        async def list_tools(_context, _request):
            return types.ListToolsResult(tools=self.tools)

        async def call_tool(_context, request):
            text, value, failed = self.call(request.name, request.arguments or {})
            content = [types.TextContent(type="text", text=text)]
            return types.CallToolResult(content=content, structured_content=value, is_error=failed)

        return Server(name, on_list_tools=list_tools, on_call_tool=call_tool)


def wrapped_schema(schema):
    """The output schema of a tool that returns what `schema` says. As SDKs do, because MCP requires an object."""
    if schema.get("type") == "object":
        return schema
    definitions = {"$defs": schema.pop("$defs")} if "$defs" in schema else {}
    return {"type": "object", "properties": {"result": schema}, "required": ["result"]} | definitions


def structured(value):
    """A value as the structured content of such a tool."""
    return value if isinstance(value, dict) else {"result": value}


class Hosted:
    """Back ends by the names of their servers, served until the process ends."""

    def __init__(self, backends):
        self.all = backends
        self.port = host({name: backend.server(name) for name, backend in backends.items()})

    def url(self, name):
        return f"http://127.0.0.1:{self.port}/{name}/"


def host(servers):
    """Serves each server at the path of its name, on a free port of this machine, until the process ends. Returns the
    port."""
    # asyncio sends small packets at once only where the socket names its protocol.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    managers = {name: StreamableHTTPSessionManager(server, json_response=True) for name, server in servers.items()}

    @asynccontextmanager
    async def lifespan(_app):
        async with AsyncExitStack() as stack:
            for manager in managers.values():
                await stack.enter_async_context(manager.run())
            yield

    routes = [Mount(f"/{name}", app=manager.handle_request) for name, manager in managers.items()]
    app = Starlette(routes=routes, lifespan=lifespan)
    # Some servers are not called for minutes.
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_keep_alive=3600))
    threading.Thread(target=lambda: asyncio.run(server.serve([listener])), daemon=True).start()
    return listener.getsockname()[1]
