"""Writes the user's turns of BFCL v4's multi-turn entries with the tools that each needs, for `benches/search.rs`.

    search.py FILE

Of `base`: the questions of `long_context` are the same. A turn's tools are the distinct functions of its ground truth.
Turns without calls are left out. Entries take turns in the two halves: what search is tuned on, and what is held out."""

import json
import sys
from pathlib import Path

import scripts
from backends import Backends
from run import entries


def turns(backends):
    for number, entry in enumerate(entries("base")):
        for question, calls in zip(entry["question"], entry["ground_truth"], strict=True):
            parsed = [scripts.parse(call, backends) for call in calls]
            tools = list(dict.fromkeys(f"{server}.{tool}" for server, tool, _arguments in parsed))
            if tools:
                yield {
                    "query": " ".join(message["content"] for message in question),
                    "half": "held-out" if number % 2 else "tune",
                    "tools": tools,
                }


def main():
    backends = Backends()
    tools = [
        {"server": name} | tool.model_dump(by_alias=True, include={"name", "description", "input_schema", "output_schema"})
        for name, backend in backends.all.items()
        for tool in backend.tools
    ]
    judged = {"tools": tools, "queries": list(turns(backends))}
    Path(sys.argv[1]).write_text(json.dumps(judged, ensure_ascii=False))


if __name__ == "__main__":
    main()
