"""What a script asks of a language model."""

from cx_guest import tools
from cx_guest.errors import McpToolError
from cx_guest.values import to_json


def _text(options: dict, **extra) -> str:
    fields = {name: value for name, value in options.items() if value is not None and name != "stream"}
    try:
        return to_json("options", {**fields, **extra})
    except TypeError as error:
        raise McpToolError(str(error), code="INVALID_ARGUMENTS") from None


def _call(**call) -> dict:
    return {"kind": "llm", "call": call}


class _Pieces:
    """An answer piece by piece, for `async for` and, blocking, for `for`. It is asked for when the first piece is."""

    def __init__(self, text: str):
        self._text = text
        self._number = None
        self._is_over = False

    def __aiter__(self):
        return self

    async def __anext__(self) -> str:
        if self._is_over:
            raise StopAsyncIteration
        try:
            if self._number is None:
                self._number = await tools.query(_call(open=self._text))
            piece = await tools.query(_call(next=self._number))
        except BaseException:
            self._is_over = True
            raise
        if piece is None:
            self._is_over = True
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """Ends the call at the model."""
        if self._number is not None and not self._is_over:
            self._is_over = True
            await tools.query(_call(close=self._number))

    def __iter__(self):
        return self

    def __next__(self) -> str:
        if self._is_over:
            raise StopIteration
        try:
            if self._number is None:
                self._number = tools.query_now(_call(open=self._text))
            piece = tools.query_now(_call(next=self._number))
        except BaseException:
            self._is_over = True
            raise
        if piece is None:
            self._is_over = True
            raise StopIteration
        return piece

    def close(self) -> None:
        """Ends the call at the model."""
        if self._number is not None and not self._is_over:
            self._is_over = True
            tools.query_now(_call(close=self._number))

    def __await__(self):
        # `await llm.ask(…, stream=True)` is the stream too: what is asked without it has to be awaited.
        return self
        yield

    def __repr__(self) -> str:
        return "<llm answer>"


class Llm:
    """A language model. Each function also with `_sync`, which blocks."""

    __slots__ = ()

    def ask(self, prompt, *, schema=None, model=None, max_tokens=None, system_prompt=None, stream=False):
        """The answer to a prompt: a text, or with a JSON Schema a value that fits it. `stream=True`: for `async for`."""
        options = _options(schema, model, max_tokens, system_prompt)
        text = _text(options, prompt=tools.name_of("the prompt", prompt))
        return _Pieces(text) if stream else tools.query(_call(ask=text))

    def ask_sync(self, prompt, *, schema=None, model=None, max_tokens=None, system_prompt=None, stream=False):
        """The same, blocking. `stream=True`: for `for`."""
        options = _options(schema, model, max_tokens, system_prompt)
        text = _text(options, prompt=tools.name_of("the prompt", prompt))
        return _Pieces(text) if stream else tools.query_now(_call(ask=text))

    def think(self, messages, *, schema=None, model=None, max_tokens=None, system_prompt=None, stream=False):
        """The answer to a conversation: [{"role": "user", "content": "…"}, …]."""
        text = _text(_options(schema, model, max_tokens, system_prompt), messages=messages)
        return _Pieces(text) if stream else tools.query(_call(ask=text))

    def think_sync(self, messages, *, schema=None, model=None, max_tokens=None, system_prompt=None, stream=False):
        """The same, blocking. `stream=True`: for `for`."""
        text = _text(_options(schema, model, max_tokens, system_prompt), messages=messages)
        return _Pieces(text) if stream else tools.query_now(_call(ask=text))

    def extract(self, value, schema, *, model=None, max_tokens=None, system_prompt=None):
        """The value as one that fits the JSON Schema. A value that fits already costs nothing."""
        text = _text(_options(None, model, max_tokens, system_prompt), value=value, schema=schema)
        return tools.query(_call(extract=text))

    def extract_sync(self, value, schema, *, model=None, max_tokens=None, system_prompt=None):
        """The same, blocking."""
        text = _text(_options(None, model, max_tokens, system_prompt), value=value, schema=schema)
        return tools.query_now(_call(extract=text))

    def __repr__(self) -> str:
        return "<llm>"


def _options(schema, model, max_tokens, system_prompt) -> dict:
    return {"schema": schema, "model": model, "maxTokens": max_tokens, "systemPrompt": system_prompt}


Llm.__module__ = "mcp"
