"""Finds code inside Markdown fences. The rules are those of TypeScript: `src/engine/fence.rs`."""

import re

_PYTHON = frozenset({"python", "py", "python3", "py3"})


def _marker(line: str) -> tuple[str, str] | None:
    """Returns the fence and the language of a line that opens or closes one."""
    line = line.strip()
    sign = line[:1]
    if sign not in ("`", "~") or not sign:
        return None
    language = line.lstrip(sign)
    length = len(line) - len(language)
    language = language.strip()
    return (line[:length], language) if length >= 3 and "`" not in language else None


def fenced(source: str) -> list[tuple[str, int]]:
    """Returns the fenced parts, each with the number of lines before it, in the order in which they should be tried.

    Python first, then fences that name no language. A fence that opens where a string of three quotes may be open is
    part of that string.
    """
    named: list[tuple[str, int]] = []
    unnamed: list[tuple[str, int]] = []

    def collect(language: str, first: int, last: int) -> None:
        word = re.split(r"\W", language, maxsplit=1)[0].lower()
        if word in _PYTHON:
            named.append(("".join(lines[first:last]), first))
        elif not word:
            unnamed.append(("".join(lines[first:last]), first))

    lines = re.split(r"(?<=\n)", source)
    opened: tuple[str, str, int] | None = None
    in_string = False
    for number, line in enumerate(lines):
        marker = _marker(line)
        if opened is None:
            if marker is not None and not in_string:
                opened = (*marker, number + 1)
            elif (line.count('"""') + line.count("'''")) % 2:
                in_string = not in_string
        elif marker is not None and marker[1] == "" and marker[0].startswith(opened[0]):
            collect(opened[1], opened[2], number)
            opened = None
    if opened is not None:
        collect(opened[1], opened[2], len(lines))
    return named + unnamed
