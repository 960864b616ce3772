"""Compiles a script: finds the code in a Markdown fence, parses it, and says what is wrong with it.

Lines and columns are those of the script as it was written: code is moved by adding empty lines before it.
"""

import ast
import re

from cx_guest.fences import fenced
from cx_guest.program import Program, compile_tree

_PARSE = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


class SourceError(Exception):
    """The script is not valid Python. `report` has the message, line and column (UTF-16 units, from 1)."""

    def __init__(self, report: dict):
        super().__init__(report["message"])
        self.report = report


def compile_script(source: str, name: str) -> Program:
    """Compiles `source`. Raises SourceError."""
    if source.startswith("\ufeff"):
        source = source[1:]
    # A text that begins with a fence is not Python as a whole, so that is not tried.
    if source.lstrip()[:3] in ("```", "~~~"):
        parts = fenced(source)
        if parts:
            return _compile_part(parts[0], name)
    try:
        return _compile_part((source, 0), name)
    except SourceError as error:
        if "```" not in source and "~~~" not in source:
            raise
        whole = error
    parts = fenced(source)
    reported = whole
    for index, part in enumerate(parts):
        try:
            return _compile_part(part, name)
        except SourceError as error:
            # If the whole text failed in the prose before the code, the error in the code is more useful.
            if index == 0 and whole.report.get("line", 0) <= part[1]:
                reported = error
    raise reported


# --- parsing ------------------------------------------------------------------------------------------------------


def _compile_part(part: tuple[str, int], name: str) -> Program:
    text, lines_before = part
    text = "\n" * lines_before + text
    parsed = False
    try:
        tree = _parse(text, name)
        parsed = True
        # Before `compile_tree`, which changes the tree.
        notes = _notes(tree) if "maxsize" in text else []
        program = compile_tree(tree, name)
        program.notes = notes
        return program
    except SyntaxError as error:
        raise SourceError(_report(error, text, parsed)) from None
    except RecursionError:
        report = {"name": "SyntaxError", "message": "nested too deeply"}
        report["hint"] = "split it into functions or statements"
        raise SourceError(report) from None
    except (ValueError, OverflowError, MemoryError) as error:
        reason = str(error) or type(error).__name__
        report = {"name": "SyntaxError", "message": f"the source cannot be compiled: {reason}"}
        raise SourceError(report) from None


def _parse(text: str, name: str) -> ast.Module:
    try:
        return compile(text, name, "exec", _PARSE, dont_inherit=True)
    except IndentationError:
        tree = _parse_indented(text, name) if _FIRST_LINE_INDENTED.match(text) else None
        if tree is None:
            raise
        return tree


# After blank lines and comments.
_FIRST_LINE_INDENTED = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]+[^\s#]")


def _parse_indented(text: str, name: str) -> ast.Module | None:
    """Parses a text that is indented as a whole, as the body of an `if`; its lines and columns stay.

    Returns None if that is not what is wrong with it.
    """
    try:
        outer = compile("if 1:\n" + text, name, "exec", _PARSE, dont_inherit=True)
    except SyntaxError as error:
        if error.lineno is not None:
            error.lineno -= 1
        if error.end_lineno:
            error.end_lineno -= 1
        raise
    statement = outer.body[0]
    if len(outer.body) != 1 or not isinstance(statement, ast.If) or statement.orelse:
        return None
    tree = ast.Module(body=statement.body, type_ignores=[])
    ast.increment_lineno(tree, -1)
    return tree


# --- notes --------------------------------------------------------------------------------------------------------


def _notes(tree: ast.Module) -> list[str]:
    """Returns what the author should know about the first use of `sys.maxsize`, if there is one.

    Most scripts use it as a bound that no number exceeds. Here many do, and nothing would say so.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            used = node.attr == "maxsize" and isinstance(node.value, ast.Name) and node.value.id == "sys"
        else:
            used = isinstance(node, ast.ImportFrom) and node.module == "sys"
            used = used and any(alias.name == "maxsize" for alias in node.names)
        if used:
            note = "sys.maxsize is 2147483647 here, as indexes have 32 bits: as a bound of numbers use math.inf"
            return [f"line {node.lineno}: {note}"]
    return []


# --- errors -------------------------------------------------------------------------------------------------------


def _report(error: SyntaxError, text: str, parsed: bool) -> dict:
    report = {"name": type(error).__name__, "message": str(error.msg)}
    line = error.lineno
    if not line or line < 1:
        if "\0" not in text:
            return report
        line = text.count("\n", 0, text.index("\0")) + 1
    report["line"] = line
    lines = text.split("\n", line)
    shown = lines[line - 1] if line <= len(lines) else ""
    offset = max((error.offset or 1) - 1, 0)
    # The parser counts characters, the compiler bytes.
    before = shown.encode("utf-8", "replace")[:offset].decode("utf-8", "ignore") if parsed else shown[:offset]
    report["column"] = utf16_units(before) + max(offset - len(shown), 0) * (not parsed) + 1
    if hint := _hint(text, report["message"], shown):
        report["hint"] = hint
    return report


def utf16_units(text: str) -> int:
    """Returns the length of `text` as TypeScript's columns count it."""
    return len(text) + sum(character > "\uffff" for character in text)


_TYPESCRIPT = re.compile(r"^\s*(?:(?:const|let|var|export|interface|async function|function)\s.*|.*[{;]|\}.*|//.*)$")

# `!pip install pandas`, `%timeit f()`.
_NOTEBOOK = re.compile(r"\s*[!%]+[A-Za-z]")


def _hint(text: str, message: str, line: str) -> str | None:
    if message in ("'await' outside async function", "asynchronous comprehension outside of an asynchronous function"):
        return "make the function `async def`"
    if message == "invalid syntax" and _NOTEBOOK.match(line):
        return "lines with `!` or `%` are of notebooks: a script starts no processes and installs no packages"
    lines = [line for line in text.splitlines() if line.strip()][:200]
    if sum(1 for line in lines if _TYPESCRIPT.match(line)) * 2 > len(lines):
        return "this looks like TypeScript: run it as TypeScript, or write Python"
    return None
