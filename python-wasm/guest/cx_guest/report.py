"""An uncaught exception as data for the host."""

import inspect
import itertools
import json
import linecache
import sys
import traceback

from cx_guest import refused
from cx_guest.errors import McpToolError, host_code
from cx_guest.output import printable
from cx_guest.source import utf16_units

# Maximum sizes of what the host gets of an exception. A model reads it.
_MAX_CHARACTERS = 8_192
_MAX_CAUSES = 8
_MAX_MEMBERS = 15
_MAX_LEVELS = 6
_MAX_FRAMES = 1_000
# A dict with more keys has data for keys.
_MAX_KEYS = 20
# Nothing is looked up in a dict with more keys.
_MAX_LOOKED_AT = 1_000

_NO_HOST = (
    "this run has no network: a person allows hosts with `--allow-net HOST` or with `grants.net` in the configuration; "
    'or call a tool that fetches: `search_tools("fetch")` finds one'
)

_NO_VALUE = "in Python it is `None`"
_TOOL_ERROR = "a failed call raises `McpToolError`"
_ABSENT_ARRAYS = "there is no numpy: use math, statistics, fractions, decimal, array and itertools"
_ABSENT_TABLES = 'there is no pandas: use csv, sqlite3.connect(":memory:"), statistics and collections'
_SHOW = "print(...) what the reader should see, or return the value"

# What to use instead of names that other hosts have.
_HINTS = {
    "fetch": _NO_HOST,
    "fetch_sync": _NO_HOST,
    "require": (
        "write `import json`: Python's standard library is there, packages are not; "
        "`from mcp_tools import <server>` imports a server"
    ),
    "console": "use print()",
    "process": "scripts have no process, environment or arguments; data comes in as `inputs`",
    "searchTools": "in Python it is `search_tools`",
    "callMCPTool": "in Python it is `call_mcp_tool`",
    "discoverMCPTools": "in Python it is `discover_mcp_tools`",
    "getToolSchema": "in Python it is `get_tool_schema`",
    "runtime": "write `from mcp import runtime`",
    "save_tool": "functions are not kept between runs; `await state.set(key, value)` keeps data",
    "null": _NO_VALUE,
    "undefined": _NO_VALUE,
    "JSON": "use json.loads() and json.dumps()",
    "Math": "use the module `math`",
    "Promise": "use `await asyncio.gather(...)`",
    "setTimeout": "use `await asyncio.sleep(seconds)`",
    "MCPError": _TOOL_ERROR,
    "MCPToolError": _TOOL_ERROR,
    "McpError": _TOOL_ERROR,
    "ToolError": _TOOL_ERROR,
    "ToolException": _TOOL_ERROR,
    "np": _ABSENT_ARRAYS,
    "pd": _ABSENT_TABLES,
    "display": _SHOW,
    "get_ipython": _SHOW,
}
_ARGUMENTS = "a script has no arguments: data comes in as `inputs`, or `parse_args([...])` gets a list"

_COUNTS = "indexes and counts are less than 2**31 here; for no limit leave the argument out"

# What Python says of a number that C code cannot take.
_TOO_LARGE = ("index-sized integer", "convert to C ssize_t", "convert to C long", "0 <= x <= sys.maxsize")
# What `zipfile` and `tarfile` say of a module that is not here.
_NO_COMPRESSION = (
    "Compression requires the (missing) bz2 module",
    "Compression requires the (missing) lzma module",
    "Compression requires the (missing) compression.zstd module",
    "bz2 module is not available",
    "lzma module is not available",
    "compression.zstd module is not available",
)

# Frames that tell the author nothing: those of this package, and those between an author's `await` and `raise`.
_HIDDEN = ("cx_guest", "/asyncio/", "importlib/_bootstrap", "<frozen importlib", "<cx", "wit_world", "componentize")


def describe(error: BaseException, script: str) -> str:
    """Returns everything that the host needs to know about an uncaught exception, as JSON text. Never raises.

    Fields: `name`, `message`, `stack`, and where known `hint`, `code` (of a tool error that the host made), `line` and
    `column` (UTF-16 units, from 1) of the deepest location in the author's text.
    """
    try:
        message = _message(error) + _suggestion(error) + _members(error) + _keys(error, script)
        # A model reads the message first: without one, it is the name.
        report = {"name": _name(error), "message": message or _name(error)}
        location = _location(error, script)
        if location is not None:
            report["line"], report["column"] = location
        code = host_code(error)
        if code is not None:
            report["code"] = code
        hint = _hint(error, report["message"], script)
        if hint is not None:
            report["hint"] = hint
        report["stack"] = _stack(error)
        if isinstance(error, McpToolError) and report["name"] == "McpToolError":
            report["stack"] = report["stack"].replace("mcp.McpToolError: ", "McpToolError: ")
        return printable(json.dumps(report, ensure_ascii=False))
    except BaseException as second:
        # Without memory the compiler, which finds the lines of a stack, raises a SystemError.
        # `isinstance` would ask the objects for their class, and run code of the script.
        if issubclass(type(second), MemoryError) or issubclass(type(error), MemoryError):
            return '{"name":"MemoryError","message":"out of memory"}'
        name = type(second).__name__
        return json.dumps({"name": "RuntimeError", "message": f"the script's exception cannot be shown: {name}"})


