"""What an agent pays to find, call and read tools: directly, and through cx.

    run.py CX [--category NAME] [--entries N] [--figures FILE]

Runs the ground truth of BFCL v4's multi-turn entries: each turn's calls directly, as a script in TypeScript and as one in
Python. The benchmark's own checker compares state and answers after every turn. README.md says what is counted."""

import argparse
import copy
import json
import statistics
import subprocess
import tempfile
from importlib import resources
from pathlib import Path

from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import response_checker, state_checker
from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils import execute_multi_turn_func_call

import scripts
from backends import SERVERS, Backends
from client import HttpClient, PipeClient

HERE = Path(__file__).resolve().parent

LANGUAGES = {"typescript": "executeTypescript", "python": "executePython"}

# Those with calls that are executed. In `miss_func` and `miss_param` a turn lacks a tool or a value, and has no calls.
CATEGORIES = ("base", "long_context", "miss_func", "miss_param")

# How an agent finds tools before it calls them.
DISCOVERY = ("none", "search", "help")


class Tokens:
    """Counts o200k tokens in a process of Node, and remembers what it has counted."""

    def __init__(self, script):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(["node", script], stdin=pipe, stdout=pipe, text=True)
        self.known = {}

    def __call__(self, text):
        if text not in self.known:
            self.process.stdin.write(json.dumps(text) + "\n")
            self.process.stdin.flush()
            self.known[text] = int(self.process.stdout.readline())
        return self.known[text]


def entries(category):
    data = resources.files("bfcl_eval") / "data"
    file = f"BFCL_v4_multi_turn_{category}.json"
    questions = (data / file).read_text().splitlines()
    answers = (data / "possible_answer" / file).read_text().splitlines()
    for question, answer in zip(map(json.loads, questions), map(json.loads, answers), strict=True):
        assert question["id"] == answer["id"]
        # The user of `miss_func` only says that there are more tools now, and means what was asked before.
        for number, turn in enumerate(question["question"]):
            question["question"][number] = turn or question["question"][number - 1]
        yield question | {"ground_truth": answer["ground_truth"]}


def shown_definitions(tools):
    """Definitions as clients show them to models: without output schemas."""
    shown = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in tools]
    return json.dumps(shown, separators=(",", ":"), ensure_ascii=False)


def text_of(result):
    return "\n".join(block.get("text", "") for block in result["content"])


def call_text(tool, arguments):
    """What a model writes to call a tool."""
    return json.dumps({"name": tool, "arguments": arguments}, separators=(",", ":"), ensure_ascii=False)


def serve(cx, backends, home):
    """`cx serve` with the benchmark's servers, over pipes, and with a home of its own."""
    config = Path(home) / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {name: {"url": backends.url(name)} for name in SERVERS}}))
    return PipeClient([cx, "serve", "--mcp-config", str(config)], {"HOME": home, "PATH": "/usr/bin:/bin"})


def servers_of(entry):
    names = {class_name: name for name, class_name in SERVERS.items()}
    return [names[class_name] for class_name in entry["involved_classes"]]


def check(backends, entry, number, truth_model):
    """The benchmark's comparison of state and answers after a turn, with what the ground truth makes of an entry of its
    own in the name of `truth_model`. Returns what differs."""
    turn, classes = entry["ground_truth"][number], entry["involved_classes"]
    long_context = "long_context" in entry["id"]
    answers, instances = execute_multi_turn_func_call(
        turn, entry["initial_config"], classes, truth_model, entry["id"], long_context, True
    )
    if not turn:
        return None
    for verdict in (
        state_checker(backends.instances(classes), instances),
        response_checker(backends.results(), answers, number),
    ):
        if not verdict["valid"]:
            return f"turn {number}: {verdict['error_message']}"
    return None


