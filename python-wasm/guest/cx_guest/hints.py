"""What to do about an error that has a usual cause."""

import linecache
import sys
import traceback

from cx_guest import refusals
from cx_guest.errors import McpToolError
from cx_guest.exceptions import class_name

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
ARGUMENTS = "a script has no arguments: data comes in as `inputs`, or `parse_args([...])` gets a list"

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


def hint_for(error: BaseException, message: str, script: str) -> str | None:
    """What to do about an error that has a usual cause. The host adds hints about what tools return."""
    if isinstance(error, NameError):
        if isinstance(error.name, str) and error.name.startswith("mcp__"):
            return f"a tool of this full name is called with `await tools.{error.name[:128]}(...)`"
        return _HINTS.get(error.name) if isinstance(error.name, str) else None
    if class_name(error) == "ZoneInfoNotFoundError":
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
        return refusals.COMPRESSION
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


def suggestion_for(error: BaseException) -> str:
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
