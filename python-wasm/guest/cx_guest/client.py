"""What a script sends to the client while it runs: content blocks, and its progress."""

import base64
import os
from collections.abc import Mapping

import wit_world

from cx_guest import loop
from cx_guest.errors import tool_error
from cx_guest.output import printable
from cx_guest.queries import query_now, query_request
from cx_guest.values import to_json

_EMIT = wit_world.Operation.EMIT

_start_call = wit_world.start_call

# --- emit ---------------------------------------------------------------------------------------------------------

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
    answer = loop.block(_start_call(*query_request({"kind": "fileBlock", "file": file})))
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
    answer = loop.block(_start_call(_EMIT, "", "", text))
    if answer.startswith("!"):
        raise tool_error(answer)


# --- progress -----------------------------------------------------------------------------------------------------

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
