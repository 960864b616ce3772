"""What an exception says: its name, its text, and the locations of its traceback."""

import itertools
import linecache

from cx_guest.source import utf16_units

# Maximum size of what the host gets of an exception. A model reads it.
MAX_CHARACTERS = 8_192
_MAX_FRAMES = 1_000

# Frames that tell the author nothing: those of this package, and those between an author's `await` and `raise`.
_HIDDEN = ("cx_guest", "/asyncio/", "importlib/_bootstrap", "<frozen importlib", "<cx", "wit_world", "componentize")


def shortened(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + "…"


def class_name(error: BaseException) -> str:
    return str(type.__getattribute__(type(error), "__name__"))[:256]


def message_of(error: BaseException) -> str:
    try:
        if isinstance(error, SyntaxError) and error.msg is not None:
            return shortened(str(error.msg))
        return shortened(str(error))
    except BaseException as second:
        return f"an exception whose text cannot be made: {type(second).__name__}"


def frames_of(error: BaseException) -> list:
    """The traceback's entries without hidden frames; of very many the last."""
    found = []
    entry = error.__traceback__
    while entry is not None:
        file = entry.tb_frame.f_code.co_filename
        if not any(part in file for part in _HIDDEN) and file != "app.py" and not file.endswith("/app.py"):
            found.append(entry)
            if len(found) > 2 * _MAX_FRAMES:
                del found[1 : _MAX_FRAMES + 1]
        entry = entry.tb_next
    return found


def positions_of(entry) -> tuple:
    positions = entry.tb_frame.f_code.co_positions()
    found = next(itertools.islice(positions, entry.tb_lasti // 2, None), (None,) * 4) if entry.tb_lasti >= 0 else None
    if found is None or found[0] is None:
        return (entry.tb_lineno, None, None, None)
    return found


def location_of(error: BaseException, script: str) -> tuple[int, int] | None:
    """Line and column of the deepest location in the script itself."""
    for entry in reversed(frames_of(error)):
        if entry.tb_frame.f_code.co_filename != script:
            continue
        line, _, column, _ = positions_of(entry)
        if line is None:
            return None
        text = source_line(script, line)
        before = text.encode("utf-8", "replace")[: column or 0].decode("utf-8", "ignore")
        return (line, utf16_units(before) + 1)
    if isinstance(error, BaseExceptionGroup) and error.exceptions:
        return location_of(error.exceptions[0], script)
    return None


def source_line(script: str, line: int) -> str:
    return linecache.getline(script, line)
