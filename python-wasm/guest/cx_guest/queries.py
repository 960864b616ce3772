"""Questions to the host: those of discovery, of state, of a language model and of requests.

Names go to the host as they are written. The host knows exact names and their snake_case forms, and finds the nearest
name to a wrong one.
"""

import wit_world

from cx_guest import loop
from cx_guest.errors import tool_error
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


async def query(question: dict):
    """The value of the host's answer."""
    answer = loop.begin(*query_request(question))
    if not isinstance(answer, str):
        answer = await loop.finish(answer)
    return decode(answer)


def query_now(question: dict):
    """The same, blocking."""
    return decode(loop.block(_start_call(*query_request(question))))


def pair(functions: dict, name: str, doc: str, question, shape=lambda answer: answer) -> None:
    """Adds a question to the host to `functions`: as a coroutine function and, with `_sync` after its name, as a plain
    one."""

    async def later(*positional, **named):
        return shape(await query(question(*positional, **named)))

    def now(*positional, **named):
        return shape(query_now(question(*positional, **named)))

    for function, suffix in ((later, ""), (now, "_sync")):
        function.__name__ = function.__qualname__ = name + suffix
        function.__doc__ = doc
        function.__module__ = "mcp"
        function.__wrapped__ = question
        functions[name + suffix] = function
