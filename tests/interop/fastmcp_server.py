"""A server on FastMCP. Arguments: `stdio`, or `http` and its authentication: `open`, `token` (one bearer token,
`interop-token`) or `oauth` (its own authorization server, where every user can sign in). Over HTTP it takes a free port
and prints `listening URL`."""

import asyncio
import socket
import sys

from fastmcp import Context, FastMCP
from fastmcp.server.auth import StaticTokenVerifier
from mcp.server.auth.settings import ClientRegistrationOptions


def authorization(kind: str, origin: str):
    if kind == "token":
        return StaticTokenVerifier(tokens={"interop-token": {"client_id": "cx", "scopes": []}})
    if kind == "oauth":
        from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider

        registration = ClientRegistrationOptions(enabled=True)
        return InMemoryOAuthProvider(base_url=origin, client_registration_options=registration)
    return None


def server(auth=None) -> FastMCP:
    mcp = FastMCP("interop", auth=auth)

    @mcp.tool
    def add(a: int, b: int) -> int:
        """Adds two numbers"""
        return a + b

    @mcp.tool
    def person(name: str) -> dict[str, str | int]:
        """A record"""
        return {"name": name, "age": 36}

    @mcp.tool
    def fail(reason: str) -> str:
        """Fails"""
        raise ValueError(reason)

    @mcp.tool
    async def wait(seconds: float, steps: int, context: Context) -> str:
        """Reports progress"""
        for step in range(1, steps + 1):
            await asyncio.sleep(seconds / steps)
            await context.report_progress(step, steps, f"step {step}")
        return "done"

    return mcp


def main() -> None:
    if sys.argv[1] == "stdio":
        server().run(transport="stdio", show_banner=False)
        return
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    print(f"listening {origin}/mcp", flush=True)
    mcp = server(authorization(sys.argv[2], origin))
    asyncio.run(mcp.run_http_async(show_banner=False, sockets=[listener], log_level="error"))


main()