def _shortened(text: str) -> str:
    return text if len(text) <= _MAX_CHARACTERS else text[:_MAX_CHARACTERS] + "…"


def _name(error: BaseException) -> str:
    return str(type.__getattribute__(type(error), "__name__"))[:256]


def _message(error: BaseException) -> str:
    try:
        if isinstance(error, SyntaxError) and error.msg is not None:
            return _shortened(str(error.msg))
        return _shortened(str(error))
    except BaseException as second:
        return f"an exception whose text cannot be made: {type(second).__name__}"


def _hint(error: BaseException, message: str, script: str) -> str | None:
    """What to do about an error that has a usual cause. The host adds hints about what tools return."""
    if isinstance(error, NameError):
        if isinstance(error.name, str) and error.name.startswith("mcp__"):
            return f"a tool of this full name is called with `await tools.{error.name[:128]}(...)`"
        return _HINTS.get(error.name) if isinstance(error.name, str) else None
    if _name(error) == "ZoneInfoNotFoundError":
        return _near_time_zone(message)
    if isinstance(error, TypeError):
        if message == "'list' object can't be awaited":
            gather = "write `await asyncio.gather(*calls)`"
            blocks = "call_tools" in "".join(linecache.getlines(script))
            return f"{gather}; `call_tools` blocks and is written without `await`" if blocks else gather
        if message.endswith("object can't be awaited") or "can't be used in 'await' expression" in message:
            return "`call_tool`, `call_tools` and the functions that end with `_sync` block: write them without `await`"
    if isinstance(error, (OverflowError, ValueError)):
        return _COUNTS if any(sign in message for sign in _TOO_LARGE) else None
    if message in _NO_COMPRESSION:
        return refused.COMPRESSION
    if isinstance(error, RuntimeError) and message == "no running event loop":
        return "a script with an `await` at its top level runs in an event loop: `await asyncio.gather(...)`"
    return None


def _near_time_zone(message: str) -> str | None:
    """The time zone whose name is nearest to the one in `No time zone found with key …`."""
    import difflib
    import zoneinfo

    wrong = message.strip("'").partition(" with key ")[2][:64].lower()
    names = {}
    for name in sorted(zoneinfo.available_timezones()):
        names[name.lower()] = name
        # `Berlin` is meant too.
        names.setdefault(name.rpartition("/")[2].lower(), name)
    near = difflib.get_close_matches(wrong, names, n=1, cutoff=0.75)
    return f"did you mean `{names[near[0]]}`?" if near else "zoneinfo.available_timezones() has the names"


def _suggestion(error: BaseException) -> str:
    """Python's own `Did you mean`."""
    if isinstance(error, McpToolError) or not isinstance(error, (NameError, AttributeError, ImportError)):
        return ""
    try:
        wrong = getattr(error, "name_from" if isinstance(error, ImportError) else "name", None)
        found = traceback._compute_suggestion_error(error, error.__traceback__, wrong) if wrong else None
        forgotten = isinstance(error, NameError) and wrong in sys.stdlib_module_names
        if found:
            text = f". Did you mean: '{found}'?"
            return f"{text[:-1]}, or did you forget to import '{wrong}'?" if forgotten else text
        return f". Did you forget to import '{wrong}'?" if forgotten else ""
    except BaseException:
        return ""


def _keys(error: BaseException, script: str) -> str:
    """The keys of the dict in which the script looked for another one.

    Only of a plain dict to which names and constants lead, so that no code of the script runs, and only of field names:
    keys that look like data are not repeated.
    """
    try:
        if type(error) is not KeyError or len(error.args) != 1 or not _is_key(error.args[0]):
            return ""
        found = _looked_in(error, script)
        if not _is_plain(found) or len(found) > _MAX_KEYS or error.args[0] in found:
            return ""
        if not found:
            return "; the dict is empty"
        return "; the keys are " + ", ".join(map(repr, found)) if all(map(_is_field, found)) else ""
    except Exception:
        return ""


def _is_key(value) -> bool:
    # Compared by `is`: a class of the script may have its own `==`.
    return type(value) is str or type(value) is int


def _is_plain(value) -> bool:
    """Whether this is a dict in which a key can be looked up and no code of the script runs: keys are compared."""
    if type(value) is not dict or len(value) > _MAX_LOOKED_AT:
        return False
    return all(_is_key(key) or key is None or type(key) is bool or type(key) is float for key in value)


def _is_field(key) -> bool:
    is_name = type(key) is str and key.isascii() and key.replace("-", "_").isidentifier()
    return is_name and len(key) <= 40 and sum(letter.isdigit() for letter in key) < 4


