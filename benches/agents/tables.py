#!/usr/bin/env python3
"""Writes the measured tables of docs/agents.md, docs/when-not.md and README.md from the figures beside it:
`tables.py [DIRECTORY]`. The texts around them are written by hand. Standard library only."""

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT

# The benchmarks by the names of their figures: what they are called, and how many tools all their servers have.
BENCHMARKS = {
    "base": ("BFCL v4, `base`", 128),
    "long_context": ("BFCL v4, `long_context`", 128),
    "miss_func": ("BFCL v4, `miss_func`", 128),
    "miss_param": ("BFCL v4, `miss_param`", 128),
    "agentdojo": ("AgentDojo", 74),
    "tau2": ("τ²-bench", 72),
    "recorded": ("LiveMCPBench, recorded", 526),
}

# Those that have a table of their own.
SHOWN = ("base", "long_context", "agentdojo", "tau2", "recorded")

LANGUAGES = {"typescript": "TypeScript", "python": "Python"}

WAYS = {
    "none": "the tools are known",
    "help": "`help()` of servers and tools that are new",
    "search": "`searchTools()`",
}

# What agents do, as docs/when-not.md says it.
AGENTS = {
    "none": "knows the tools that it needs",
    "help": "reads `help()` of servers and tools that are new to it",
    "search": "searches in every turn, or as a model did",
}


def row(*cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def of_cx(summary, language, way):
    return summary[f"{language}, discovery {way}"]


def costs(name, figures):
    """The tokens of the median entry in each way."""
    summary = figures["summary"]
    tools = [entry["definitions"]["involvedTools"] for entry in figures["entries"]]
    used = f"the tools of the servers that it uses, directly ({min(tools)} to {max(tools)})"
    yield row(f"all {BENCHMARKS[name][1]} tools directly", f"{summary['direct, all tools']:,}", "", "", "")
    yield row(used, f"{summary['direct, involved servers']:,}", "", "", "")
    for way, words in WAYS.items():
        for language, called in LANGUAGES.items():
            cell = of_cx(summary, language, way)
            yield row(
                f"cx, {called}, {words}",
                f"{cell['median']:,}",
                cell["saved against involved"],
                cell["entries that lose against involved"],
                cell["break-even, tools"],
            )


def fidelity(every):
    """How many entries end as the benchmark's own checks want it, in the way with the fewest."""
    for name, figures in every.items():
        summary = figures["summary"]
        wrong = [
            max(len(of_cx(summary, language, way)["problems"]) for way in WAYS) for language in LANGUAGES
        ]
        entries = summary["entries"]
        yield row(
            BENCHMARKS[name][0],
            f"{entries}; {summary['turns']:,}",
            entries - len(summary["direct, problems"]),
            "; ".join(str(entries - count) for count in wrong),
            figures.get("commit") or "not recorded",
        )


def latency(every):
    for name, figures in every.items():
        summary = figures["summary"]
        times = [f"{summary[f'{way}, milliseconds a turn']:.1f}" for way in ("direct", *LANGUAGES)]
        trips = [summary["direct, round trips"], of_cx(summary, "typescript", "none")["round trips"]]
        yield row(BENCHMARKS[name][0], *times, "; ".join(map(str, trips)))


def advice(shown):
    for way, words in AGENTS.items():
        even = (of_cx(figures["summary"], "typescript", way)["break-even, tools"] for figures in shown.values())
        yield row(words, *(f"{tools} tools" for tools in even))


def readme(summary):
    cells = [f"{summary['direct, all tools']:,}; {summary['direct, involved servers']:,}"]
    for way, unit in (("none", " tools"), ("help", ""), ("search", "")):
        cell = of_cx(summary, "typescript", way)
        cells.append(f"**{cell['median']:,}**, break-even {cell['break-even, tools']}{unit}")
    yield row(*cells)


def replaced(text, header, rows):
    """The text with other rows in the table whose first line begins with `header`."""
    lines = text.split("\n")
    at = [number for number, line in enumerate(lines) if line.startswith(f"| {header} |")]
    if len(at) != 1:
        raise SystemExit(f"{len(at)} tables begin with: {header}")
    start = end = at[0] + 2
    while lines[end].startswith("|"):
        end += 1
    return "\n".join([*lines[:start], *rows, *lines[end:]])


def write(name, tables):
    text = (ROOT / name).read_text()
    for header, rows in tables.items():
        text = replaced(text, header, rows)
    file = OUT / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def main():
    files = {name: HERE / "figures" / f"{name}.json" for name in BENCHMARKS}
    every = {name: json.loads(file.read_text()) for name, file in files.items() if file.exists()}
    shown = {name: every[name] for name in SHOWN}
    tables = {f"median entry, {BENCHMARKS[name][0]}": costs(name, figures) for name, figures in shown.items()}
    write("docs/agents.md", tables | {"benchmark": fidelity(every), "median turn, ms": latency(every)})
    write("docs/when-not.md", {"the agent": advice(shown)})
    write("README.md", {"tools shown directly: all 128; of the servers it needs": readme(every["base"]["summary"])})


if __name__ == "__main__":
    main()
