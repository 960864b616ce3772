"""BFCL v4's multi-turn entries, directly and through cx.

    run.py CX [--category NAME] [--entries N] [--figures FILE]

The ground truth of each turn is made as single calls, as a script in TypeScript and as one in Python. The benchmark's own
checker compares state and answers after every turn. README.md says what is counted."""

import json
from importlib import resources

from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker import response_checker, state_checker
from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils import execute_multi_turn_func_call

import scripts
from backends import SERVERS, Backends
from bench import Entry, parser, report

# Those with calls that are executed. In `miss_func` and `miss_param` a turn lacks a tool or a value, and has no calls.
CATEGORIES = ("base", "long_context", "miss_func", "miss_param")


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


def conversation(entry, backends):
    """An entry as the bench runs it."""
    return Entry(
        id=entry["id"],
        servers=servers_of(entry),
        queries=[[" ".join(message["content"] for message in question)] for question in entry["question"]],
        turns=[[scripts.parse(call, backends) for call in turn] for turn in entry["ground_truth"]],
        load=lambda: backends.load(entry),
        problem=lambda number, way: check(backends, entry, number, f"truth_{way}"),
    )


def main():
    commands = parser(__doc__)
    commands.add_argument("--category", default="base", choices=CATEGORIES)
    arguments = commands.parse_args()
    backends = Backends()
    conversations = (conversation(entry, backends) for entry in entries(arguments.category))
    report(arguments.category, conversations, backends, arguments)


if __name__ == "__main__":
    main()