def _looked_in(error: BaseException, script: str):
    """The value of `d` where `d[key]` or `d.pop(key)` has failed; None if it is not known."""
    import ast

    entry = _frames(error)[-1]
    if entry.tb_frame.f_code.co_filename != script:
        return None
    line, last, start, end = _positions(entry)
    if line is None or line != last or start is None or end is None:
        return None
    text = _source_line(script, line).encode("utf-8", "replace")[start:end].decode("utf-8", "replace")
    failed = ast.parse(text, mode="eval").body
    if isinstance(failed, ast.Call) and isinstance(failed.func, ast.Attribute) and failed.func.attr == "pop":
        failed = failed.func
    elif not isinstance(failed, ast.Subscript):
        return None
    return _plain_value(failed.value, entry.tb_frame)


def _variable(name: str, frame):
    """The value of a variable of a function or of the module; None if there is none.

    A class body is left out: its variables are in a mapping that a class of the script may have made.
    """
    variables = frame.f_globals
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        own = frame.f_locals
        if name in own:
            return own[name]
    elif frame.f_locals is not variables:
        return None
    return variables.get(name) if _is_plain(variables) else None


def _plain_value(node, frame):
    """The value of names, and of elements of plain dicts and lists by names and constants."""
    import ast

    if isinstance(node, ast.Name):
        return _variable(node.id, frame)
    if not isinstance(node, ast.Subscript):
        return None
    value = _plain_value(node.value, frame)
    key = node.slice.value if isinstance(node.slice, ast.Constant) else _plain_value(node.slice, frame)
    if _is_key(key) and _is_plain(value):
        return value.get(key)
    if type(value) is list and type(key) is int and -len(value) <= key < len(value):
        return value[key]
    return None


def _members(error: BaseException) -> str:
    """The first few members of an exception group, which its message does not name."""
    if not isinstance(error, BaseExceptionGroup):
        return ""
    members = error.exceptions
    text = "".join(f"; {_message(member)}" for member in members[:3])
    return _shortened(f"{text}; and {len(members) - 3} more" if len(members) > 3 else text)


def _frames(error: BaseException) -> list:
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


def _positions(entry) -> tuple:
    positions = entry.tb_frame.f_code.co_positions()
    found = next(itertools.islice(positions, entry.tb_lasti // 2, None), (None,) * 4) if entry.tb_lasti >= 0 else None
    if found is None or found[0] is None:
        return (entry.tb_lineno, None, None, None)
    return found


def _location(error: BaseException, script: str) -> tuple[int, int] | None:
    """Line and column of the deepest location in the script itself."""
    for entry in reversed(_frames(error)):
        if entry.tb_frame.f_code.co_filename != script:
            continue
        line, _, column, _ = _positions(entry)
        if line is None:
            return None
        text = _source_line(script, line)
        before = text.encode("utf-8", "replace")[: column or 0].decode("utf-8", "ignore")
        return (line, utf16_units(before) + 1)
    if isinstance(error, BaseExceptionGroup) and error.exceptions:
        return _location(error.exceptions[0], script)
    return None


def _source_line(script: str, line: int) -> str:
    return linecache.getline(script, line)


def _stack(error: BaseException) -> str:
    lines: list[str] = []
    _write_chain(error, lines, "", 0, set())
    return _shortened("\n".join(lines))


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
        if sum(map(len, lines)) > _MAX_CHARACTERS:
            return


def _write_one(error: BaseException, lines: list[str], margin: str, level: int, seen: set[int]) -> None:
    group = isinstance(error, BaseExceptionGroup)
    inner = margin + "  | " if group else margin
    title = "Exception Group Traceback (most recent call last):" if group else "Traceback (most recent call last):"
    entries = _frames(error)
    if entries:
        lines.append((margin + "  + " if group and level == 0 else inner) + title)
        frames = ((entry.tb_frame, _positions(entry)) for entry in entries)
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
        if sum(map(len, lines)) > _MAX_CHARACTERS:
            return
    if len(members) > _MAX_MEMBERS:
        lines.append(f"{margin}    | and {len(members) - _MAX_MEMBERS} more exceptions")
    lines.append(f"{margin}    +------------------------------------")


def _only(error: BaseException) -> list[str]:
    """The exception itself: its name, message and notes."""
    lines = []
    name = _name(error)
    try:
        module = type(error).__module__
        if module not in ("builtins", "__main__", "mcp"):
            name = f"{module}.{name}"
    except BaseException:
        pass
    message = _message(error) + _suggestion(error)
    if isinstance(error, SyntaxError):
        lines += _syntax_lines(error)
    lines += (f"{name}: {message}" if message else name).split("\n")
    try:
        for note in itertools.islice(error.__notes__, 10):
            lines += _shortened(str(note)).split("\n")
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


def exit_report(error: SystemExit, script: str) -> str | None:
    """Returns nothing for an exit that says that all is well, else its report."""
    code = error.code
    if code is None or code is False or (isinstance(code, int) and code == 0):
        return None
    shown = f" with code {code}" if isinstance(code, int) else f": {_message(error)}"
    report = {"name": "SystemExit", "message": f"the script exited{shown}"}
    location = _location(error, script)
    if location is not None:
        report["line"], report["column"] = location
    if any(entry.tb_frame.f_code.co_filename.endswith("/argparse.py") for entry in _frames(error)):
        report["hint"] = _ARGUMENTS
    return printable(json.dumps(report, ensure_ascii=False))
