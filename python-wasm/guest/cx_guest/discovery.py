"""The functions with which a script finds tools."""

from cx_guest.queries import name_of, pair


def _discover_question(search_terms=None, server=None) -> dict:
    if isinstance(search_terms, dict):
        # As in TypeScript, where one object has both.
        server = search_terms.get("server", server)
        search_terms = search_terms.get("search")
    if search_terms is None:
        words = ""
    elif isinstance(search_terms, str):
        words = search_terms
    else:
        words = " ".join(str(term) for term in search_terms)
    question = {"kind": "search", "query": words, "detail": "usage"}
    if server is not None:
        question["server"] = str(server)
    return question


def _search_question(query="", limit=10, detail="usage") -> dict:
    if isinstance(limit, str):
        # As in TypeScript, where the second argument is the detail.
        return {"kind": "search", "query": str(query or ""), "detail": limit}
    question = {"kind": "search", "query": str(query or ""), "detail": str(detail)}
    if limit is not None:
        question["limit"] = float(limit) if float(limit) > 0 else 10.0
    return question


def _schema_question(name) -> dict:
    return {"kind": "schema", "name": name_of("the tool's name", name)}


def _refuse_attribute(tool: dict, name: str):
    """The error of a field that is read as in TypeScript."""
    # Names with an underscore are not looked up: an object that is being copied has none of its own yet.
    if not name.startswith("_") and tool.get(name) is not None:
        raise AttributeError(f"the fields of a tool are items: write tool[{name!r}]")
    raise AttributeError(f"a tool's description has no attribute {name!r}", name=name, obj=tool)


class _ToolSchema(dict):
    """A tool's schema. `inputSchema`, as MCP names it, is an alias of `parameters`; `python` is the types as a stub.
    Neither is in what a script prints, so that each schema is printed once."""

    def __init__(self, schema: dict):
        self.__cx_stub = schema.pop("python", None)
        super().__init__(schema)

    def __missing__(self, name):
        if name == "inputSchema":
            return self["parameters"]
        if name == "python" and self.__cx_stub is not None:
            return self.__cx_stub
        raise KeyError(name)

    __getattr__ = _refuse_attribute

    def get(self, name, default=None):
        try:
            return self[name]
        except KeyError:
            return default


class _FoundTool(dict):
    """A tool that a search found. A script that prints or returns it gets `usage`, a line that says how to call it. The
    other fields are read by name, so that a list of tools has no schemas in it."""

    def __init__(self, schema: dict):
        super().__init__(usage=schema.pop("usage"))
        self.__cx_schema = _ToolSchema(schema)

    def __missing__(self, name):
        return self.__cx_schema[name]

    __getattr__ = _refuse_attribute

    def get(self, name, default=None):
        return super().get(name) if name == "usage" else self.__cx_schema.get(name, default)

    def __contains__(self, name) -> bool:
        return name == "usage" or name in self.__cx_schema


def _schemas(answer):
    """An answer of the host with each tool as `_ToolSchema` or `_FoundTool`."""
    if isinstance(answer, list):
        return [_schemas(tool) for tool in answer]
    if not isinstance(answer, dict):
        return answer
    return _FoundTool(answer) if "usage" in answer else _ToolSchema(answer)


FUNCTIONS: dict = {}
pair(FUNCTIONS, "discover_mcp_tools", "The tools that match any of the words, or all.", _discover_question, _schemas)
pair(FUNCTIONS, "search_tools", "The tools that match, best first.", _search_question, _schemas)
pair(FUNCTIONS, "get_tool_schema", "A tool's schema, or None for an unknown one.", _schema_question, _schemas)
