"""The functions with which a script finds and calls tools.

A call starts when it is awaited, as every coroutine of Python does: `asyncio.gather` and tasks overlap calls. A
coroutine that is never awaited calls nothing, and a warning names it.

Names go to the host as they are written. The host knows exact names and their snake_case forms, and finds the nearest
name to a wrong one.
"""

import asyncio
import base64
import builtins
import keyword
import os
import sys
import types
from collections.abc import Mapping

import wit_world

from cx_guest import loop
from cx_guest.errors import McpToolError, MissingServer, MissingServerModule, tool_error
from cx_guest.output import printable
from cx_guest.values import from_json, to_json

_TOOL = wit_world.Operation.TOOL
_FULL_NAME = wit_world.Operation.FULL_NAME
_QUERY = wit_world.Operation.QUERY
_EMIT = wit_world.Operation.EMIT

_begin = loop.begin
_finish = loop.finish
_block_on = loop.block
_start_call = wit_world.start_call


class _Run:
    """What the functions keep about their run."""

    argument_bytes = 0


def _decode(answer: str):
    if answer.startswith("!"):
        raise tool_error(answer)
    return from_json(answer)


# --- arguments ----------------------------------------------------------------------------------------------------


def _arguments(server: str | None, tool: str, arguments) -> str:
    """Returns arguments as JSON text; the empty text for none. A value that JSON does not have is the call's error."""
    if arguments is None:
        return ""
    try:
        text = to_json("arguments", arguments, is_exact=True)
    except TypeError as error:
        raise McpToolError(str(error), server=server, tool=tool, code="INVALID_ARGUMENTS") from None
    if refusal := _too_long(text):
        raise McpToolError(refusal, server=server, tool=tool, code="INVALID_ARGUMENTS")
    return text


def _too_long(text: str) -> str | None:
    # The host checks the size too. Checked here first, so that arguments which it would refuse are not copied to it.
    most = _Run.argument_bytes
    if len(text) * 4 > most and (length := len(text.encode())) > most:
        return f"the arguments are {length} bytes of JSON, at most {most} can be sent"
    return None


def _written(server: str, tool: str, positional: tuple, named: dict):
    """The arguments of a call as written: keyword arguments or one dict, or both."""
    if not positional:
        return named or None
    if len(positional) > 1:
        raise TypeError(
            f"{server}.{tool} takes keyword arguments or one dict, as in {tool}(path='a.txt'): "
            f"{len(positional)} positional arguments"
        )
    only = positional[0]
    if not named:
        return only
    if not isinstance(only, Mapping):
        raise TypeError(f"{server}.{tool} takes keyword arguments or one dict: a {type(only).__name__} and keywords")
    return {**only, **named}


# --- tools.<server>.<tool> ----------------------------------------------------------------------------------------


def make_tool(server: str, tool: str, decode=from_json):
    """Returns the coroutine function that calls a tool. `decode` makes the value of the answer's JSON text."""
    server, tool = printable(server), printable(tool)

    async def call(*positional, **named):
        answer = _begin(_TOOL, server, tool, _arguments(server, tool, _written(server, tool, positional, named)))
        if answer.__class__ is not str:
            answer = await _finish(answer, True)
        if answer.startswith("!"):
            raise tool_error(answer)
        return decode(answer)

    call.__name__ = tool
    call.__qualname__ = f"{server}.{tool}"
    call.__module__ = "mcp_tools"
    call.__cx_tool__ = f"mcp__{server}__{tool}"
    call.__doc__ = f"Calls the tool `{tool}` of the server `{server}`."
    return call


def _by_full_name(name: str):
    """Returns the coroutine function that calls the tool of a full name."""
    name = printable(name)

    async def call(*positional, **named):
        answer = _begin(_FULL_NAME, "", name, _arguments(None, name, _written("tools", name, positional, named)))
        if answer.__class__ is not str:
            answer = await _finish(answer, True)
        return _decode(answer)

    call.__name__ = call.__qualname__ = call.__cx_tool__ = name
    call.__module__ = "mcp_tools"
    call.__doc__ = f"Calls the tool `{name}`."
    return call