class Bench:
    def __init__(self, cx, tokens):
        self.backends = Backends()
        self.tokens = tokens
        self.directory = tempfile.TemporaryDirectory()
        self.cx = serve(cx, self.backends, self.directory.name)
        tools = self.cx.request("tools/list", {})["tools"]
        self.cx_definitions = self.tokens(shown_definitions(tools)) + self.tokens(self.cx.instructions)
        self.server_definitions = {
            name: [
                self.tokens(shown_definitions([tool.model_dump(by_alias=True)])) for tool in backend.tools
            ]
            for name, backend in self.backends.all.items()
        }
        self.servers = {name: HttpClient(self.backends.port, f"/{name}/") for name in SERVERS}
        # Every server is asked for its list once, as a client's first session does.
        self.cx.call("executeTypescript", {"code": "return (await searchTools('')).length"})

    def direct(self, entry):
        """Calls each tool by itself."""
        self.backends.load(entry)
        spent = round_trips = 0
        seconds = []
        problem = None
        for number, turn in enumerate(entry["ground_truth"]):
            took = 0.0
            for call in turn:
                server, tool, arguments = scripts.parse(call, self.backends)
                client = self.servers[server]
                spent += self.tokens(call_text(tool, arguments)) + self.tokens(text_of(client.call(tool, arguments)))
                took += client.seconds
                round_trips += 1
            if turn:
                seconds.append(took)
            problem = problem or check(self.backends, entry, number, "truth_direct")
        return {"tokens": spent, "roundTrips": round_trips, "seconds": seconds, "problem": problem}

    def through_cx(self, entry, language, discovery):
        self.backends.load(entry)
        tool, render = LANGUAGES[language], getattr(scripts, language)
        spent = found = round_trips = 0
        seconds = []
        problem = None
        known = set()
        truth_model = f"truth_{language}_{discovery}"
        for number, turn in enumerate(entry["ground_truth"]):
            calls = [scripts.parse(call, self.backends) for call in turn]
            if calls and discovery != "none":
                code = discovery_script(discovery, language, entry["question"][number], calls, known)
                if code:
                    found += self.pay(tool, code)
                    round_trips += 1
            if calls:
                result = self.run(tool, render(calls))
                spent += self.tokens(call_text(tool, {"code": render(calls)})) + self.tokens(text_of(result))
                seconds.append(self.cx.seconds)
                round_trips += 1
                if result.get("isError") and not problem:
                    problem = f"turn {number}: {text_of(result)[:300]}"
            problem = problem or check(self.backends, entry, number, truth_model)
        return {
            "tokens": spent,
            "discovery": found,
            "roundTrips": round_trips,
            "seconds": seconds,
            "problem": problem,
        }

    def run(self, tool, code):
        return self.cx.call(tool, {"code": code})

    def pay(self, tool, code):
        result = self.run(tool, code)
        if result.get("isError"):
            raise RuntimeError(f"discovery failed: {code}\n{text_of(result)}")
        return self.tokens(call_text(tool, {"code": code})) + self.tokens(text_of(result))

    def entry(self, entry):
        servers = servers_of(entry)
        every = sum(sum(tokens) for tokens in self.server_definitions.values())
        involved = sum(sum(self.server_definitions[name]) for name in servers)
        tools = sum(len(self.server_definitions[name]) for name in servers)
        row = {"id": entry["id"], "turns": len(entry["ground_truth"]), "direct": self.direct(entry)}
        row["definitions"] = {"all": every, "involved": involved, "cx": self.cx_definitions, "involvedTools": tools}
        for language in LANGUAGES:
            row[language] = {way: self.through_cx(entry, language, way) for way in DISCOVERY}
        return row


def discovery_script(discovery, language, question, calls, known):
    """What an agent asks before a turn's calls; `None` if it knows all of them already."""
    if discovery == "search":
        words = " ".join(message["content"] for message in question)
        quoted = json.dumps(words, ensure_ascii=False)
        if language == "typescript":
            return f"return await searchTools({quoted}, 5)"
        return f"await search_tools({quoted}, 5)"
    asked = []
    for server, tool, _arguments in calls:
        asked += [name for name in (server, f"{server}.{tool}") if name not in known and name not in asked]
    known.update(asked)
    if not asked:
        return None
    if language == "typescript":
        joined = ", ".join(f'await help("{name}")' for name in asked)
        return f"return [{joined}]"
    # Python's own `help` prints.
    return "; ".join(f'help("{name}")' for name in asked)


