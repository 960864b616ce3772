"""What a script asks of a language model."""

import wit_world

from cx_guest import queries
from cx_guest.errors import McpToolError
from cx_guest.options import milliseconds
from cx_guest.values import to_json

_start_call = wit_world.start_call


def _text(options: dict, **extra) -> str:
    fields = {name: value for name, value in options.items() if value is not None and name != "stream"}
    try:
        return to_json("options", {**fields, **extra})
    except TypeError as error:
        raise McpToolError(str(error), code="INVALID_ARGUMENTS") from None


def _call(**call) -> dict:
    return {"kind": "llm", "call": call}


# What reads on in an answer that was left is told: an answer that ended silently would look complete.
_LEFT = (
    "this answer was left before its end, which has ended the request; to read on after a loop, keep its iterator: "
    "`pieces = aiter(llm.ask(…, stream=True))`, or `iter(…)` for `ask_sync`"
)
_BUSY = "another task is reading this answer: a piece is read after the one before it"


class _Pieces:
    """An answer piece by piece, for `async for` and, blocking, for `for`. It is asked for when the first piece is.

    A loop that is left ends the request at the model, as in TypeScript. Python tells an iterator nothing when a loop is
    left, so each loop gets an iterator of its own: nothing else refers to it, and CPython, which counts references,
    drops it as `break`, `return` or an exception leaves the loop.
    """

    _number: int | None = None
    _is_over = False
    _was_left = False
    _is_reading = False

    def __init__(self, text: str):
        self._text = text

    def __aiter__(self):
        return _AsyncLoop(self)

    async def __anext__(self) -> str:
        if self._is_at_end():
            raise StopAsyncIteration
        self._begin()
        try:
            piece = await queries.query(_call(next=self._number))
        except McpToolError:
            # The host has ended it.
            self._is_over = True
            raise
        except BaseException:
            # Such as the cancellation of the task.
            self._leave()
            raise
        finally:
            self._is_reading = False
        if piece is None:
            self._is_over = True
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """Ends the request at the model."""
        if self._end():
            await queries.query(_call(close=self._number))

    def __iter__(self):
        return _Loop(self)

    def __next__(self) -> str:
        if self._is_at_end():
            raise StopIteration
        self._begin()
        try:
            piece = queries.query_now(_call(next=self._number))
        except McpToolError:
            self._is_over = True
            raise
        except BaseException:
            self._leave()
            raise
        finally:
            self._is_reading = False
        if piece is None:
            self._is_over = True
            raise StopIteration
        return piece

    def close(self) -> None:
        """Ends the request at the model."""
        if self._end():
            queries.query_now(_call(close=self._number))

    def __await__(self):
        # `await llm.ask(…, stream=True)` is the stream too: what is asked without it has to be awaited.
        return self
        yield

    def __del__(self):
        self._leave()

    def __repr__(self) -> str:
        return "<llm answer>"

    def _is_at_end(self) -> bool:
        if self._was_left:
            raise RuntimeError(_LEFT)
        return self._is_over

    def _begin(self) -> None:
        """Before a piece is read. The host opens an answer at once: it asks the model for the first piece."""
        if self._is_reading:
            raise RuntimeError(_BUSY)
        if self._number is None:
            try:
                self._number = queries.query_now(_call(open=self._text))
            except BaseException:
                self._is_over = True
                raise
        self._is_reading = True

    def _end(self) -> bool:
        """Makes this the end. Returns whether the host has to be told."""
        is_open = not self._is_over and self._number is not None
        self._is_over = True
        return is_open

    def _leave(self) -> None:
        """Ends the request of an answer whose reading has begun. Does not wait: a destructor must not."""
        if self._number is not None and self._end():
            self._was_left = True
            _start_call(*queries.query_request(_call(close=self._number)))