def is_private(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


class Server:
    """A server: its attributes and items are its tools."""

    # Makes the function for a tool: see `make_tool`.
    __cx_make__ = staticmethod(make_tool)

    def __init__(self, name: str):
        object.__setattr__(self, "__cx_server__", name)

    def __getattr__(self, name: str):
        # Names that the language and libraries look up on every object are no tools.
        if is_private(name):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str):
        if not isinstance(name, str):
            raise TypeError(f"a tool's name must be a string: {type(name).__name__}")
        found = self.__dict__.get(name)
        if found is None:
            # Made once: later uses find it as a plain attribute.
            found = self.__dict__[name] = self.__cx_make__(self.__dict__["__cx_server__"], name)
        return found

    def __setattr__(self, name: str, _value) -> None:
        raise AttributeError(f"tools cannot be replaced: {name}")

    __delattr__ = __delitem__ = lambda self, name: self.__setattr__(name, None)
    __setitem__ = __setattr__

    def __contains__(self, name) -> bool:
        return name in _tool_names(self)

    def __iter__(self):
        return iter(_tool_names(self))

    def __dir__(self):
        return _tool_names(self)

    @property
    def __all__(self) -> list[str]:
        """What `from mcp_tools.server import *` imports: the tools, by their Python names."""
        documents = query_now({"kind": "documentation", "server": self.__dict__["__cx_server__"]})
        names = (document["toolAlias"] for document in documents)
        return [name for name in names if name.isidentifier() and not keyword.iskeyword(name)]

    def __repr__(self) -> str:
        return f"<server {self.__dict__['__cx_server__']}>"


def _tool_names(server: Server) -> list[str]:
    return query_now({"kind": "names", "server": server.__dict__["__cx_server__"]})


class Tools:
    """All servers, by exact name and by Python name, as attributes and as items."""

    def __init__(self) -> None:
        self.__dict__["__cx_exact__"] = []

    def __getattr__(self, name: str):
        if is_private(name):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str):
        if not isinstance(name, str):
            raise TypeError(f"a server's name must be a string: {type(name).__name__}")
        found = self.__dict__.get(name)
        if found is None:
            if name.startswith("mcp__") and "__" in name[5:]:
                # The full name of a tool, as searches give it.
                return _by_full_name(name)
            # A wrong name fails here, with the right ones. One that the host knows is another form of a right one.
            find_server(name, MissingServer)
            found = self.__dict__[name] = Server(name)
        return found

    def __setattr__(self, name: str, _value) -> None:
        raise AttributeError(f"servers cannot be replaced: {name}")

    __delattr__ = __delitem__ = lambda self, name: self.__setattr__(name, None)
    __setitem__ = __setattr__

    def __contains__(self, name) -> bool:
        return isinstance(name, str) and isinstance(self.__dict__.get(name), Server)

    def __iter__(self):
        return iter(self.__dict__["__cx_exact__"])

    def __len__(self) -> int:
        return len(self.__dict__["__cx_exact__"])

    def __dir__(self):
        return [name for name in self.__dict__ if not is_private(name)]

    def __repr__(self) -> str:
        return f"<tools of {', '.join(self)}>"


def find_server(name: str, error: type[McpToolError]) -> None:
    """Raises `error`, with the nearest names, if the host knows no server of this name."""
    answer = _block_on(_start_call(*query_request({"kind": "server", "server": name})))
    if answer.startswith("!"):
        raise tool_error(answer, error) from None


tools = Tools()


class ServersModule(types.ModuleType):
    """A package whose submodules are the servers: `from mcp_tools import github`, `import mcp_tools.github`."""

    def __init__(self, name: str, doc: str, servers: Mapping) -> None:
        super().__init__(name, doc)
        self.__path__ = []
        self.__cx_servers__ = servers

    def __getattr__(self, name: str):
        if is_private(name):
            raise AttributeError(name)
        servers = self.__cx_servers__
        if name not in servers:
            find_server(name, MissingServerModule)
        return servers[name]

    def __dir__(self):
        return dir(tools)


# --- calls by name ------------------------------------------------------------------------------------------------


def name_of(what: str, value) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a string: {type(value).__name__}")
    return printable(value)


def query_request(question: dict) -> tuple:
    """The arguments of `start_call` for a query."""
    return _QUERY, "", "", to_json("query", question)


async def query(question: dict):
    answer = _begin(*query_request(question))
    if not isinstance(answer, str):
        answer = await _finish(answer)
    return _decode(answer)


def query_now(question: dict):
    return _decode(_block_on(_start_call(*query_request(question))))


async def call_mcp_tool(name, params=None, **named):
    """Calls the tool of this full name, `mcp__server__tool` or `server.tool`."""
    name = name_of("the tool's name", name)
    arguments = {**params, **named} if named and params else named or params
    answer = _begin(_FULL_NAME, "", name, _arguments(None, name, arguments))
    if not isinstance(answer, str):
        answer = await _finish(answer, True)
    return _decode(answer)


