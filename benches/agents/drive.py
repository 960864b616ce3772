#!/usr/bin/env python3
"""Lets a real model hold BFCL's conversations, with tools that are shown directly and through cx.

    drive.py CX [--modes cx,involved,all] [--category base|long_context] [--entries N] [--figures FILE]

The provider and its key are those of the environment: see `model.py` and docs/llm.md. A conversation succeeds if the
benchmark's own checker agrees with state and answers after every turn. README.md says what is reported."""

import argparse
import copy
import itertools
import json
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from backends import SERVERS, Backends
from bench import serve, share, shown_definitions, text_of
from client import HttpClient
from model import Model, ModelFailure, OutOfBounds
from run import check, entries, servers_of

# What is shown to the model: the tools of cx, those of the servers that the entry uses, those of all servers.
MODES = ("cx", "involved", "all")

RULES = """You act for a user through tools. To call tools, answer with one JSON object and nothing else:
{"calls": [{"name": "…", "arguments": {…}}]}
The calls are made one after the other, and you are told what each returned. When all that the user asked for is done, or
cannot be done, answer with one JSON object: {"done": "what you tell the user"}. Ask the user nothing."""

# The benchmark keeps the state that its ground truth makes under a name. Each conversation has its own.
CONVERSATIONS = itertools.count()

AGAIN = 'That is not what was agreed. Answer with one JSON object: {"calls": [{"name": …, "arguments": {…}}]} or {"done": "…"}'


@dataclass
class Bounds:
    """The bounds at which a conversation is aborted."""

    # Questions to the model in one turn: the benchmark's own number.
    steps: int = 20
    # Of a whole conversation, questions and answers, as the provider counts them.
    tokens: int = 400_000
    answer_tokens: int = 2_000
    answer_seconds: float = 120.0
    # For a whole conversation.
    seconds: float = 600.0


class Direct:
    """The servers' own tools."""

    def __init__(self, backends, servers):
        self.backends = backends
        self.clients = {name: HttpClient(backends.port, f"/{name}/") for name in servers}
        tools = [tool.model_dump(by_alias=True) for name in servers for tool in backends.all[name].tools]
        self.system = f"{RULES}\n\nTools: {shown_definitions(tools)}"

    def call(self, name, arguments):
        client = self.clients.get(self.backends.by_tool.get(name))
        return text_of(client.call(name, arguments)) if client else f"there is no tool {name}"

    def close(self):
        for client in self.clients.values():
            client.connection.close()


class ThroughCx:
    """The tools of a cx that has seen nothing before: what search learns from runs is not passed on."""

    def __init__(self, backends, cx):
        self.home = tempfile.TemporaryDirectory()
        self.client = serve(cx, backends, self.home.name)
        tools = self.client.request("tools/list", {})["tools"]
        self.names = {tool["name"] for tool in tools}
        self.system = f"{RULES}\n\n{self.client.instructions}\n\nTools: {shown_definitions(tools)}"

    def call(self, name, arguments):
        if name not in self.names:
            return f"there is no tool {name}"
        return text_of(self.client.call(name, arguments))

    def close(self):
        self.client.close()
        self.home.cleanup()


def agreed(text):
    """The first JSON object of an answer, if it is what was agreed; models like to put words or a fence around it."""
    try:
        answer = json.JSONDecoder().raw_decode(text, text.index("{"))[0]
    except (ValueError, RecursionError):
        return None
    calls = answer.get("calls")
    if isinstance(calls, list) and calls:
        good = all(
            isinstance(call, dict) and isinstance(call.get("name"), str) and isinstance(call.get("arguments", {}), dict)
            for call in calls
        )
        return answer if good else None
    return answer if "done" in answer else None


class Conversation:
    """One entry in one mode."""

    def __init__(self, model, tools, bounds):
        self.model, self.tools, self.bounds = model, tools, bounds
        self.messages = []
        self.tokens = self.steps = self.calls = 0
        self.deadline = time.monotonic() + bounds.seconds

    def turn(self, question):
        """Until the model says that it is done. Returns how many calls it made."""
        made = 0
        self.say("user", question)
        for _step in range(self.bounds.steps):
            text, tokens = self.model.ask(self.tools.system, self.messages, self.tokens, self.deadline)
            self.tokens += tokens
            self.steps += 1
            # Providers refuse a message without text.
            self.say("assistant", text or "…")
            answer = agreed(text)
            if answer is None:
                self.say("user", AGAIN)
                continue
            if "calls" not in answer:
                return made
            results = []
            for call in answer["calls"]:
                results.append(f"{call['name']} returned:\n{self.tools.call(call['name'], call.get('arguments', {}))}")
                made += 1
                self.calls += 1
                if time.monotonic() > self.deadline:
                    raise OutOfBounds("time")
            self.say("user", "\n\n".join(results))
        raise OutOfBounds("steps")

    def say(self, role, content):
        self.messages.append({"role": role, "content": content})