class _AsyncLoop:
    """One `async for` over an answer."""

    __slots__ = ("_pieces",)

    def __init__(self, pieces: _Pieces):
        self._pieces = pieces

    def __aiter__(self):
        return self

    def __anext__(self):
        return self._pieces.__anext__()

    async def aclose(self) -> None:
        """Ends the request at the model."""
        await self._pieces.aclose()

    def __del__(self):
        self._pieces._leave()


class _Loop:
    """One `for` over an answer."""

    __slots__ = ("_pieces",)

    def __init__(self, pieces: _Pieces):
        self._pieces = pieces

    def __iter__(self):
        return self

    def __next__(self) -> str:
        return self._pieces.__next__()

    def close(self) -> None:
        """Ends the request at the model."""
        self._pieces.close()

    def __del__(self):
        self._pieces._leave()


class Llm:
    """A language model. Each function also with `_sync`, which blocks."""

    __slots__ = ()

    def ask(
        self, prompt, *, schema=None, model=None, max_tokens=None, system_prompt=None, stream=False, timeout=None
    ):
        """The answer to a prompt: a text, or with a JSON Schema a value that fits it. `stream=True`: for `async for`.

        `timeout` is the time for the answer, in seconds.
        """
        options = _options(schema, model, max_tokens, system_prompt)
        text = _text(options, prompt=queries.name_of("the prompt", prompt))
        return _answer(queries.query, "llm.ask", text, stream, timeout)

    def ask_sync(
        self, prompt, *, schema=None, model=None, max_tokens=None, system_prompt=None, stream=False, timeout=None
    ):
        """The same, blocking. `stream=True`: for `for`."""
        options = _options(schema, model, max_tokens, system_prompt)
        text = _text(options, prompt=queries.name_of("the prompt", prompt))
        return _answer(queries.query_now, "llm.ask_sync", text, stream, timeout)

    def think(
        self, messages, *, schema=None, model=None, max_tokens=None, system_prompt=None, stream=False, timeout=None
    ):
        """The answer to a conversation: [{"role": "user", "content": "…"}, …]."""
        text = _text(_options(schema, model, max_tokens, system_prompt), messages=messages)
        return _answer(queries.query, "llm.think", text, stream, timeout)

    def think_sync(
        self, messages, *, schema=None, model=None, max_tokens=None, system_prompt=None, stream=False, timeout=None
    ):
        """The same, blocking. `stream=True`: for `for`."""
        text = _text(_options(schema, model, max_tokens, system_prompt), messages=messages)
        return _answer(queries.query_now, "llm.think_sync", text, stream, timeout)

    def extract(self, value, schema, *, model=None, max_tokens=None, system_prompt=None, timeout=None):
        """The value as one that fits the JSON Schema. A value that fits already costs nothing."""
        text = _text(_options(None, model, max_tokens, system_prompt), value=value, schema=schema)
        return queries.query(_call(extract=text), _time("llm.extract", timeout))

    def extract_sync(self, value, schema, *, model=None, max_tokens=None, system_prompt=None, timeout=None):
        """The same, blocking."""
        text = _text(_options(None, model, max_tokens, system_prompt), value=value, schema=schema)
        return queries.query_now(_call(extract=text), _time("llm.extract_sync", timeout))

    def __repr__(self) -> str:
        return "<llm>"


def _answer(ask, what: str, text: str, is_stream: bool, timeout):
    """What `ask` makes of the question, or a stream of its answer."""
    timeout_ms = _time(what, timeout)
    if not is_stream:
        return ask(_call(ask=text), timeout_ms)
    if timeout is not None:
        raise TypeError("an answer in pieces takes no `timeout`: leave the loop when it has taken too long")
    return _Pieces(text)


def _time(what: str, timeout) -> float | None:
    return None if timeout is None else milliseconds(f"{what}: `timeout`", timeout)


def _options(schema, model, max_tokens, system_prompt) -> dict:
    return {"schema": schema, "model": model, "maxTokens": max_tokens, "systemPrompt": system_prompt}


Llm.__module__ = "mcp"
queries.document_blocking(Llm)