def call_mcp_tool_sync(name, params=None, **named):
    """The same, blocking."""
    name = name_of("the tool's name", name)
    arguments = {**params, **named} if named and params else named or params
    return _decode(_block_on(_start_call(_FULL_NAME, "", name, _arguments(None, name, arguments))))


def _refused(message: str) -> dict:
    return {"ok": False, "error": {"code": "INVALID_ARGUMENTS", "message": message}}


def _request(server, tool, arguments) -> tuple | dict:
    """The arguments of `start_call` for one call, or the refusal that the script gets for it."""
    if not isinstance(server, str) or not isinstance(tool, str):
        return _refused("`server` and `tool` must be strings")
    try:
        text = "" if arguments is None else to_json("arguments", arguments, is_exact=True)
    except TypeError as error:
        return _refused(str(error))
    if refusal := _too_long(text):
        return _refused(refusal)
    return _TOOL, printable(server), printable(tool), text


def _request_item(call) -> tuple | dict:
    if not isinstance(call, Mapping):
        return _refused("expected {server, tool, args}")
    return _request(call.get("server"), call.get("tool"), call.get("args", call.get("arguments")))


def _result(answer: str) -> dict:
    """The answer as {"ok": …}. Raises if the run has no calls left."""
    if not answer.startswith("!"):
        return {"ok": True, "result": from_json(answer)}
    error = from_json(answer[1:])
    if error.get("code") == "MAX_TOOL_CALLS_EXCEEDED":
        raise tool_error(answer)
    return {"ok": False, "error": error}


def _parallel(options, max_parallel) -> int | None:
    """The bound of calls in flight; None if there is none."""
    if options is not None:
        if not isinstance(options, Mapping):
            kind = type(options).__name__
            raise TypeError(f"call_tools takes its options by name, as in max_parallel=5: a positional {kind}")
        for name in options:
            if name not in ("max_parallel", "maxParallel"):
                raise TypeError(f"call_tools has no option {name!r}: expected 'max_parallel'")
        options = options.get("max_parallel", options.get("maxParallel"))
    most = options if max_parallel is None else max_parallel
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
        raise TypeError(f"max_parallel must be a whole number from 1: {most!r}")
    return most


def call_tools(calls, options=None, *, max_parallel=None) -> list[dict]:
    """Calls many tools at once, at most `max_parallel` at the same time, and waits for all.

    Returns {"ok": …} for each, never raises for a tool's failure. Every call is checked before the first one is sent.
    """
    if isinstance(calls, (str, bytes, Mapping)):
        raise TypeError("call_tools takes a list of {server, tool, args}")
    most = _parallel(options, max_parallel)
    requests = []
    for index, call in enumerate(calls):
        request = _request_item(call)
        if isinstance(request, dict):
            message = request["error"]["message"]
            raise TypeError(f"call_tools: nothing was sent, because of call {index}: {message}")
        requests.append(request)
    return [_result(answer) for answer in loop.block_all(requests, most)]


def call_tool(server, tool, args=None, **named) -> dict:
    """Calls one tool and waits for it."""
    if isinstance(server, str) and isinstance(tool, Mapping):
        return _refused("expected call_tool(server, tool, args); with one name it is call_mcp_tool_sync(name, args)")
    arguments = {**args, **named} if named and args else named or args
    request = _request(server, tool, arguments)
    return request if isinstance(request, dict) else _result(_block_on(_start_call(*request)))


# --- discovery ----------------------------------------------------------------------------------------------------


def _discover_question(search_terms=None, server=None) -> dict:
    if isinstance(search_terms, dict):
        # As in TypeScript, where one object has both.
        server = search_terms.get("server", server)
        search_terms = search_terms.get("search")
    if search_terms is None:
        words = ""
    elif isinstance(search_terms, str):
        words = search_terms
    else:
        words = " ".join(str(term) for term in search_terms)
    question = {"kind": "search", "query": words, "detail": "usage"}
    if server is not None:
        question["server"] = str(server)
    return question


def _search_question(query="", limit=10, detail="usage") -> dict:
    if isinstance(limit, str):
        # As in TypeScript, where the second argument is the detail.
        return {"kind": "search", "query": str(query or ""), "detail": limit}
    question = {"kind": "search", "query": str(query or ""), "detail": str(detail)}
    if limit is not None:
        question["limit"] = float(limit) if float(limit) > 0 else 10.0
    return question