def summary(rows):
    """The distribution of what entries cost, and the entries that lose."""
    median = lambda values: round(statistics.median(values))
    definitions = rows[0]["definitions"]
    figures = {
        "entries": len(rows),
        "turns": sum(row["turns"] for row in rows),
        "direct, all tools": median(definitions["all"] + row["direct"]["tokens"] for row in rows),
        "direct, involved servers": median(row["definitions"]["involved"] + row["direct"]["tokens"] for row in rows),
        "direct, round trips": median(row["direct"]["roundTrips"] for row in rows),
        "direct, problems": problems(row["direct"] | {"id": row["id"]} for row in rows),
        "direct, milliseconds a turn": milliseconds(row["direct"] for row in rows),
    }
    for language in LANGUAGES:
        for way in DISCOVERY:
            costs = [cost(row, language, way) for row in rows]
            direct = [row["definitions"]["involved"] + row["direct"]["tokens"] for row in rows]
            losing = sum(ours > theirs for ours, theirs in zip(costs, direct))
            figures[f"{language}, discovery {way}"] = {
                "median": median(costs),
                "quartiles": [round(value) for value in statistics.quantiles(costs, n=4)],
                "saved against all": share(1 - statistics.median(costs) / figures["direct, all tools"]),
                "saved against involved": share(1 - statistics.median(costs) / figures["direct, involved servers"]),
                "entries that lose against involved": losing,
                "break-even, tools": break_even(rows, language, way),
                "round trips": median(row[language][way]["roundTrips"] for row in rows),
                "problems": problems(row[language][way] | {"id": row["id"]} for row in rows),
            }
        figures[f"{language}, milliseconds a turn"] = milliseconds(row[language]["none"] for row in rows)
    return figures


def problems(runs):
    return [f"{run['id']}: {run['problem']}" for run in runs if run["problem"]]


def milliseconds(runs):
    """The median turn."""
    return round(statistics.median(second for run in runs for second in run["seconds"]) * 1e3, 2)


def cost(row, language, way):
    ours = row[language][way]
    return row["definitions"]["cx"] + ours["tokens"] + ours["discovery"]


def share(value):
    return f"{value:.0%}"


def break_even(rows, language, way):
    """From how many directly shown tools of average size on cx costs less, in the median entry."""
    sizes = [row["definitions"]["involved"] / row["definitions"]["involvedTools"] for row in rows]
    counts = [
        (cost(row, language, way) - row["direct"]["tokens"]) / size for row, size in zip(rows, sizes)
    ]
    return round(statistics.median(counts), 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cx", help="the program")
    parser.add_argument("--category", default="base", choices=CATEGORIES)
    parser.add_argument("--entries", type=int, default=None, help="only the first N")
    parser.add_argument("--tokens", type=Path, default=HERE / "tokens.mjs", help="beside its installed packages")
    parser.add_argument("--figures", type=Path, help="where the figures of every entry go, as JSON")
    arguments = parser.parse_args()
    bench = Bench(arguments.cx, Tokens(arguments.tokens))
    rows = [bench.entry(copy.deepcopy(entry)) for entry in list(entries(arguments.category))[: arguments.entries]]
    bench.cx.close()
    figures = summary(rows)
    if arguments.figures:
        arguments.figures.parent.mkdir(exist_ok=True)
        arguments.figures.write_text(document(arguments.category, figures, rows))
    print(json.dumps(figures, indent=2, ensure_ascii=False))


def document(category, figures, rows):
    """The figures as JSON, an entry a line."""
    ways = [(language, way) for language in LANGUAGES for way in DISCOVERY]
    lines = []
    for row in rows:
        costs = {f"{language}, {way}": cost(row, language, way) for language, way in ways}
        entry = {"id": row["id"], "definitions": row["definitions"], "direct": row["direct"]["tokens"]} | costs
        lines.append(json.dumps(entry))
    summary_text = json.dumps(figures, indent=1, ensure_ascii=False)
    return f'{{"category": "{category}",\n"summary": {summary_text},\n"entries": [\n' + ",\n".join(lines) + "\n]}\n"


if __name__ == "__main__":
    main()
