"""Values to JSON text and back. C code does the work; Python code walks a value only to find what is wrong with it.

| Python | JSON |
|---|---|
| None, bool, str | as they are; a lone surrogate is U+FFFD |
| int | a number; beyond 64 bits a string, which is exact; in arguments of tools always a number |
| float | a number; NaN and infinities are null and -0.0 is 0, as in TypeScript |
| list, tuple, named tuple, set, frozenset, deque, range, array, views of a dict | an array |
| dict and every other Mapping, SimpleNamespace, dataclass, class of attrs | an object |
| keys: str, int, float, bool, None | text, as `json` writes it; a key that is an Enum, date, UUID or path as below |
| Enum | its value |
| datetime, date, time | ISO 8601 text |
| timedelta | seconds |
| Decimal, Fraction, UUID, path, IP address, ZoneInfo, timezone, UserString | text |
| an exception | {"name", "message"}, and "code" of a tool's error |
| bytes, iterators, coroutines, functions, classes, modules, objects of other classes | an error that names the path |
| a cycle, more than 127 levels, a number of more than 4,300 digits | an error that names the path |
"""

import array
import collections
import collections.abc
import dataclasses
import datetime
import decimal
import enum
import fractions
import inspect
import ipaddress
import json
import json.decoder
import json.encoder
import math
import pathlib
import re
import types
import uuid
import zoneinfo

from cx_guest.errors import McpToolError
from cx_guest.output import printable

# serde_json, which reads it, goes no deeper.
_MAX_LEVELS = 127

_TEXT = (
    decimal.Decimal,
    fractions.Fraction,
    uuid.UUID,
    pathlib.PurePath,
    ipaddress.IPv4Address,
    ipaddress.IPv6Address,
    ipaddress.IPv4Network,
    ipaddress.IPv6Network,
    zoneinfo.ZoneInfo,
    datetime.timezone,
    collections.UserString,
)
_DATES = (datetime.datetime, datetime.date, datetime.time)
_LISTS = (
    set,
    frozenset,
    collections.deque,
    range,
    array.array,
    collections.abc.Set,
    collections.abc.ValuesView,
    collections.UserList,
)


class _Refused(TypeError):
    """What of a value JSON does not have, before its path is known."""


