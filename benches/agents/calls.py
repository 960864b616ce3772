"""Whether calls arrive as they were recorded: directly, and through cx in both languages.

    calls.py CX [--categories A,B] [--entries N]

BFCL's single-turn entries have functions that people wrote, with their schemas, and the right calls, but no
implementation of the functions. So each entry is a server that records its calls, and the benchmark's own checker (of
names, types and values) judges them."""

import argparse
import json
import sys
import tempfile
import threading
import types
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path

# The checker asks which models cannot have dots in names, and the module with that list imports the clients of all
# providers. No model is used here.
CONFIGURATION = types.ModuleType("bfcl_eval.constants.model_config")
CONFIGURATION.MODEL_CONFIG_MAPPING = defaultdict(lambda: types.SimpleNamespace(underscore_to_dot=False))
sys.modules[CONFIGURATION.__name__] = CONFIGURATION

from bfcl_eval.constants.enums import Language
from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker
from jsonschema import Draft202012Validator

import scripts
from backends import json_schema
from bench import LANGUAGES, text_of
from client import HttpClient, PipeClient

# Those in Python's types. `simple_java` and `simple_javascript` have values in the notation of their languages.
CATEGORIES = (
    "simple_python",
    "multiple",
    "parallel",
    "parallel_multiple",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
)

# Servers of one cx at a time.
BATCH = 200


def entries(category):
    data = resources.files("bfcl_eval") / "data"
    file = f"BFCL_v4_{category}.json"
    questions = map(json.loads, (data / file).read_text().splitlines())
    answers = map(json.loads, (data / "possible_answer" / file).read_text().splitlines())
    for question, answer in zip(questions, answers, strict=True):
        assert question["id"] == answer["id"]
        yield question | {"ground_truth": answer["ground_truth"]}


def schemas(entry):
    return {function["name"]: json_schema(function["parameters"]) for function in entry["function"]}


def recorded(entry):
    """The calls of an entry, as tool and arguments: of all right values the first one that the schema allows."""
    known = schemas(entry)
    calls = [pair for call in entry["ground_truth"] for pair in call.items()]
    return [(tool, fields(options, known.get(tool, {}))) for tool, options in calls]


def fields(options, schema):
    """`""` among the right values means that a parameter may be left out, if it is not required."""
    arguments = {}
    for name, values in options.items():
        if "" in values and name not in schema.get("required", []):
            continue
        right = [chosen(value) for value in values if value != ""] or [""]
        allowed = Draft202012Validator(schema.get("properties", {}).get(name, {})).is_valid
        arguments[name] = next(filter(allowed, right), right[0])
    return arguments


def contradiction(entry):
    """Where a call that the benchmark calls right is none by the tool's own schema."""
    known = schemas(entry)
    for tool, arguments in recorded(entry):
        for error in Draft202012Validator(known.get(tool, {})).iter_errors(arguments):
            return f"{tool}: {error.message[:100]}"
    return None


def chosen(value):
    """Of an object, also in a list, each field has its right values too. What is deeper are values."""
    if isinstance(value, dict):
        first = {name: values[0] if isinstance(values, list) and values else values for name, values in value.items()}
        return {name: field for name, field in first.items() if field != ""}
    return [chosen(item) for item in value] if isinstance(value, list) else value


class Servers:
    """A server for each entry, at its own path, over HTTP with JSON as answers."""

    def __init__(self):
        self.tools = {}
        self.taken = defaultdict(list)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def add(self, name, entry):
        self.tools[name] = [
            {"name": function["name"], "description": function["description"], "inputSchema": schema}
            for function, schema in zip(entry["function"], schemas(entry).values(), strict=True)
        ]

    def answer(self, name, method, params):
        if method == "initialize":
            told = {"name": name, "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": told}
        if method == "tools/list":
            return {"tools": self.tools[name]}
        if method == "tools/call":
            self.taken[name].append({params["name"]: params.get("arguments", {})})
            return {"content": [{"type": "text", "text": "taken down"}]}
        return {}

    def handler(self):
        servers = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Headers and body are two writes.
            disable_nagle_algorithm = True

            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if "id" not in asked:
                    return self.send(202, b"")
                result = servers.answer(self.path.strip("/"), asked["method"], asked.get("params", {}))
                self.send(200, json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode())

            def do_GET(self):
                self.send(405, b"")

            do_DELETE = do_GET

            def send(self, status, body):
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_arguments):
                pass

        return Handler


