"""Writes queries of four benchmarks with the tools that each needs, for `benches/search.rs`.

    search.py FILE

Of BFCL v4 the user's words in the turns of `base`: the questions of `long_context` are the same. Of AgentDojo and
τ²-bench those of the users' tasks. Of LiveMCPBench what a model searched for. The tools of a turn or task are the
distinct functions of its ground truth, those of a model's query the tools that it called between it and its next
query. Those without calls are left out. Entries take turns in the two halves: what search is tuned on, and what is held
out."""

import json
import sys
from pathlib import Path

import dojo
import recorded
import scripts
import tau
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


def tau2():
    domains = tau.Domains()
    queries = []
    for number, task in enumerate(tau.tasks(domains)):
        wanted = dict.fromkeys(f"{server}.{tool}" for server, tool, _arguments in task.calls)
        queries.append({"query": task.question, "half": half(number), "tools": list(wanted)})
    return {"tools": list(definitions(domains)), "queries": queries}


def livemcpbench():
    recordings = recorded.Recordings()
    queries = []
    for number, conversation in enumerate(recorded.conversations(recordings)):
        wanted = []
        for searches, (server, tool, *_rest) in zip(conversation.searches, conversation.calls, strict=True):
            if searches:
                # Of several queries it is not known which one the model called a tool for.
                wanted = []
                if len(searches) == 1:
                    queries.append({"query": searches[0], "half": half(number), "tools": wanted})
            if f"{server}.{tool}" not in wanted:
                wanted.append(f"{server}.{tool}")
    return {"tools": list(definitions(recordings)), "queries": queries}


def main():
    judged = {
        "turns of BFCL": bfcl(),
        "tasks of AgentDojo": agentdojo(),
        "tasks of τ²-bench": tau2(),
        "a model's queries in LiveMCPBench": livemcpbench(),
    }
    Path(sys.argv[1]).write_text(json.dumps(judged, ensure_ascii=False))


if __name__ == "__main__":
    main()
