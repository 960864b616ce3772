"""BFCL's back ends as MCP servers in this process."""

import copy
import importlib
import inspect
import json
from importlib import resources

from bfcl_eval.constants.executable_backend_config import (
    CLASS_FILE_PATH_MAPPING,
    MULTI_TURN_FUNC_DOC_FILE_MAPPING,
    STATELESS_CLASSES,
)
from mcp import types

from hosting import Backend, Hosted

# The classes of the multi-turn categories, by the names of their servers.
SERVERS = {
    "files": "GorillaFileSystem",
    "math": "MathAPI",
    "messages": "MessageAPI",
    "posting": "TwitterAPI",
    "tickets": "TicketAPI",
    "trading": "TradingBot",
    "travel": "TravelAPI",
    "vehicle": "VehicleControlAPI",
}

# The benchmark's names of types that JSON Schema has under another name.
TYPES = {"dict": "object", "float": "number", "tuple": "array", "any": None}


def json_schema(node):
    """A schema of the benchmark as JSON Schema."""
    if isinstance(node, list):
        return [json_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    schema = {}
    for key, value in node.items():
        if key == "properties":
            schema[key] = {name: json_schema(property) for name, property in value.items()}
        elif key == "type" and isinstance(value, str):
            if TYPES.get(value, value) is not None:
                schema[key] = TYPES.get(value, value)
        else:
            schema[key] = json_schema(value)
    return schema


def documented(class_name):
    """The tools of a class, as the benchmark shows them to models."""
    file = MULTI_TURN_FUNC_DOC_FILE_MAPPING[class_name]
    text = (resources.files("bfcl_eval") / "data" / "multi_turn_func_doc" / file).read_text()
    tools = []
    for line in text.splitlines():
        tool = json.loads(line)
        tools.append(
            types.Tool(
                name=tool["name"],
                description=tool["description"],
                input_schema=json_schema(tool["parameters"]),
                output_schema=json_schema(tool["response"]),
            )
        )
    return tools


class BfclBackend(Backend):
    """One class of the benchmark, its tools, and the instance of the entry that runs."""

    def __init__(self, class_name):
        self.class_name = class_name
        self.tools = documented(class_name)
        self.type = getattr(importlib.import_module(CLASS_FILE_PATH_MAPPING[class_name]), class_name)
        self.instance = self.type()
        # What the calls since `load` returned, in the benchmark's form.
        self.results = []

    def load(self, config, long_context):
        self.instance = self.type()
        self.results = []
        if self.class_name not in STATELESS_CLASSES:
            self.instance._load_scenario(copy.deepcopy(config), long_context=long_context)

    def parameters(self, tool):
        """Names of a tool's parameters, in the order of positional arguments."""
        return list(inspect.signature(getattr(self.type, tool)).parameters)[1:]

    def call(self, tool, arguments):
        """Calls a tool. Returns its text, its value if that is an object, and whether it failed."""
        try:
            value = getattr(self.instance, tool)(**arguments)
        except Exception as error:
            text = f"Error during execution: {error}"
            self.results.append(text)
            return text, None, True
        text, structured = str(value), None
        if isinstance(value, dict):
            try:
                text, structured = json.dumps(value), value
            except TypeError:
                # Some results hold numbers of a library. The benchmark compares them as text.
                pass
        self.results.append(text)
        return text, structured, False


class Backends(Hosted):
    """All of them, served until the process ends."""

    def __init__(self):
        super().__init__({name: BfclBackend(class_name) for name, class_name in SERVERS.items()})
        self.by_tool = {tool.name: name for name, backend in self.all.items() for tool in backend.tools}

    def load(self, entry):
        long_context = "long_context" in entry["id"]
        for backend in self.all.values():
            backend.load(entry["initial_config"].get(backend.class_name, {}), long_context)

    def instances(self, classes):
        return {backend.class_name: backend.instance for backend in self.all.values() if backend.class_name in classes}

    def results(self):
        return [result for backend in self.all.values() for result in backend.results]
