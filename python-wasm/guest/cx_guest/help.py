"""`help`: the guide, a server, a tool, what cx has given the script, or Python's own help."""

import inspect
import sys
import textwrap
import types

from cx_guest.errors import McpToolError
from cx_guest.output import printable
from cx_guest.queries import query_now
from cx_guest.servers import Server


def help(topic=None) -> None:
    """Prints the guide, or its part about a word, a server, a tool or a function. For others it is Python's own."""
    if isinstance(topic, Server):
        about = topic.__dict__["__cx_server__"]
    elif getattr(type(topic), "__cx_all__", False):
        about = None
    elif topic is None or isinstance(topic, str):
        about = topic
    else:
        about = getattr(topic, "__cx_tool__", None)
        if about is None:
            print(_own_help(topic) or _python_help(topic))
            return
    question = {"kind": "help"} if about is None else {"kind": "help", "topic": printable(about)}
    try:
        text = query_now(question)
    except McpToolError:
        # A word that is not in the guide may name something of cx, or of Python's: `help("json.dumps")`.
        text = _help_of_name(about)
        if text is None:
            raise
    print(text)


def _help_of_name(name: str) -> str | None:
    import pydoc

    first, *rest = name.split(".")
    value = sys.modules["__main__"].__dict__.get(first)
    while rest and _is_own(value):
        value = getattr(value, rest.pop(0), None)
    if not rest and (text := _own_help(value)) is not None:
        return text
    found = pydoc.locate(name)
    return None if found is None else _python_help(found)


def _python_help(value) -> str:
    import pydoc

    return pydoc.render_doc(value, renderer=pydoc.plaintext)


# --- what cx has given the script -----------------------------------------------------------------------------------

# Modules of scripts. Methods are in those of this package.
_MODULES = frozenset(("mcp", "mcp.runtime"))
# As a script writes them: the objects by their classes, and the modules.
_NAMES = {"State": "state", "Llm": "llm", "mcp": "mcp", "mcp.runtime": "runtime"}
_CALLABLE = (types.FunctionType, types.MethodType, type)


def _is_own(value) -> bool:
    if isinstance(value, types.ModuleType):
        return value.__name__ in _MODULES
    holder = value if isinstance(value, _CALLABLE) else type(value)
    module = getattr(holder, "__module__", None)
    return isinstance(module, str) and (module in _MODULES or module.startswith("cx_guest."))


def _own_help(value) -> str | None:
    """A few lines about something of cx; None for anything else."""
    if not _is_own(value):
        return None
    if isinstance(value, _CALLABLE):
        doc = textwrap.indent(inspect.getdoc(value) or "", "    ")
        return f"{_signature(value, _prefix(value))}\n{doc}"
    is_module = isinstance(value, types.ModuleType)
    name = _NAMES.get(value.__name__ if is_module else type(value).__name__, type(value).__name__)
    lines = [f"{name}: {(inspect.getdoc(value) or '').partition('\n')[0]}"]
    # A blocking form is listed with the other one. The first line about an object says that there are such forms.
    members = [one for one in dir(value) if not one.startswith("_") and not one.endswith("_sync")]
    for member in members:
        function = getattr(value, member)
        if isinstance(function, types.FunctionType | types.MethodType):
            blocking = f" Also `{member}_sync`." if is_module and hasattr(value, f"{member}_sync") else ""
            summary = (inspect.getdoc(function) or "").partition("\n")[0]
            lines.append(f"  {_signature(function, f'{name}.')}\n      {summary}{blocking}")
    return "\n".join(lines)


def _prefix(value) -> str:
    if isinstance(value, types.MethodType):
        return f"{_NAMES.get(type(value.__self__).__name__, 'response')}."
    if value.__module__ == "mcp.runtime":
        return "runtime."
    return "mcp." if vars(sys.modules["mcp"]).get(value.__name__) is value and not isinstance(value, type) else ""


def _signature(function, prefix: str) -> str:
    # Methods of the model return what is awaited, or read in pieces.
    is_awaited = inspect.iscoroutinefunction(function) or prefix == "llm." and not function.__name__.endswith("_sync")
    signature = inspect.signature(function).replace(return_annotation=inspect.Signature.empty)
    return f"{'await ' if is_awaited else ''}{prefix}{function.__name__}{signature}"
