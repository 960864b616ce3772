"""Questions to the host: those of discovery, of state, of a language model and of requests.

Names go to the host as they are written. The host knows exact names and their snake_case forms, and finds the nearest
name to a wrong one.
"""

import asyncio
import inspect

import wit_world

from cx_guest import loop
from cx_guest.errors import McpToolError, tool_error
from cx_guest.options import milliseconds, timeout_among
from cx_guest.output import printable
from cx_guest.values import from_json, to_json

_QUERY = wit_world.Operation.QUERY

_start_call = wit_world.start_call


def decode(answer: str):
    """The value of an answer. Raises the error that it may be."""
    if answer.startswith("!"):
        raise tool_error(answer)
    return from_json(answer)


def name_of(what: str, value) -> str:
    """A name as the host takes it. Raises TypeError for what is no text; `what` names it there."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a string: {type(value).__name__}")
    return printable(value)


def query_request(question: dict) -> tuple:
    """The arguments of `start_call` for a query."""
    return _QUERY, "", "", to_json("query", question)


async def query(question: dict, timeout_ms: float | None = None):
    """The value of the host's answer. Raises if there is none within the time, if one is given."""
    if timeout_ms is not None:
        try:
            async with asyncio.timeout(timeout_ms / 1000.0) as time:
                return await query(question)
        except TimeoutError:
            if not time.expired():
                raise
            raise _too_late(timeout_ms) from None
    answer = loop.begin(*query_request(question))
    if not isinstance(answer, str):
        answer = await loop.finish(answer)
    return decode(answer)


def query_now(question: dict, timeout_ms: float | None = None):
    """The same, blocking."""
    started = _start_call(*query_request(question))
    if timeout_ms is None:
        return decode(loop.block(started))
    answer = loop.block_for(started, timeout_ms)
    if answer is None:
        raise _too_late(timeout_ms)
    return decode(answer)


def _too_late(timeout_ms: float) -> McpToolError:
    # As the host says it of a tool's call.
    message = f"no answer within the {int(timeout_ms)} ms that the script gave the call"
    return McpToolError(message, code="TOOL_TIMEOUT")


def pair(functions: dict, name: str, doc: str, question, shape=lambda answer: answer, options_at=None) -> None:
    """Adds a question to the host to `functions`: as a coroutine function and, with `_sync` after its name, as a plain
    one. Both take the time for the answer as `timeout`, in seconds.

    With `options_at`, all keywords are the question's own, and the time is in a dict at this position.
    """

    def timed(positional: tuple, named: dict) -> tuple[dict, float | None]:
        if options_at is not None:
            timeout_ms = timeout_among(name, positional[options_at:])
            return question(*positional[:options_at], **named), timeout_ms
        timeout = named.pop("timeout", None)
        timeout_ms = None if timeout is None else milliseconds(f"{name}: `timeout`", timeout)
        return question(*positional, **named), timeout_ms

    async def later(*positional, **named):
        return shape(await query(*timed(positional, named)))

    def now(*positional, **named):
        return shape(query_now(*timed(positional, named)))

    # In the errors of a wrong call.
    question.__name__ = question.__qualname__ = name

    signature = _signature(question, options_at)
    for function, suffix in ((later, ""), (now, "_sync")):
        function.__name__ = function.__qualname__ = name + suffix
        function.__doc__ = f"{doc} Blocks." if suffix else doc
        function.__module__ = "mcp"
        function.__signature__ = signature
        functions[name + suffix] = function


def _signature(question, options_at: int | None) -> inspect.Signature:
    """That of the functions for a question: its own parameters, and the time for the answer."""
    parameters = list(inspect.signature(question).parameters.values())
    if options_at is None:
        parameters.append(inspect.Parameter("timeout", inspect.Parameter.KEYWORD_ONLY, default=None))
    else:
        parameters.insert(options_at, inspect.Parameter("options", inspect.Parameter.VAR_POSITIONAL))
    return inspect.Signature(parameters)


def document_blocking(cls: type) -> None:
    """Gives each blocking method of a class the documentation of the other form."""
    for name, function in vars(cls).items():
        if name.endswith("_sync"):
            function.__doc__ = f"{getattr(cls, name.removesuffix('_sync')).__doc__.rstrip()}\n\nBlocks."
