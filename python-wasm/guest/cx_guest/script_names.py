"""The names and modules that a script finds."""

import asyncio
import builtins
import keyword
import sys
import types

from cx_guest import calls, discovery, features, refused
from cx_guest.calls import call_mcp_tool, call_mcp_tool_sync, call_tool, call_tools
from cx_guest.client import emit, progress
from cx_guest.errors import McpToolError
from cx_guest.help import help
from cx_guest.servers import Server, ServersModule, tools

CALLS = ("call_mcp_tool", "call_mcp_tool_sync", "call_tool", "call_tools")

_globals: dict = {
    "McpToolError": McpToolError,
    # Most scripts use it, and many forget to import it.
    "asyncio": asyncio,
    "call_mcp_tool": call_mcp_tool,
    "call_mcp_tool_sync": call_mcp_tool_sync,
    "call_tool": call_tool,
    "call_tools": call_tools,
    "emit": emit,
    "help": help,
    "progress": progress,
    "tools": tools,
    **discovery.FUNCTIONS,
}
for _function in (call_mcp_tool, call_mcp_tool_sync, call_tool, call_tools, emit, help, progress):
    _function.__module__ = "mcp"


def install() -> None:
    """Makes the modules that scripts import. Called at build time, before `runtime.install`."""
    mcp = types.ModuleType("mcp", "Servers, and what they have besides tools.")
    mcp.__path__ = []
    for name, function in features.FUNCTIONS.items():
        setattr(mcp, name, function)
    mcp.McpToolError = McpToolError
    mcp.tools = tools
    sys.modules["mcp"] = mcp
    sys.modules["mcp_tools"] = ServersModule("mcp_tools", "The run's servers.", tools)
    _globals["mcp"] = mcp
    refused.servers = tools


def start(namespace: dict, servers: list, argument_bytes: int) -> None:
    """Puts the run's own names into the script's namespace. `servers` is [[exact name, Python name], …]."""
    calls.limit_arguments(argument_bytes)
    known = tools.__dict__
    exact = known["__cx_exact__"]
    objects = [Server(names[0]) for names in servers]
    for (name, _), server in zip(servers, objects):
        exact.append(name)
        known[name] = server
    for (name, python_name), server in zip(servers, objects):
        server = known.setdefault(python_name, server)
        sys.modules[f"mcp_tools.{python_name}"] = server
        for free in (name, python_name):
            # The name must be free: a server called `filter` does not replace the function.
            if free not in namespace and free.isidentifier() and not keyword.iskeyword(free):
                if not hasattr(builtins, free):
                    namespace[free] = known[free]


def script_globals() -> dict:
    """Returns what every script finds."""
    return _globals