def hold(model, backends, tools, entry, mode, bounds):
    """Holds the conversation up to the first turn that is wrong, which is where the entry has failed."""
    backends.load(entry)
    conversation = Conversation(model, tools, bounds)
    truth_model = f"truth_drive_{next(CONVERSATIONS)}"
    row = {"id": entry["id"], "mode": mode, "success": False, "problem": None, "provider": False}
    began = time.monotonic()
    for number, question in enumerate(entry["question"]):
        try:
            made = conversation.turn("\n".join(message["content"] for message in question))
        except OutOfBounds as bound:
            row["problem"] = f"turn {number}: out of {bound}"
            break
        except ModelFailure as failure:
            row |= {"problem": f"turn {number}: {failure}", "provider": True}
            break
        problem = check(backends, entry, number, truth_model)
        if not problem and entry["ground_truth"][number] and not made:
            problem = f"turn {number}: nothing was called"
        if problem:
            row["problem"] = problem
            break
    row["success"] = row["problem"] is None
    seconds = round(time.monotonic() - began, 1)
    return row | {
        "turns": number + 1,
        "steps": conversation.steps,
        "calls": conversation.calls,
        "tokens": conversation.tokens,
        "seconds": seconds,
    }


def drive(cx, chosen, modes, bounds, model, report=lambda row: None):
    backends = Backends()
    rows = []
    for entry in chosen:
        for mode in modes:
            if mode == "cx":
                tools = ThroughCx(backends, cx)
            else:
                tools = Direct(backends, list(SERVERS) if mode == "all" else servers_of(entry))
            try:
                rows.append(hold(model, backends, tools, copy.deepcopy(entry), mode, bounds))
            finally:
                tools.close()
            report(rows[-1])
    return rows


def summary(rows):
    """Each mode by itself; and what the conversations cost that succeeded in every mode, which are the same ones."""
    modes = list(dict.fromkeys(row["mode"] for row in rows))
    good = [{row["id"] for row in rows if row["mode"] == mode and row["success"]} for mode in modes]
    common = set.intersection(*good) if good else set()
    figures = {"entries that succeed in every mode": len(common)}
    for mode in modes:
        own = [row for row in rows if row["mode"] == mode]
        held = [row for row in own if not row["provider"]]
        succeeded = sum(row["success"] for row in held)
        figures[mode] = {
            "entries": len(held),
            "the provider failed": len(own) - len(held),
            "succeeded": succeeded,
            "success": share(succeeded / len(held)) if held else None,
            "of those that succeed in every mode": medians([row for row in own if row["id"] in common]),
            "of all": medians(held),
            "problems": [f"{row['id']}: {row['problem']}" for row in own if row["problem"]],
        }
    return figures


def medians(rows):
    kinds = ("tokens", "steps", "calls", "seconds")
    return {kind: round(statistics.median(row[kind] for row in rows), 1) for kind in kinds} if rows else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cx", help="the program")
    parser.add_argument("--modes", default=",".join(MODES), help="of %(default)s")
    parser.add_argument("--category", default="base", choices=["base", "long_context"])
    parser.add_argument("--entries", type=int, default=None, help="only the first N")
    parser.add_argument("--figures", type=Path, help="where each conversation goes, as JSON")
    for name, value in vars(Bounds()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value, help="bound: %(default)s")
    arguments = parser.parse_args()
    modes = arguments.modes.split(",")
    if unknown := set(modes) - set(MODES):
        parser.error(f"unknown modes: {', '.join(sorted(unknown))}")
    bounds = Bounds(**{name: getattr(arguments, name) for name in vars(Bounds())})
    model = Model(arguments.cx, bounds)
    report = lambda row: print(json.dumps(row, ensure_ascii=False), flush=True)
    rows = drive(arguments.cx, list(entries(arguments.category))[: arguments.entries], modes, bounds, model, report)
    model.close()
    figures = summary(rows)
    if arguments.figures:
        arguments.figures.parent.mkdir(parents=True, exist_ok=True)
        arguments.figures.write_text(json.dumps({"summary": figures, "conversations": rows}, indent=1, ensure_ascii=False))
    print(json.dumps(figures, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