def problem(servers, name, entry, category):
    """What the benchmark's checker says of what was taken down since the last time."""
    taken = as_recorded(servers.taken.pop(name, []), [{tool: arguments} for tool, arguments in recorded(entry)])
    functions, truth = entry["function"], entry["ground_truth"]
    verdict = ast_checker(functions, taken, truth, Language.PYTHON, category, "recorded")
    return None if verdict["valid"] else str(verdict["error"])


def as_recorded(taken, wanted):
    """`taken` with whole numbers as floats where these were recorded: JSON has one type of numbers, so that 1 and 1.0 are
    the same, and only the second one is a float to the checker."""
    if isinstance(wanted, float) and type(taken) is int:
        return float(taken)
    if isinstance(wanted, dict) and isinstance(taken, dict):
        return {name: as_recorded(value, wanted.get(name)) for name, value in taken.items()}
    if isinstance(wanted, list) and isinstance(taken, list) and len(wanted) == len(taken):
        return [as_recorded(*pair) for pair in zip(taken, wanted)]
    return taken


def batch(cx, servers, category, named):
    """Makes the calls of some entries in each way. Returns what went wrong, by way."""
    wrong = {way: {} for way in ("direct", *LANGUAGES)}
    for name, entry in named.items():
        servers.add(name, entry)
        client = HttpClient(servers.port, f"/{name}/")
        for tool, arguments in recorded(entry):
            client.call(tool, arguments)
        client.connection.close()
        wrong["direct"][entry["id"]] = problem(servers, name, entry, category)
    with tempfile.TemporaryDirectory() as home:
        config = Path(home) / "mcp.json"
        urls = {name: {"url": f"http://127.0.0.1:{servers.port}/{name}/"} for name in named}
        config.write_text(json.dumps({"mcpServers": urls}))
        client = PipeClient([cx, "serve", "--mcp-config", str(config)], {"HOME": home, "PATH": "/usr/bin:/bin"})
        for name, entry in named.items():
            calls = [(name, tool, arguments) for tool, arguments in recorded(entry)]
            for language, tool in LANGUAGES.items():
                result = client.call(tool, {"code": getattr(scripts, language)(calls)})
                found = problem(servers, name, entry, category)
                refused = text_of(result).splitlines()[0] if result.get("isError") else None
                wrong[language][entry["id"]] = refused or found
        client.close()
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cx", help="the program")
    parser.add_argument("--categories", default=",".join(CATEGORIES), help="of %(default)s")
    parser.add_argument("--entries", type=int, default=None, help="only the first N of each category")
    arguments = parser.parse_args()
    servers = Servers()
    figures = {}
    for category in arguments.categories.split(","):
        selected = list(entries(category))[: arguments.entries]
        wrong = {way: {} for way in ("direct", *LANGUAGES)}
        for start in range(0, len(selected), BATCH):
            named = {f"entry{start + place}": entry for place, entry in enumerate(selected[start : start + BATCH])}
            for way, found in batch(arguments.cx, servers, category, named).items():
                wrong[way] |= found
        # Calls that are wrong by the checker or by the tool's own schema before they reach cx.
        own = {entry["id"]: wrong["direct"][entry["id"]] or contradiction(entry) for entry in selected}
        of_cx = lambda way: {entry: found for entry, found in wrong[way].items() if found and not own[entry]}
        figures[category] = {
            "entries": len(selected),
            "calls": sum(len(recorded(entry)) for entry in selected),
            "the benchmark's own mistakes": {entry: found for entry, found in own.items() if found},
            **{f"{language}, other mistakes": of_cx(language) for language in LANGUAGES},
        }
    print(json.dumps(figures, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