def _schema_question(name) -> dict:
    return {"kind": "schema", "name": name_of("the tool's name", name)}


class _ToolSchema(dict):
    """A tool's schema. `inputSchema`, as MCP names it, is an alias of `parameters`; `python` is the types as a stub.
    Neither is in what a script prints, so that each schema is printed once."""

    def __init__(self, schema: dict):
        self.__cx_stub = schema.pop("python", None)
        super().__init__(schema)

    def __missing__(self, name):
        if name == "inputSchema":
            return self["parameters"]
        if name == "python" and self.__cx_stub is not None:
            return self.__cx_stub
        raise KeyError(name)

    def get(self, name, default=None):
        try:
            return self[name]
        except KeyError:
            return default


class _FoundTool(dict):
    """A tool that a search found. A script that prints or returns it gets `usage`, a line that says how to call it. The
    other fields are read by name, so that a list of tools has no schemas in it."""

    def __init__(self, schema: dict):
        super().__init__(usage=schema.pop("usage"))
        self.__cx_schema = _ToolSchema(schema)

    def __missing__(self, name):
        return self.__cx_schema[name]

    def get(self, name, default=None):
        return super().get(name) if name == "usage" else self.__cx_schema.get(name, default)

    def __contains__(self, name) -> bool:
        return name == "usage" or name in self.__cx_schema


def _schemas(answer):
    """An answer of the host with each tool as `_ToolSchema` or `_FoundTool`."""
    if isinstance(answer, list):
        return [_schemas(tool) for tool in answer]
    if not isinstance(answer, dict):
        return answer
    return _FoundTool(answer) if "usage" in answer else _ToolSchema(answer)


def _pair(name: str, doc: str, question, shape=lambda answer: answer) -> None:
    """Defines a question to the host as a coroutine function and, with `_sync` after its name, as a plain one."""

    async def later(*positional, **named):
        return shape(await query(question(*positional, **named)))

    def now(*positional, **named):
        return shape(query_now(question(*positional, **named)))

    for function, suffix in ((later, ""), (now, "_sync")):
        function.__name__ = function.__qualname__ = name + suffix
        function.__doc__ = doc
        function.__module__ = "mcp"
        function.__wrapped__ = question
        _questions[name + suffix] = function


_questions: dict = {}
_pair("discover_mcp_tools", "The tools that match any of the words, or all.", _discover_question, _schemas)
_pair("search_tools", "The tools that match, best first.", _search_question, _schemas)
_pair("get_tool_schema", "A tool's schema, or None for an unknown one.", _schema_question, _schemas)
DISCOVERY = tuple(_questions)


# --- what servers have besides tools --------------------------------------------------------------------------------


def _servers_question() -> dict:
    return {"kind": "servers"}


def _resources_question(server) -> dict:
    return {"kind": "listResources", "server": name_of("the server's name", server)}


def _resource_question(server, uri) -> dict:
    return {
        "kind": "readResource",
        "server": name_of("the server's name", server),
        "uri": name_of("the resource's URI", uri),
    }


def _prompts_question(server) -> dict:
    return {"kind": "listPrompts", "server": name_of("the server's name", server)}


def _prompt_question(server, name, args=None, **named) -> dict:
    question = {
        "kind": "getPrompt",
        "server": name_of("the server's name", server),
        "name": name_of("the prompt's name", name),
    }
    if args or named:
        question["arguments"] = {**(args or {}), **named}
    return question


def _run_question(id) -> dict:
    return {"kind": "run", "id": name_of("the run's id", id)}


_pair("servers", "The names of all servers.", _servers_question)
_pair("list_resources", "A server's resources.", _resources_question)
_pair("read_resource", "A resource's contents.", _resource_question)
_pair("list_prompts", "A server's prompts.", _prompts_question)
_pair("get_prompt", "A prompt's messages.", _prompt_question)
_pair("run", "The record of an earlier run.", _run_question)
_beside_tools = tuple(name for name in _questions if name not in DISCOVERY)


# --- help -----------------------------------------------------------------------------------------------------------


def help(topic=None) -> None:
    """Prints the guide, or its part about a word, a server or a tool. For anything else it prints Python's own help."""
    if isinstance(topic, Server):
        about = topic.__dict__["__cx_server__"]
    elif topic is tools or topic is _globals["mcp_servers"]:
        about = None
    elif topic is None or isinstance(topic, str):
        about = topic
    else:
        about = getattr(topic, "__cx_tool__", None)
        if about is None:
            print(_python_help(topic))
            return
    question = {"kind": "help"} if about is None else {"kind": "help", "topic": printable(about)}
    try:
        text = query_now(question)
    except McpToolError:
        # `help("json.dumps")`: a word that is not in the guide may name something of Python's.
        import pydoc

        found = pydoc.locate(about)
        if found is None:
            raise
        text = _python_help(found)
    print(text)


