"""`mcp.runtime`, `mcp.servers`, `mcp_servers` and `mcp_<server>`: what scripts that were written for other hosts use.

They reach the same tools as `tools`. Their results differ in one way: the fields of an object are attributes too, and
a text can be read as the content of a tool's result, because those scripts are written in both ways.
"""

import functools
import sys
import types

import yaml

from cx_guest import calls, discovery, loop, queries, script_names, servers
from cx_guest.errors import McpToolError, MissingServer, tool_error
from cx_guest.queries import name_of
from cx_guest.servers import Server, ServersModule, is_private
from cx_guest.values import from_json, reader

# --- results --------------------------------------------------------------------------------------------------------


class Record(dict):
    """An object of a result. Its fields are items, and attributes where no method has the name."""

    __slots__ = ()

    def __getattr__(self, name: str):
        if is_private(name) or name not in self:
            raise AttributeError(f"the object has no field {name!r}", name=name, obj=self)
        return self[name]

    def __dir__(self):
        return [*super().__dir__(), *(name for name in self if isinstance(name, str))]


class Text(str):
    """A text that a tool returned. `text["content"][0]["text"]` is the text itself."""

    __slots__ = ()

    def __getitem__(self, key):
        if isinstance(key, str):
            return {"content": [Record(type="text", text=str(self))], "isError": False}[key]
        return super().__getitem__(key)


_read = reader(Record)

# Otherwise yaml refuses them, for it looks at the exact type.
for _dumper in (yaml.SafeDumper, yaml.Dumper):
    _dumper.add_representer(Record, _dumper.represent_dict)
    _dumper.add_representer(Text, _dumper.represent_str)


def _decode(text: str):
    value = _read(text)
    return Text(value) if value.__class__ is str else value


# --- servers --------------------------------------------------------------------------------------------------------


def _make_tool(server: str, tool: str):
    call = calls.make_tool(server, tool, _decode)
    if tool != "list_tools":
        return call

    # Proxies of other hosts have a method of this name.
    @functools.wraps(call)
    async def list_tools(*positional, **named):
        if positional or named or tool in await queries.query({"kind": "names", "server": server}):
            return await call(*positional, **named)
        return await _list_tools(server)

    return list_tools


class _BridgeServer(Server):
    """A server whose tools return `Record` and `Text`."""

    __cx_make__ = staticmethod(_make_tool)


class _Servers(dict):
    """All servers, by exact name. Python names are found too, and are not listed."""

    __cx_all__ = True

    def __missing__(self, name):
        if name not in _by_alias:
            # A wrong name fails here, with the right ones.
            servers.find_server(name_of("a server's name", name), MissingServer)
            _by_alias[name] = _BridgeServer(name)
        return _by_alias[name]

    def __getattr__(self, name: str):
        if is_private(name):
            raise AttributeError(name)
        return self[name]

    def __contains__(self, name) -> bool:
        return name in servers.tools

    def get(self, name, default=None):
        return self[name] if name in self else default


_servers = _Servers()
# The same servers by each of their names.
_by_alias: dict[str, _BridgeServer] = {}


class _ServersPackage(ServersModule):
    """The package `mcp.servers`, which is also the coroutine function that returns the names of all servers."""

    def __init__(self, names) -> None:
        super().__init__("mcp.servers", "The run's servers.", _servers)
        self.__cx_names__ = names

    def __call__(self):
        return self.__cx_names__()


# --- mcp.runtime ----------------------------------------------------------------------------------------------------


class _Tuple(tuple):
    """A tuple that may also be awaited: some scripts do, some do not."""

    __slots__ = ()

    def __await__(self):
        return tuple(self)
        yield


class _Dict(dict):
    """A dict that may also be awaited."""

    __slots__ = ()

    def __await__(self):
        return dict(self)
        yield


class _Words(str):
    """A text that may also be awaited."""

    __slots__ = ()

    def __await__(self):
        return str(self)
        yield


