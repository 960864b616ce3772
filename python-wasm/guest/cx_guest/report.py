"""An uncaught exception as data for the host."""

from json import dumps

from cx_guest.errors import McpToolError, host_code
from cx_guest.exceptions import class_name, frames_of, location_of, message_of, shortened
from cx_guest.hints import ARGUMENTS, hint_for, suggestion_for
from cx_guest.keys import keys_near
from cx_guest.output import printable
from cx_guest.stack import stack_of


def describe(error: BaseException, script: str) -> str:
    """Returns everything that the host needs to know about an uncaught exception, as JSON text. Never raises.

    Fields: `name`, `message`, `stack`, and where known `hint`, `code` (of a tool error that the host made), `line` and
    `column` (UTF-16 units, from 1) of the deepest location in the author's text.
    """
    try:
        message = message_of(error) + suggestion_for(error) + _members(error) + keys_near(error, script)
        # A model reads the message first: without one, it is the name.
        report = {"name": class_name(error), "message": message or class_name(error)}
        location = location_of(error, script)
        if location is not None:
            report["line"], report["column"] = location
        code = host_code(error)
        if code is not None:
            report["code"] = code
        hint = hint_for(error, report["message"], script)
        if hint is not None:
            report["hint"] = hint
        report["stack"] = stack_of(error)
        if isinstance(error, McpToolError) and report["name"] == "McpToolError":
            report["stack"] = report["stack"].replace("mcp.McpToolError: ", "McpToolError: ")
        return printable(dumps(report, ensure_ascii=False))
    except BaseException as second:
        # Without memory the compiler, which finds the lines of a stack, raises a SystemError.
        # `isinstance` would ask the objects for their class, and run code of the script.
        if issubclass(type(second), MemoryError) or issubclass(type(error), MemoryError):
            return '{"name":"MemoryError","message":"out of memory"}'
        name = type(second).__name__
        return dumps({"name": "RuntimeError", "message": f"the script's exception cannot be shown: {name}"})


def _members(error: BaseException) -> str:
    """The first few members of an exception group, which its message does not name."""
    if not isinstance(error, BaseExceptionGroup):
        return ""
    members = error.exceptions
    text = "".join(f"; {message_of(member)}" for member in members[:3])
    return shortened(f"{text}; and {len(members) - 3} more" if len(members) > 3 else text)


def exit_report(error: SystemExit, script: str) -> str | None:
    """Returns nothing for an exit that says that all is well, else its report."""
    code = error.code
    if code is None or code is False or (isinstance(code, int) and code == 0):
        return None
    shown = f" with code {code}" if isinstance(code, int) else f": {message_of(error)}"
    report = {"name": "SystemExit", "message": f"the script exited{shown}"}
    location = location_of(error, script)
    if location is not None:
        report["line"], report["column"] = location
    if any(entry.tb_frame.f_code.co_filename.endswith("/argparse.py") for entry in frames_of(error)):
        report["hint"] = ARGUMENTS
    return printable(dumps(report, ensure_ascii=False))