def _python_help(value) -> str:
    import pydoc

    return pydoc.render_doc(value, renderer=pydoc.plaintext)


# --- emit -----------------------------------------------------------------------------------------------------------

_BLOCKS = {"text": "text", "image": "data", "audio": "data", "resource": "resource", "resource_link": "uri"}


def _is_block(value) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("type"), str) and value["type"] in _BLOCKS


def _block(value):
    """The content block for an emitted value: MCP's blocks as they are, everything else as text."""
    if isinstance(value, str):
        return {"type": "text", "text": value}
    if _is_block(value):
        kind = value["type"]
        needed = _BLOCKS[kind]
        if needed == "data":
            mime = value.get("mimeType", value.get("mime_type"))
            if not isinstance(mime, str):
                raise TypeError(f"emit: a block of type {kind} needs a mimeType")
            data = value.get("data")
            if isinstance(data, (bytes, bytearray, memoryview)):
                data = base64.b64encode(data).decode()
            if not isinstance(data, str):
                raise TypeError(f"emit: a block of type {kind} needs data as base64 text or bytes")
            return {"type": kind, "mimeType": mime, "data": data}
        if needed in value:
            return value
    return {"type": "text", "text": to_json("emit", value)}


def _file_block(value: dict) -> str:
    """The content block of a file, as JSON text. The host reads it."""
    unknown = [key for key in value if key not in ("file", "mimeType", "mime_type")]
    if unknown:
        raise TypeError(f"emit: a file has `file` and `mimeType`, not `{unknown[0]}`")
    file = {"path": printable(os.fspath(value["file"])), "mimeType": value.get("mimeType") or value.get("mime_type")}
    answer = _block_on(_start_call(*query_request({"kind": "fileBlock", "file": file})))
    if answer.startswith("!"):
        raise tool_error(answer)
    return answer


def emit(value) -> None:
    """Shows a text, an image or a file to the user, apart from the script's value."""
    if isinstance(value, (list, tuple)) and value and _is_block(value[0]):
        for one in value:
            emit(one)
        return
    if type(value) is dict and isinstance(value.get("file"), (str, os.PathLike)) and "type" not in value:
        text = _file_block(value)
    else:
        text = to_json("emit", _block(value))
    answer = _block_on(_start_call(_EMIT, "", "", text))
    if answer.startswith("!"):
        raise tool_error(answer)


# --- progress -------------------------------------------------------------------------------------------------------

# Maximum characters of a message. The host keeps fewer.
_MAX_MESSAGE = 2**12


def _amount(what: str, value):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"progress: {what} must be a number: {type(value).__name__}")
    if not 0 <= value < float("inf"):
        raise ValueError(f"progress: {what} must be a number from 0 on: {value}")
    return float(value)


def progress(done, total=None, message=None) -> None:
    """Tells the client how far the script is: `done` of `total`, which may be unknown."""
    report = {"kind": "progress", "done": _amount("done", done)}
    if total is not None:
        report["total"] = _amount("total", total)
    if message is not None:
        report["message"] = printable(str(message)[:_MAX_MESSAGE])
    query_now(report)


# --- what a script finds ----------------------------------------------------------------------------------------------

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
    **{name: _questions[name] for name in DISCOVERY},
}
for _function in (call_mcp_tool, call_mcp_tool_sync, call_tool, call_tools, emit, help, progress):
    _function.__module__ = "mcp"


def install() -> None:
    """Makes the modules that scripts import. Called at build time, before `runtime.install`."""
    mcp = types.ModuleType("mcp", "Servers, and what they have besides tools.")
    mcp.__path__ = []
    for name in _beside_tools:
        setattr(mcp, name, _questions[name])
    mcp.McpToolError = McpToolError
    mcp.tools = tools
    sys.modules["mcp"] = mcp
    sys.modules["mcp_tools"] = ServersModule("mcp_tools", "The run's servers.", tools)
    _globals["mcp"] = mcp


def start(namespace: dict, servers: list, argument_bytes: int) -> None:
    """Puts the run's own names into the script's namespace. `servers` is [[exact name, Python name], …]."""
    _Run.argument_bytes = argument_bytes
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
