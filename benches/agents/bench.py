"""What an agent pays for the entries of a benchmark, directly and through cx. A benchmark gives its entries and its
back ends: `run.py`, `dojo.py`, `tau.py` and `recorded.py`."""

import argparse
import json
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import scripts
from client import HttpClient, PipeClient

HERE = Path(__file__).resolve().parent

LANGUAGES = {"typescript": "executeTypescript", "python": "executePython"}

# How an agent finds tools before it calls them.
DISCOVERY = ("none", "search", "help")


@dataclass
class Entry:
    """A conversation of a benchmark."""

    id: str
    # The names of the servers that it uses.
    servers: list
    # For each turn the queries of an agent that searches for tools, and the right calls as server, tool and arguments.
    queries: list
    turns: list
    # Sets the back ends to the state in which it begins.
    load: Callable
    # What the benchmark's own checker finds wrong after a turn, by the turn's number and a name for the way in which it
    # was made; `None` if it is right.
    problem: Callable


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
    """`cx serve` with the servers of `backends`, over pipes, and with its own home."""
    config = Path(home) / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {name: {"url": backends.url(name)} for name in backends.all}}))
    return PipeClient([cx, "serve", "--mcp-config", str(config)], {"HOME": home, "PATH": "/usr/bin:/bin"})


class Bench:
    """Runs entries. `backends.all` has the back ends by the names of their servers, each with its `tools`, which are
    served at `backends.url(name)`."""

    def __init__(self, cx, tokens, backends):
        self.backends = backends
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
        self.servers = {name: HttpClient(self.backends.port, f"/{name}/") for name in self.backends.all}
        # Every server is asked for its list once, as a client's first session does.
        self.cx.call("executeTypescript", {"code": "return (await searchTools('')).length"})

    def direct(self, entry):
        """Calls each tool by itself."""
        entry.load()
        spent = round_trips = 0
        seconds = []
        problem = None
        failed = set()
        for number, turn in enumerate(entry.turns):
            took = 0.0
            for server, tool, arguments in turn:
                client = self.servers[server]
                result = client.call(tool, arguments)
                spent += self.tokens(call_text(tool, arguments)) + self.tokens(text_of(result))
                took += client.seconds
                round_trips += 1
                if result.get("isError"):
                    failed.add(number)
            if turn:
                seconds.append(took)
            problem = problem or entry.problem(number, "direct")
        return {"tokens": spent, "roundTrips": round_trips, "seconds": seconds, "problem": problem, "failed": failed}

    def through_cx(self, entry, language, discovery, failed):
        """The same as scripts. `failed` has the turns with a call that fails directly, and so has to fail here."""
        entry.load()
        tool, render = LANGUAGES[language], getattr(scripts, language)
        spent = found = round_trips = 0
        seconds = []
        problem = None
        known = set()
        for number, calls in enumerate(entry.turns):
            if calls:
                for code in discovery_scripts(discovery, language, entry.queries[number], calls, known):
                    found += self.pay(tool, code)
                    round_trips += 1
                result = self.run(tool, render(calls))
                spent += self.tokens(call_text(tool, {"code": render(calls)})) + self.tokens(text_of(result))
                seconds.append(self.cx.seconds)
                round_trips += 1
                if bool(result.get("isError")) != (number in failed) and not problem:
                    problem = f"turn {number}: {text_of(result)[:300]}"
            problem = problem or entry.problem(number, f"{language}_{discovery}")
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
        every = sum(sum(tokens) for tokens in self.server_definitions.values())
        involved = sum(sum(self.server_definitions[name]) for name in entry.servers)
        tools = sum(len(self.server_definitions[name]) for name in entry.servers)
        row = {"id": entry.id, "turns": len(entry.turns), "direct": self.direct(entry)}
        row["definitions"] = {"all": every, "involved": involved, "cx": self.cx_definitions, "involvedTools": tools}
        for language in LANGUAGES:
            failed = row["direct"]["failed"]
            row[language] = {way: self.through_cx(entry, language, way, failed) for way in DISCOVERY}
        return row


def discovery_scripts(discovery, language, queries, calls, known):
    """What an agent asks before a turn's calls, a script for each question: nothing if it knows all of them already."""
    if discovery == "none":
        return []
    if discovery == "search":
        quoted = [json.dumps(query, ensure_ascii=False) for query in queries]
        if language == "typescript":
            return [f"return await searchTools({query}, 5)" for query in quoted]
        return [f"await search_tools({query}, 5)" for query in quoted]
    asked = []
    for server, tool, _arguments in calls:
        asked += [name for name in (server, f"{server}.{tool}") if name not in known and name not in asked]
    known.update(asked)
    if not asked:
        return []
    if language == "typescript":
        joined = ", ".join(f'await help("{name}")' for name in asked)
        return [f"return [{joined}]"]
    # Python's own `help` prints.
    return ["; ".join(f'help("{name}")' for name in asked)]


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


def report(category, entries, backends, arguments):
    """Runs the entries, prints a summary, and writes the figures of every entry where `arguments` says."""
    bench = Bench(arguments.cx, Tokens(arguments.tokens), backends)
    rows = [bench.entry(entry) for entry in list(entries)[: arguments.entries]]
    bench.cx.close()
    figures = summary(rows)
    if arguments.figures:
        arguments.figures.parent.mkdir(exist_ok=True)
        arguments.figures.write_text(document(category, figures, rows))
    print(json.dumps(figures, indent=2, ensure_ascii=False))


def parser(description):
    """The arguments of a benchmark's command."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("cx", help="the program")
    parser.add_argument("--entries", type=int, default=None, help="only the first N")
    parser.add_argument("--tokens", type=Path, default=HERE / "tokens.mjs", help="beside its installed packages")
    parser.add_argument("--figures", type=Path, help="where the figures of every entry go, as JSON")
    return parser


def commit():
    """That of this file, which `make bench-agents` builds the program from. `None` outside of a repository."""
    command = ["git", "-C", HERE, "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or None


def document(category, figures, rows):
    """The figures as JSON, an entry a line."""
    ways = [(language, way) for language in LANGUAGES for way in DISCOVERY]
    lines = []
    for row in rows:
        costs = {f"{language}, {way}": cost(row, language, way) for language, way in ways}
        entry = {"id": row["id"], "definitions": row["definitions"], "direct": row["direct"]["tokens"]} | costs
        lines.append(json.dumps(entry))
    summary_text = json.dumps(figures, indent=1, ensure_ascii=False)
    return f'{{"category": "{category}", "commit": {json.dumps(commit())},\n"summary": {summary_text},\n"entries": [\n' + ",\n".join(lines) + "\n]}\n"