def _plain(value):
    """Returns what stands for a value that `json` does not know. One level: `json` asks again for what is inside."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, _DATES):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, _TEXT):
        return str(value)
    if isinstance(value, collections.abc.Mapping):
        return dict(value)
    if isinstance(value, _LISTS):
        return list(value)
    if isinstance(value, type):
        raise _Refused(f"is the class {value.__name__}, which JSON does not have; return its name or its data")
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, types.SimpleNamespace):
        return vars(value)
    if isinstance(value, BaseException):
        plain = {"name": type(value).__name__, "message": str(value)}
        return {**plain, "code": value.code} if isinstance(value, McpToolError) else plain
    fields = inspect.getattr_static(type(value), "__attrs_attrs__", None)
    if isinstance(fields, tuple):
        return {field.name: getattr(value, field.name) for field in fields}
    raise _Refused(_refusal(value))


# Classes of libraries -> what to return of their objects.
_INSTEAD = {
    "_io.BytesIO": "use .getvalue() and base64.b64encode(data).decode()",
    "_io.StringIO": "use .getvalue()",
    "bs4.BeautifulSoup": "use .get_text(), or str()",
    "bs4.element.Tag": "use .get_text(), .attrs or str()",
    "mcp.Response": "use its .json() or .text()",
    "mcp.State": "use `await state.get(key)`",
    "re.Match": "use .group(), .groups() or .groupdict()",
    "re.Pattern": "use .pattern",
    "sqlite3.Row": "use dict(row)",
    "string.templatelib.Template": 'a t-string is not a text: write f"…"',
    "xml.etree.ElementTree.Element": 'use .text, .attrib or ElementTree.tostring(element, "unicode")',
}
# Methods with which objects of other classes give their data.
_METHODS = ("to_dict", "model_dump", "as_dict", "asdict", "_asdict", "tolist")


def _instead(value) -> str:
    """What to return instead of an object of a class that JSON does not have."""
    cls = type(value)
    if instead := _INSTEAD.get(_full_name(cls)):
        return instead
    for name in _METHODS:
        if callable(inspect.getattr_static(cls, name, None)):
            return f"use .{name}()"
    if isinstance(value, collections.abc.Iterable):
        is_server = _full_name(cls).startswith("cx_guest.")
        return "return a dict, or the names by list() of it" if is_server else "use list() of it"
    has_fields = any("__dict__" in vars(base) for base in cls.__mro__)
    return "return a dict, for instance vars() of it" if has_fields else "return a dict of its fields"


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__name__}"


def _refusal(value) -> str:
    kind = type(value).__name__
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"is {kind}, which JSON does not have; use base64.b64encode(data).decode(), or data.decode() for text"
    if inspect.iscoroutine(value):
        return f"is the coroutine `{value.__qualname__}`; did you forget `await`?"
    if isinstance(value, collections.abc.AsyncIterator) and not inspect.isasyncgen(value):
        return "is an async iterator, which is read only once; use [x async for x in it]"
    if inspect.isawaitable(value):
        return f"is a {kind} that was not awaited; did you forget `await`?"
    if isinstance(value, complex):
        return "is a complex number, which JSON does not have; use [z.real, z.imag]"
    if inspect.isasyncgen(value):
        return "is an async generator; use [x async for x in it]"
    if isinstance(value, collections.abc.Iterator) and _full_name(type(value)) not in _INSTEAD:
        return f"is a {kind}, which is read only once; use list()"
    if isinstance(value, types.ModuleType):
        return f"is the module {value.__name__}, which JSON does not have"
    if isinstance(value, types.BuiltinMethodType) and isinstance(value.__self__, dict):
        name = value.__name__
        if dict.__contains__(value.__self__, name):
            return f"is the method `{value.__qualname__}`; for the dict's field of this name write `[\"{name}\"]`"
    if callable(value) and hasattr(value, "__qualname__"):
        return f"is the {kind} `{value.__qualname__}`, which JSON does not have; did you mean to call it?"
    return f"is an object of class {kind}, which JSON does not have; {_instead(value)}"



def _encoder(markers: dict):
    """What json.JSONEncoder makes anew for each value. `markers` has the objects in which it is."""
    return json.encoder.c_make_encoder(
        markers, _plain, json.encoder.encode_basestring, None, ":", ",", False, False, False
    )


_markers: dict = {}
_encode = _encoder(_markers)

# Digits as one letter, to find long numbers at the speed of C.
_DIGITS = bytes(48 if 48 <= byte <= 57 else byte for byte in range(256))
_LONG = b"0" * 19
_MAX_INTEGER = 2**64 - 1
_MIN_INTEGER = -(2**63)


def to_json(what: str, value, *, is_exact: bool = False) -> str:
    """Returns `value` as JSON text that UTF-8 can write. `what` names it in errors; `is_exact` keeps all integers.

    Raises TypeError with the path of what JSON does not have, and whatever the value's own methods raise.
    """
    markers, encode = _markers, _encode
    if markers:
        # A method of a value that is being encoded calls a tool, or returns another one as JSON.
        markers = {}
        encode = _encoder(markers)
    try:
        text = "".join(encode(value, 0))
    except (TypeError, ValueError, RecursionError):
        markers.clear()
        text = None
    except BaseException:
        markers.clear()
        raise
    if text is None:
        # Not in the handler: what it raises stands for the first error, it does not follow from it.
        text = _walked(what, value, is_exact)
    if len(text) < 4:
        return text
    try:
        data = text.encode()
    except UnicodeEncodeError:
        text = printable(text)
        data = text.encode()
    if "-0.0" in text or (not is_exact and len(data) >= 19 and _LONG in data.translate(_DIGITS)):
        if _odd_number.search(text):
            return printable(_walked(what, value, is_exact))
    return text


# Also finds such digits in strings: walking is slow, not wrong.
_odd_number = re.compile(r"-0\.0(?![0-9])|[0-9]{19}")


def _walked(what: str, value, is_exact: bool) -> str:
    # What it is walked to has no methods of the script's.
    return "".join(_encoder({})(_walk(value, what, 0, set(), is_exact), 0))


def _walk(value, path: str, level: int, above: set[int], is_exact: bool):
    """Returns `value` made of what `json` writes as it should be. Raises TypeError with the path of what cannot."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        if _MIN_INTEGER <= value <= _MAX_INTEGER:
            return value
        try:
            digits = str(int(value))
            return int(value) if is_exact else digits
        except ValueError:
            raise TypeError(f"{path} is an integer of more than 4300 digits; use hex(), or numbers of less") from None
    if isinstance(value, float):
        return None if not math.isfinite(value) else value or 0
    if level >= _MAX_LEVELS:
        raise TypeError(f"{_short(path)} is nested more than {_MAX_LEVELS} levels deep; return less nested data")
    if id(value) in above:
        raise TypeError(f"{path} is circular: it contains itself")
    above.add(id(value))
    try:
        if isinstance(value, dict):
            return {
                _key(key, path): _walk(inner, _member(path, key), level + 1, above, is_exact) for key, inner in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [_walk(inner, f"{path}[{index}]", level + 1, above, is_exact) for index, inner in enumerate(value)]
        try:
            plain = _plain(value)
        except _Refused as refused:
            raise TypeError(f"{path} {refused}") from None
        return _walk(plain, path, level + 1 if isinstance(value, enum.Enum) else level, above, is_exact)
    finally:
        above.discard(id(value))


def _key(key, path: str) -> str | int | float | bool | None:
    if key is None or isinstance(key, (str, int)):
        return key
    if isinstance(key, float):
        return key if math.isfinite(key) else "NaN" if math.isnan(key) else "Infinity" if key > 0 else "-Infinity"
    if isinstance(key, enum.Enum):
        return _key(key.value, path)
    if isinstance(key, _DATES):
        return key.isoformat()
    if isinstance(key, _TEXT):
        return str(key)
    raise TypeError(f"{path} has a key that is a {type(key).__name__}, which JSON does not have; use str()")


def _member(path: str, key) -> str:
    if isinstance(key, str):
        return f"{path}.{key}" if key.isidentifier() and len(key) <= 64 else f"{path}[{_short(repr(key[:64]))}]"
    return f"{path}[{_short(str(key))}]"


def _short(text: str) -> str:
    return text if len(text) <= 128 else f"{text[:64]}…{text[-32:]}"


def reader(make_object=None):
    """Returns a function that parses JSON text. Objects become dicts, or what `make_object` makes of their pairs."""
    decoder = json.decoder.JSONDecoder(object_pairs_hook=make_object)
    scan, decode = decoder.scan_once, decoder.decode

    def read(text: str):
        try:
            value, end = scan(text, 0)
        except StopIteration:
            return decode(text)
        return value if end == len(text) else decode(text)

    return read


from_json = reader()


def cut(text: str, most: int) -> str:
    """Returns text, cut after the character in which its byte `most + 1` lies."""
    if len(text) * 4 <= most:
        return text
    data = text.encode()
    if len(data) <= most:
        return text
    end = most + 1
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end += 1
    return data[:end].decode()