_DETAILS = {None: False, "summary": False, "descriptions": False, "full": True}


def _documentation(server=None, tool=None, detail="summary", **more) -> dict:
    """The query for the documentation of tools."""
    if detail not in _DETAILS:
        raise McpToolError(f"expected detail `summary` or `full`: `{detail}`", code="INVALID_ARGUMENTS")
    question = {"kind": "documentation", "schemas": _DETAILS[detail], **more}
    if server is not None:
        question["server"] = name_of("the server's name", server)
    if tool is not None:
        question["tool"] = name_of("the tool's name", tool)
    return question


def _search(words, limit, detail) -> dict:
    limit = 5.0 if limit is None else float(limit)
    return _documentation(detail=detail, query=str(words or ""), limit=limit if limit > 0 else 5.0)


def _tool_metadata(document: dict) -> dict:
    return {
        "name": document["tool"],
        "alias": document["toolAlias"],
        "description": document.get("description", ""),
        "input_schema": document["inputSchema"],
    }


def _server_metadata(server: str, documents: list, error: str | None = None) -> dict:
    about = queries.query_now({"kind": "describe", "server": server})
    metadata = {
        "name": about["name"],
        "alias": about["alias"],
        "tools": [_tool_metadata(document) for document in documents],
        "cwd": about.get("cwd"),
    }
    if "description" in about:
        metadata["description"] = about["description"]
    if error is not None:
        metadata["error"] = error
    return metadata


# The servers that are configured: other hosts have no server `scripts`, and their scripts try what they find first.
_SERVERS = {"kind": "servers"}


def discovered_servers(detailed=False):
    """The names of all servers, as a tuple; with `detailed`, a dict with `name` and `description` for each."""
    names = queries.query_now(_SERVERS)
    if not detailed:
        return _Tuple(names)
    described = (queries.query_now({"kind": "describe", "server": server}) for server in names)
    return _Tuple({"name": about["name"], "description": about.get("description", "")} for about in described)


async def list_servers():
    """The names of all servers, as a tuple."""
    return tuple(await queries.query(_SERVERS))


def list_servers_sync():
    """As `list_servers`, blocking."""
    return tuple(queries.query_now(_SERVERS))


def describe_server(name):
    """A server's `name`, `alias`, `tools` (each with `name`, `alias`, `description`, `input_schema`) and `cwd`."""
    documents = queries.query_now(_documentation(name, detail="full"))
    return _Dict(_server_metadata(name, documents))


def list_loaded_server_metadata():
    """What `describe_server` returns, of all servers, as a tuple. One that fails has no tools, and an `error`."""
    names = queries.query_now(_SERVERS)
    answers = loop.block_all([queries.query_request(_documentation(name, detail="full")) for name in names])
    found = []
    for name, answer in zip(names, answers):
        if answer.startswith("!"):
            found.append(_server_metadata(name, [], str(tool_error(answer))))
        else:
            found.append(_server_metadata(name, from_json(answer)))
    return _Tuple(found)


async def _list_tools(server: str) -> list[dict]:
    documents = await queries.query(_documentation(server, detail="full"))
    kept = {"tool": "name", "description": "description", "inputSchema": "inputSchema"}
    return [{name: document[key] for key, name in kept.items() if key in document} for document in documents]


def _needs_server(function: str, server) -> None:
    if server is None:
        message = f"{function} needs a server's name: search_tool_docs(query) finds tools of all servers"
        raise McpToolError(message, code="INVALID_ARGUMENTS")


async def list_tools(server=None):
    """A server's tools as it lists them: `name`, `description` and `inputSchema`."""
    _needs_server("list_tools(server)", server)
    return await _list_tools(server)


def list_tools_sync(server=None):
    """A server's tools, as a tuple: `name`, `alias`, `description` and `input_schema`."""
    _needs_server("list_tools_sync(server)", server)
    documents = queries.query_now(_documentation(server, detail="full"))
    return tuple(_tool_metadata(document) for document in documents)


