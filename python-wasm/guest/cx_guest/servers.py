"""The servers of a run, as `tools.<server>.<tool>` and as the package `mcp_tools`."""

import keyword
import types
from collections.abc import Mapping

import wit_world

from cx_guest import loop
from cx_guest.calls import by_full_name, make_tool
from cx_guest.errors import McpToolError, MissingServer, MissingServerModule, tool_error
from cx_guest.queries import query_now, query_request


def is_private(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


class Server:
    """A server: its attributes and items are its tools."""

    # Makes the function for a tool: see `make_tool`.
    __cx_make__ = staticmethod(make_tool)

    def __init__(self, name: str):
        object.__setattr__(self, "__cx_server__", name)

    def __getattr__(self, name: str):
        # Names that the language and libraries look up on every object are no tools.
        if is_private(name):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str):
        if not isinstance(name, str):
            raise TypeError(f"a tool's name must be a string: {type(name).__name__}")
        found = self.__dict__.get(name)
        if found is None:
            # Made once: later uses find it as a plain attribute.
            found = self.__dict__[name] = self.__cx_make__(self.__dict__["__cx_server__"], name)
        return found

    def __setattr__(self, name: str, _value) -> None:
        raise AttributeError(f"tools cannot be replaced: {name}")

    __delattr__ = __delitem__ = lambda self, name: self.__setattr__(name, None)
    __setitem__ = __setattr__

    def __contains__(self, name) -> bool:
        return name in _tool_names(self)

    def __iter__(self):
        return iter(_tool_names(self))

    def __dir__(self):
        return _tool_names(self)

    @property
    def __all__(self) -> list[str]:
        """What `from mcp_tools.server import *` imports: the tools, by their Python names."""
        documents = query_now({"kind": "documentation", "server": self.__dict__["__cx_server__"]})
        names = (document["toolAlias"] for document in documents)
        return [name for name in names if name.isidentifier() and not keyword.iskeyword(name)]

    def __repr__(self) -> str:
        return f"<server {self.__dict__['__cx_server__']}>"


def _tool_names(server: Server) -> list[str]:
    return query_now({"kind": "names", "server": server.__dict__["__cx_server__"]})


class Tools:
    """All servers, by exact name and by Python name, as attributes and as items."""

    # For `help`, which shows the guide.
    __cx_all__ = True

    def __init__(self) -> None:
        self.__dict__["__cx_exact__"] = []

    def __getattr__(self, name: str):
        if is_private(name):
            raise AttributeError(name)
        return self[name]

    def __getitem__(self, name: str):
        if not isinstance(name, str):
            raise TypeError(f"a server's name must be a string: {type(name).__name__}")
        found = self.__dict__.get(name)
        if found is None:
            if name.startswith("mcp__") and "__" in name[5:]:
                # The full name of a tool, as searches give it.
                return by_full_name(name)
            # A wrong name fails here, with the right ones. One that the host knows is another form of a right one.
            find_server(name, MissingServer)
            found = self.__dict__[name] = Server(name)
        return found

    def __setattr__(self, name: str, _value) -> None:
        raise AttributeError(f"servers cannot be replaced: {name}")

    __delattr__ = __delitem__ = lambda self, name: self.__setattr__(name, None)
    __setitem__ = __setattr__

    def __contains__(self, name) -> bool:
        return isinstance(name, str) and isinstance(self.__dict__.get(name), Server)

    def __iter__(self):
        return iter(self.__dict__["__cx_exact__"])

    def __len__(self) -> int:
        return len(self.__dict__["__cx_exact__"])

    def __dir__(self):
        return [name for name in self.__dict__ if not is_private(name)]

    def __repr__(self) -> str:
        return f"<tools of {', '.join(self)}>"


def find_server(name: str, error: type[McpToolError]) -> None:
    """Raises `error`, with the nearest names, if the host knows no server of this name."""
    answer = loop.block(wit_world.start_call(*query_request({"kind": "server", "server": name})))
    if answer.startswith("!"):
        raise tool_error(answer, error) from None


tools = Tools()


class ServersModule(types.ModuleType):
    """A package whose submodules are the servers: `from mcp_tools import github`, `import mcp_tools.github`."""

    __cx_all__ = True

    def __init__(self, name: str, doc: str, servers: Mapping) -> None:
        super().__init__(name, doc)
        self.__path__ = []
        self.__cx_servers__ = servers

    def __getattr__(self, name: str):
        if is_private(name):
            raise AttributeError(name)
        servers = self.__cx_servers__
        if name not in servers:
            find_server(name, MissingServerModule)
        return servers[name]

    def __dir__(self):
        return dir(tools)
