"""Writes the users' words of two benchmarks with the tools that each needs, for `benches/search.rs`.

    search.py FILE

Of BFCL v4 the turns of `base`: the questions of `long_context` are the same. Of AgentDojo the users' tasks. The tools of
a turn or task are the distinct functions of its ground truth. Those without calls are left out. Entries take turns in the
two halves: what search is tuned on, and what is held out."""

import json
import sys
from pathlib import Path

import dojo
import scripts
from backends import Backends
from run import entries


def half(number):
    return "held-out" if number % 2 else "tune"


def turns(backends):
    for number, entry in enumerate(entries("base")):
        for question, calls in zip(entry["question"], entry["ground_truth"], strict=True):
            parsed = [scripts.parse(call, backends) for call in calls]
            tools = list(dict.fromkeys(f"{server}.{tool}" for server, tool, _arguments in parsed))
            if tools:
                query = " ".join(message["content"] for message in question)
                yield {"query": query, "half": half(number), "tools": tools}


def definitions(backends):
    for name, backend in backends.all.items():
        for tool in backend.tools:
            fields = {"name", "description", "input_schema", "output_schema"}
            yield {"server": name} | tool.model_dump(by_alias=True, include=fields)


def bfcl():
    backends = Backends()
    return {"tools": list(definitions(backends)), "queries": list(turns(backends))}


def agentdojo():
    """Two suites share tools, which are the same for an agent: each is there once."""
    suites = dojo.Suites()
    tools, names = [], {}
    kept = {}
    for tool in definitions(suites):
        text = json.dumps(tool | {"server": None})
        if text not in kept:
            kept[text] = f"{tool['server']}.{tool['name']}"
            tools.append(tool)
        names[f"{tool['server']}.{tool['name']}"] = kept[text]
    queries = []
    for number, task in enumerate(dojo.tasks(suites)):
        wanted = dict.fromkeys(names[f"{server}.{tool}"] for server, tool, _arguments in task.calls)
        queries.append({"query": task.task.PROMPT, "half": half(number), "tools": list(wanted)})
    return {"tools": tools, "queries": queries}


def main():
    judged = {"turns of BFCL": bfcl(), "tasks of AgentDojo": agentdojo()}
    Path(sys.argv[1]).write_text(json.dumps(judged, ensure_ascii=False))


if __name__ == "__main__":
    main()
