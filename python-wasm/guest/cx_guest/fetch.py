"""HTTP requests to hosts that a person has granted. The host decides about every request and every redirect."""

import asyncio
import base64
import itertools
import json as json_module
from collections.abc import Iterable, Mapping

import wit_world

from cx_guest import queries
from cx_guest.options import milliseconds
from cx_guest.output import printable

_numbers = itertools.count(1)


def _question(**call) -> dict:
    return {"kind": "fetch", "call": call}


def _bytes_of(body: dict) -> bytes:
    return body["text"].encode() if "text" in body else base64.b64decode(body["base64"])


def _body_of(content) -> dict:
    content = bytes(content)
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def _close(number: int) -> None:
    # The answer to this query is dropped.
    wit_world.start_call(*queries.query_request(_question(close=number)))


async def _ask(number: int, question: dict):
    try:
        return await queries.query(question)
    except asyncio.CancelledError:
        _close(number)
        raise


class Headers(Mapping):
    """The headers of a response, by names without regard to case. Several values of one name are one, with commas."""

    def __init__(self, pairs: Iterable) -> None:
        self._pairs = [(name.lower(), value) for name, value in pairs]
        self._values = {}
        for name, value in self._pairs:
            self._values[name] = f"{self._values[name]}, {value}" if name in self._values else value

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __contains__(self, name) -> bool:
        return isinstance(name, str) and name.lower() in self._values

    def __iter__(self):
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def get_all(self, name: str) -> list[str]:
        """Every value of one name, such as those of `set-cookie`."""
        return [value for own, value in self._pairs if own == name.lower()]

    def __repr__(self) -> str:
        return f"Headers({self._values!r})"


class _Head:
    """What is known of a response when its body is not read yet."""

    def __init__(self, number: int, head: dict) -> None:
        self.status: int = head["status"]
        self.status_text: str = head["statusText"]
        self.url: str = head["url"]
        self.redirected: bool = head["redirected"]
        self.headers = Headers(head["headers"])
        self._number = number
        self._first = _bytes_of(head["body"])
        self._is_over: bool = head["done"]
        self._is_used = False
        self._all: bytes | None = None

    @property
    def ok(self) -> bool:
        """Whether the status is one of success: 200 to 299."""
        return 200 <= self.status <= 299

    def _begin(self) -> None:
        if self._is_used:
            raise RuntimeError("the body was read already, in parts: keep what it gives")
        self._is_used = True

    def _part(self, answer: dict) -> bytes:
        self._is_over = answer["done"]
        return _bytes_of(answer["body"])

    def _decode(self, content: bytes) -> str:
        encoding = "utf-8"
        for parameter in self.headers.get("content-type", "").split(";")[1:]:
            name, _, value = parameter.strip().partition("=")
            if name.lower() == "charset":
                encoding = value.strip("\"' ") or encoding
        try:
            return content.decode("utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding, "replace")
        except LookupError:
            return content.decode("utf-8-sig", "replace")

    def _end(self) -> None:
        if not self._is_over:
            self._is_over = True
            _close(self._number)

    def __repr__(self) -> str:
        return f"<Response {self.status} {self.url}>"


class Response(_Head):
    """The response to `await fetch(...)`. The body is received as it is read."""

    async def _parts(self):
        try:
            if self._first:
                yield self._first
            while not self._is_over:
                if part := self._part(await _ask(self._number, _question(read=self._number))):
                    yield part
        finally:
            self._end()

    def __aiter__(self):
        """The body in parts, as they come."""
        self._begin()
        return self._parts()

    async def bytes(self) -> bytes:
        """The whole body. Can be called again."""
        if self._all is None:
            self._begin()
            self._all = b"".join([part async for part in self._parts()])
        return self._all

    async def text(self) -> str:
        """The whole body as text, in the encoding that the response names, or else UTF-8."""
        return self._decode(await self.bytes())

    async def json(self):
        """The value of a body that is JSON."""
        return json_module.loads(await self.bytes())

    async def aclose(self) -> None:
        """Ends the response: what is left of the body is not received."""
        self._end()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_error) -> None:
        self._end()


class BlockingResponse(_Head):
    """The response to `fetch_sync(...)`: the same without `await`."""

    def _parts(self):
        try:
            if self._first:
                yield self._first
            while not self._is_over:
                if part := self._part(queries.query_now(_question(read=self._number))):
                    yield part
        finally:
            self._end()

    def __iter__(self):
        """The body in parts, as they come."""
        self._begin()
        return self._parts()

    def bytes(self) -> bytes:
        """The whole body. Can be called again."""
        if self._all is None:
            self._begin()
            self._all = b"".join(self._parts())
        return self._all

    def text(self) -> str:
        """The whole body as text, in the encoding that the response names, or else UTF-8."""
        return self._decode(self.bytes())

    def json(self):
        """The value of a body that is JSON."""
        return json_module.loads(self.bytes())

    def close(self) -> None:
        """Ends the response: what is left of the body is not received."""
        self._end()

    def __enter__(self):
        return self

    def __exit__(self, *_error) -> None:
        self._end()


for _class in (Headers, Response, BlockingResponse):
    _class.__module__ = "mcp"
BlockingResponse.__name__ = BlockingResponse.__qualname__ = "Response"


def _request(number, url, method, headers, params, body, json, timeout, redirect) -> dict:
    """The request as the host reads it."""
    url = queries.name_of("the address", url)
    if params is not None:
        from urllib.parse import urlencode

        url += ("&" if "?" in url else "?") + urlencode(params, doseq=True)
    pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
    pairs = [(printable(str(name)), printable(str(value))) for name, value in pairs]
    names = {name.lower() for name, _ in pairs}
    if json is not None:
        if body is not None:
            raise TypeError("fetch takes `body` or `json`, not both")
        body = json_module.dumps(json, ensure_ascii=False).encode()
        if "content-type" not in names:
            pairs.append(("content-type", "application/json"))
    elif isinstance(body, str):
        body = body.encode()
        if "content-type" not in names:
            pairs.append(("content-type", "text/plain;charset=UTF-8"))
    elif body is not None and not isinstance(body, bytes | bytearray | memoryview):
        raise TypeError(f"the body must be str or bytes, or write `json=` for a value: a {type(body).__name__}")
    request = {
        "id": number,
        "url": url,
        "method": queries.name_of("the method", method or ("GET" if body is None else "POST")),
        "headers": pairs,
        "redirect": redirect,
    }
    if body is not None:
        request["body"] = _body_of(body)
    timeout_ms = None if timeout is None else milliseconds("fetch: `timeout`", timeout)
    if timeout_ms is not None:
        request["timeoutMs"] = timeout_ms
    return request


async def fetch(
    url, *, method=None, headers=None, params=None, body=None, json=None, timeout=None, redirect="follow"
) -> Response:
    """Sends a request to a host that a person has granted. `timeout` in seconds is for the response and its body."""
    number = next(_numbers)
    request = _request(number, url, method, headers, params, body, json, timeout, redirect)
    return Response(number, await _ask(number, _question(open=request)))


def fetch_sync(
    url, *, method=None, headers=None, params=None, body=None, json=None, timeout=None, redirect="follow"
) -> BlockingResponse:
    """The same, blocking."""
    number = next(_numbers)
    request = _request(number, url, method, headers, params, body, json, timeout, redirect)
    return BlockingResponse(number, queries.query_now(_question(open=request)))


def start(namespace: dict) -> None:
    """Gives the script its network. Without a granted host the names stay undefined."""
    for function in (fetch, fetch_sync):
        function.__module__ = "mcp"
        namespace[function.__name__] = function
