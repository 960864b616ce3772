"""The error of a failed tool call."""

import weakref
from json import loads

# Codes of errors that the host made. A script can build an McpToolError of its own; it is not here.
_host_codes: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


class McpToolError(RuntimeError):
    """A tool call that failed. A RuntimeError, as in other hosts."""

    def __init__(self, message="", *, server=None, tool=None, code="TOOL_ERROR", content=(), retry_after_ms=None):
        super().__init__(message)
        self.message = message
        self.server = server
        self.tool = tool
        self.code = code
        self.content = list(content)
        self.retry_after_ms = retry_after_ms

    def __str__(self) -> str:
        return str(self.message)

    def __reduce__(self):
        return (McpToolError, (self.message,), self.__dict__)


McpToolError.__module__ = "mcp"


class MissingServer(McpToolError, AttributeError, KeyError):
    """No server has this name; also for `hasattr` and for `except KeyError`."""


class MissingServerModule(McpToolError, ImportError):
    """No server has this name; for `import`."""


for _class in (MissingServer, MissingServerModule):
    _class.__module__ = "mcp"
    _class.__name__ = _class.__qualname__ = "McpToolError"


def tool_error(answer: str, make: type[McpToolError] = McpToolError) -> McpToolError:
    """Returns the error for a host's answer that begins with `!`."""
    fields = loads(answer[1:])
    error = make(
        fields.get("message", ""),
        server=fields.get("server"),
        tool=fields.get("tool"),
        code=fields.get("code", "TOOL_ERROR"),
        content=fields.get("content") or (),
        retry_after_ms=fields.get("retryAfterMs"),
    )
    _host_codes[error] = fields.get("code")
    return error


def host_code(error: BaseException) -> str | None:
    """Returns the code that the host gave this error, or None if the host did not make it."""
    try:
        return _host_codes.get(error)
    except Exception:
        # A class of the script's that cannot be hashed.
        return None
