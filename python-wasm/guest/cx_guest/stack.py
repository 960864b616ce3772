"""The stack of an exception as text, with those that led to it and those that it has in it."""

import itertools
import traceback

from cx_guest.exceptions import MAX_CHARACTERS, class_name, frames_of, message_of, positions_of, shortened
from cx_guest.hints import suggestion_for

_MAX_CAUSES = 8
_MAX_MEMBERS = 15
_MAX_LEVELS = 6


def stack_of(error: BaseException) -> str:
    lines: list[str] = []
    _write_chain(error, lines, "", 0, set())
    return shortened("\n".join(lines))


_CAUSE = "The above exception was the direct cause of the following exception:"
_CONTEXT = "During handling of the above exception, another exception occurred:"


def _write_chain(error: BaseException, lines: list[str], margin: str, level: int, seen: set[int]) -> None:
    """Writes an exception after those that led to it, as Python does."""
    chain: list[tuple[BaseException, str | None]] = []
    current: BaseException | None = error
    joint = None
    while current is not None and id(current) not in seen and len(chain) < _MAX_CAUSES:
        seen.add(id(current))
        chain.append((current, joint))
        if isinstance(current.__cause__, BaseException):
            current, joint = current.__cause__, _CAUSE
        elif not current.__suppress_context__ and isinstance(current.__context__, BaseException):
            current, joint = current.__context__, _CONTEXT
        else:
            current = None
    for one, joint in reversed(chain):
        _write_one(one, lines, margin, level, seen)
        if joint is not None:
            lines += [margin, margin + joint, margin]
        if sum(map(len, lines)) > MAX_CHARACTERS:
            return


def _write_one(error: BaseException, lines: list[str], margin: str, level: int, seen: set[int]) -> None:
    group = isinstance(error, BaseExceptionGroup)
    inner = margin + "  | " if group else margin
    title = "Exception Group Traceback (most recent call last):" if group else "Traceback (most recent call last):"
    entries = frames_of(error)
    if entries:
        lines.append((margin + "  + " if group and level == 0 else inner) + title)
        frames = ((entry.tb_frame, positions_of(entry)) for entry in entries)
        summary = traceback.StackSummary._extract_from_extended_frame_gen(frames, limit=None)
        for text in summary.format():
            lines += [inner + line for line in text.rstrip("\n").split("\n")]
    for line in _only(error):
        lines.append(inner + line)
    if not group:
        return
    if level >= _MAX_LEVELS:
        lines.append(f"{inner}... (nested too deeply)")
        return
    members = error.exceptions
    for number, member in enumerate(members[:_MAX_MEMBERS], 1):
        lines.append(f"{margin}  {'+-' if number == 1 else '  '}+---------------- {number} ----------------")
        _write_chain(member, lines, margin + "    | ", level + 1, seen)
        if sum(map(len, lines)) > MAX_CHARACTERS:
            return
    if len(members) > _MAX_MEMBERS:
        lines.append(f"{margin}    | and {len(members) - _MAX_MEMBERS} more exceptions")
    lines.append(f"{margin}    +------------------------------------")


def _only(error: BaseException) -> list[str]:
    """The exception itself: its name, message and notes."""
    lines = []
    name = class_name(error)
    try:
        module = type(error).__module__
        if module not in ("builtins", "__main__", "mcp"):
            name = f"{module}.{name}"
    except BaseException:
        pass
    message = message_of(error) + suggestion_for(error)
    if isinstance(error, SyntaxError):
        lines += _syntax_lines(error)
    lines += (f"{name}: {message}" if message else name).split("\n")
    try:
        for note in itertools.islice(error.__notes__, 10):
            lines += shortened(str(note)).split("\n")
    except BaseException:
        # Mostly there are none.
        pass
    return lines


def _syntax_lines(error: SyntaxError) -> list[str]:
    """Where code that the script made of text is wrong."""
    if not isinstance(error.lineno, int) or not isinstance(error.text, str):
        return []
    text = error.text.rstrip("\n")[:200]
    lines = [f'  File "{error.filename or "<string>"}", line {error.lineno}', "    " + text.lstrip()]
    if isinstance(error.offset, int) and 0 < error.offset <= 200:
        lines.append("    " + " " * (error.offset - 1 - (len(text) - len(text.lstrip()))) + "^")
    return lines
