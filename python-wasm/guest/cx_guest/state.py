"""What a script keeps from one run to the next."""

import asyncio
import inspect

from cx_guest import queries
from cx_guest.errors import McpToolError
from cx_guest.values import from_json, to_json

# How often `update` tries. A failed try means that another writer has succeeded, so one of them always makes progress.
_MAX_TRIES = 1_000

_MISSING = object()


def _key(key) -> str:
    return queries.name_of("the key", key)


def _text(value) -> str:
    try:
        return to_json("value", value)
    except TypeError as error:
        raise McpToolError(str(error), code="INVALID_ARGUMENTS") from None


def _question(call: dict) -> dict:
    return {"kind": "state", "call": call}


# An entry comes as [value], with its tag as [value, tag], and as [] if it is not there.


def _get(key, tagged: bool = False) -> dict:
    return _question({"get": {"key": _key(key), "tagged": tagged}})


def _set(key, value) -> dict:
    return _question({"set": {"key": _key(key), "value": _text(value)}})


def _delete(key) -> dict:
    return _question({"delete": {"key": _key(key)}})


def _keys(prefix) -> dict:
    return _question({"keys": {"prefix": queries.name_of("the prefix", prefix) if prefix is not None else ""}})


def _set_if(key: str, value, entry: list) -> dict:
    expected = entry[1] if entry else ""
    return _question({"set": {"key": key, "value": _text(value), "expected": expected}})


def _check_update(key, function, default) -> str | None:
    """The default as JSON text: the function may change what it is given, and gets a new one each time."""
    _key(key)
    if not callable(function):
        raise TypeError("state.update takes a function: state.update(key, lambda value: value + 1, 0)")
    return None if default is None else _text(default)


def _old(entry: list, default: str | None):
    if entry:
        return entry[0]
    return None if default is None else from_json(default)


def _gave_up(key: str) -> McpToolError:
    return McpToolError(f"others write `{key}` all the time; try again later", code="STATE_UNAVAILABLE")


# When the last `update` of a key in this run is done. They wait for each other: to try at the same time would only make
# each other try again.
_turns: dict[str, asyncio.Future] = {}


class State:
    """JSON by key, for the workspace or the session of this run. Each function also with `_sync`, which blocks."""

    __slots__ = ()

    async def get(self, key, default=None):
        """The value, or the default if there is none."""
        entry = await queries.query(_get(key))
        return entry[0] if entry else default

    def get_sync(self, key, default=None):
        """The same, blocking."""
        entry = queries.query_now(_get(key))
        return entry[0] if entry else default

    async def set(self, key, value) -> None:
        """Keeps a value that JSON has."""
        await queries.query(_set(key, value))

    def set_sync(self, key, value) -> None:
        """The same, blocking."""
        queries.query_now(_set(key, value))

    async def delete(self, key) -> bool:
        """Forgets a key. Returns whether it was there."""
        return await queries.query(_delete(key))

    def delete_sync(self, key) -> bool:
        """The same, blocking."""
        return queries.query_now(_delete(key))

    async def keys(self, prefix="") -> list[str]:
        """The keys that begin with the prefix, sorted."""
        return await queries.query(_keys(prefix))

    def keys_sync(self, prefix="") -> list[str]:
        """The same, blocking."""
        return queries.query_now(_keys(prefix))

    async def update(self, key, function, default=None):
        """Sets a key to what the function makes of its value. Calls it again if another run was quicker."""
        default = _check_update(key, function, default)
        loop = asyncio.get_running_loop()
        before = _turns.get(key)
        turn = _turns[key] = loop.create_future()
        try:
            if before is not None and before.get_loop() is loop:
                # Not `await before`: the cancellation of this task would cancel that future.
                await asyncio.wait([before])
            entry = await queries.query(_get(key, True))
            for _ in range(_MAX_TRIES):
                value = function(_old(entry, default))
                if inspect.isawaitable(value):
                    value = await value
                entry = await queries.query(_set_if(key, value, entry))
                if entry is True:
                    return value
            raise _gave_up(key)
        finally:
            if _turns.get(key) is turn:
                del _turns[key]
            if not turn.done():
                turn.set_result(None)

    def update_sync(self, key, function, default=None):
        """The same, blocking."""
        default = _check_update(key, function, default)
        entry = queries.query_now(_get(key, True))
        for _ in range(_MAX_TRIES):
            value = function(_old(entry, default))
            entry = queries.query_now(_set_if(key, value, entry))
            if entry is True:
                return value
        raise _gave_up(key)

    def __repr__(self) -> str:
        return "<state>"


State.__module__ = "mcp"
queries.document_blocking(State)
