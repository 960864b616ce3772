"""The functions with which a script calls tools.

A call starts when it is awaited, as every coroutine of Python does: `asyncio.gather` and tasks overlap calls. A
coroutine that is never awaited calls nothing, and a warning names it.
"""

from collections.abc import Mapping

import wit_world

from cx_guest import loop
from cx_guest.errors import McpToolError, tool_error
from cx_guest.options import milliseconds, timeout_among, timeout_of
from cx_guest.output import printable
from cx_guest.queries import decode, name_of
from cx_guest.values import from_json, to_json

_TOOL = wit_world.Operation.TOOL
_FULL_NAME = wit_world.Operation.FULL_NAME

_begin = loop.begin
_finish = loop.finish
_block_on = loop.block
_start_call = wit_world.start_call


class _Run:
    """What the functions keep about their run."""

    argument_bytes = 0


def limit_arguments(most: int) -> None:
    """Sets the maximum size of one call's arguments, in bytes of JSON."""
    _Run.argument_bytes = most


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


def _written(server: str, tool: str, positional: tuple, named: dict) -> tuple:
    """The arguments of a call as written: keyword arguments or one dict, or both; and the time that its options give
    it, in milliseconds."""
    if not positional:
        return named or None, None
    first, *options = positional
    if len(options) > 1 or options and not isinstance(options[0], Mapping | None):
        raise TypeError(
            f"{server}.{tool} takes keyword arguments or one dict, as in {tool}(path='a.txt'): "
            f"{len(positional)} positional arguments"
        )
    timeout_ms = timeout_among(f"{server}.{tool}", options)
    return _merged(f"{server}.{tool}", first, named), timeout_ms


def _merged(what: str, first, named: dict):
    """The arguments of a call that has a first one and keywords. Raises TypeError if they are not one dict."""
    if not named:
        return first
    if first is None:
        return named
    if not isinstance(first, Mapping):
        raise TypeError(f"{what} takes keyword arguments or one dict: a {type(first).__name__} and keywords")
    return {**first, **named}


# --- one tool ------------------------------------------------------------------------------------------------------


def make_tool(server: str, tool: str, decode=from_json):
    """Returns the coroutine function that calls a tool. `decode` makes the value of the answer's JSON text."""
    server, tool = printable(server), printable(tool)

    async def call(*positional, **named):
        arguments, timeout_ms = _written(server, tool, positional, named)
        answer = _begin(_TOOL, server, tool, _arguments(server, tool, arguments), timeout_ms)
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


def by_full_name(name: str):
    """Returns the coroutine function that calls the tool of a full name."""
    name = printable(name)

    async def call(*positional, **named):
        arguments, timeout_ms = _written("tools", name, positional, named)
        answer = _begin(_FULL_NAME, "", name, _arguments(None, name, arguments), timeout_ms)
        if answer.__class__ is not str:
            answer = await _finish(answer, True)
        return decode(answer)

    call.__name__ = call.__qualname__ = call.__cx_tool__ = name
    call.__module__ = "mcp_tools"
    call.__doc__ = f"Calls the tool `{name}`."
    return call


# --- calls by name ------------------------------------------------------------------------------------------------


# Options are not a parameter with a name, which could be that of an argument among the keywords.


async def call_mcp_tool(name, params=None, *options, **named):
    """Calls the tool of this full name, `mcp__server__tool` or `server.tool`."""
    name = name_of("the tool's name", name)
    timeout_ms = timeout_among("call_mcp_tool", options)
    arguments = _merged("call_mcp_tool", params, named)
    answer = _begin(_FULL_NAME, "", name, _arguments(None, name, arguments), timeout_ms)
    if not isinstance(answer, str):
        answer = await _finish(answer, True)
    return decode(answer)


def call_mcp_tool_sync(name, params=None, *options, **named):
    """Calls the tool of this full name, and blocks until it has answered."""
    name = name_of("the tool's name", name)
    timeout_ms = timeout_among("call_mcp_tool_sync", options)
    arguments = _merged("call_mcp_tool_sync", params, named)
    return decode(_block_on(_start_call(_FULL_NAME, "", name, _arguments(None, name, arguments)), timeout_ms))


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
        options = options.get("max_parallel", options.get("maxParallel"))
    most = options if max_parallel is None else max_parallel
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
        raise TypeError(f"max_parallel must be a whole number from 1: {most!r}")
    return most


def call_tools(calls, options=None, *, max_parallel=None, timeout=None) -> list[dict]:
    """Calls many tools at once, at most `max_parallel` at the same time, and waits for all.

    `timeout` is the time for the answer to each call, in seconds.
    Returns {"ok": …} for each, never raises for a tool's failure. Every call is checked before the first one is sent.
    """
    if isinstance(calls, (str, bytes, Mapping)):
        raise TypeError("call_tools takes a list of {server, tool, args}")
    most = _parallel(options, max_parallel)
    timeout_ms = timeout_of("call_tools", options, ("max_parallel", "maxParallel"))
    if timeout is not None:
        timeout_ms = milliseconds("call_tools: `timeout`", timeout)
    requests = []
    for index, call in enumerate(calls):
        request = _request_item(call)
        if isinstance(request, dict):
            message = request["error"]["message"]
            raise TypeError(f"call_tools: nothing was sent, because of call {index}: {message}")
        requests.append(request)
    return [_result(answer) for answer in loop.block_all(requests, most, timeout_ms)]


def call_tool(server, tool, args=None, *options, **named) -> dict:
    """Calls one tool and waits for it."""
    if isinstance(server, str) and isinstance(tool, Mapping):
        return _refused("expected call_tool(server, tool, args); with one name it is call_mcp_tool_sync(name, args)")
    try:
        timeout_ms = timeout_among("call_tool", options)
        arguments = _merged("call_tool", args, named)
    except TypeError as error:
        return _refused(str(error))
    request = _request(server, tool, arguments)
    return request if isinstance(request, dict) else _result(_block_on(_start_call(*request), timeout_ms))