async def query_tool_docs(server, tool=None, detail="summary"):
    """Documentation of a server's tools, as a list, or of one tool. `detail="full"` adds `inputSchema`."""
    documents = await queries.query(_documentation(server, tool, detail))
    return documents if tool is None else documents[0]


def query_tool_docs_sync(server, tool=None, detail="summary"):
    """Documentation of a server's tools, or of one tool, as a list."""
    return queries.query_now(_documentation(server, tool, detail))


async def search_tool_docs(query, limit=5, detail="summary"):
    """Documentation of the tools that match, best first."""
    return await queries.query(_search(query, limit, detail))


def search_tool_docs_sync(query, limit=5, detail="summary"):
    """As `search_tool_docs`, blocking."""
    return queries.query_now(_search(query, limit, detail))


async def call_tool(server, tool, arguments=None, options=None):
    """Calls a tool and returns its result. Raises MCPError."""
    server, tool = name_of("the server's name", server), name_of("the tool's name", tool)
    return await calls.make_tool(server, tool, _decode)(arguments or {}, options)


# Maximum number of names in the summary: it is for a reader who wants an overview.
_MAX_NAMES = 30


def capability_summary():
    """What a script can do, in one paragraph."""
    names = queries.query_now(_SERVERS)
    shown = ", ".join(names[:_MAX_NAMES]) or "none"
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return _Words(
        f"PYTHON SANDBOX MANUAL. Servers: {shown}{more}. Find tools with `await runtime.search_tool_docs(\"what\")`, "
        'read one with `await runtime.query_tool_docs("server", "tool", "full")`, call it with '
        "`await mcp_<server>.<tool>(name=value)`. Print or return what matters: `help()` prints the whole guide."
    )


_ASYNC = (list_servers, list_tools, query_tool_docs, search_tool_docs, call_tool)
_BLOCKING = (list_servers_sync, list_tools_sync, query_tool_docs_sync, search_tool_docs_sync)
# They do not block for long, so that there is no other form; some scripts write one.
_IMMEDIATE = (discovered_servers, describe_server, list_loaded_server_metadata, capability_summary)


def install() -> None:
    """Makes the modules that scripts import. Called at build time, after `script_names.install`."""
    known = script_names.script_globals()
    module = types.ModuleType("mcp.runtime", "Finds servers and tools.")
    module.MCPError = McpToolError
    for name in script_names.CALLS:
        setattr(module, name, known[name])
    for name in discovery.FUNCTIONS:
        setattr(module, name, known[name])
    for function in (*_ASYNC, *_BLOCKING, *_IMMEDIATE):
        function.__module__ = "mcp.runtime"
        setattr(module, function.__name__, function)
    for function in _IMMEDIATE:
        setattr(module, function.__name__ + "_sync", function)
    mcp = sys.modules["mcp"]
    mcp.runtime = sys.modules["mcp.runtime"] = module
    mcp.servers = sys.modules["mcp.servers"] = _ServersPackage(mcp.servers)
    known["mcp_servers"] = _servers


def name_loaded(namespace: dict) -> None:
    """Gives a script that reads LOADED_MCP_SERVERS the servers that are configured. Called before it runs."""
    namespace["LOADED_MCP_SERVERS"] = list_servers_sync()


def start(namespace: dict, servers: list) -> None:
    """Puts the run's own names into the script's namespace and its modules. Called after `script_names.start`."""
    package = sys.modules["mcp.servers"]
    package.__all__ = [python_name for _, python_name in servers]
    namespace["LOADED_MCP_SERVERS"] = tuple(name for name, _ in servers)
    for name, _ in servers:
        _servers[name] = _by_alias[name] = _BridgeServer(name)
    for name, python_name in servers:
        server = _by_alias.setdefault(python_name, _servers[name])
        for alias in (python_name, name):
            sys.modules[f"mcp.servers.{alias}"] = _by_alias[alias]
        namespace.setdefault(f"mcp_{python_name}", server)
