"""The driver of `drive.py`, end to end: a real cx, real servers, and a provider over HTTP that plays a model.

    CX=PATH_TO_CX python -m unittest test_drive

`make bench-agents-check` does that."""

import json
import os
import time
import unittest
from unittest import mock

import scripts
from backends import Backends
from drive import MODES, Bounds, agreed, drive, summary
from fake_provider import FakeProvider, Refused
from model import Model
from run import entries

CX = os.environ["CX"]

# Read-only turns, turns that change state, and answers of other tools in arguments are among the first five.
ENTRIES = list(entries("base"))[:5]

BACKENDS = Backends()


class Player:
    """A model that makes the calls of the ground truth, or other ones."""

    def __init__(self, language="typescript", calls=lambda calls: calls):
        self.language, self.calls = language, calls
        self.turns = {}
        for entry in ENTRIES:
            for question, turn in zip(entry["question"], entry["ground_truth"], strict=True):
                words = "\n".join(message["content"] for message in question)
                assert self.turns.setdefault(words, turn) == turn, f"asked twice: {words}"

    def __call__(self, system, messages):
        turn = self.turns.get(messages[-1]["content"])
        calls = self.calls([scripts.parse(call, BACKENDS) for call in turn]) if turn else []
        if not calls:
            return json.dumps({"done": "It is done."})
        if "executeTypescript" not in system:
            return json.dumps({"calls": [{"name": tool, "arguments": arguments} for _server, tool, arguments in calls]})
        code = getattr(scripts, self.language)(calls)
        name = {"typescript": "executeTypescript", "python": "executePython"}[self.language]
        return json.dumps({"calls": [{"name": name, "arguments": {"code": code}}]})


class Drive(unittest.TestCase):
    def drive(self, play, provider="openai", modes=MODES, chosen=ENTRIES, environment=None, **bounds):
        fake = FakeProvider(play)
        self.addCleanup(fake.close)
        settings = {"PATH": os.environ["PATH"]} | fake.environment(provider) | (environment or {})
        bounds = Bounds(**bounds)
        model = Model(CX, bounds, settings)
        self.addCleanup(model.close)
        return drive(CX, chosen, modes, bounds, model), fake

    def all_problems(self, rows):
        return [row["problem"] for row in rows if row["problem"]]

    def test_the_ground_truth_succeeds_in_every_mode_and_both_wire_formats(self):
        for provider, language in (("openai", "typescript"), ("anthropic", "python")):
            with self.subTest(provider):
                rows, fake = self.drive(Player(language), provider)
                self.assertEqual(self.all_problems(rows), [])
                self.assertEqual(len(rows), len(ENTRIES) * len(MODES))
                self.assertEqual(sum(row["tokens"] for row in rows), fake.tokens)
                self.assertEqual(sum(row["steps"] for row in rows), fake.asked)
                for entry in ENTRIES:
                    turns = [turn for turn in entry["ground_truth"]]
                    calling = sum(1 for turn in turns if turn)
                    for row in (row for row in rows if row["id"] == entry["id"]):
                        single = calling if row["mode"] == "cx" else sum(map(len, turns))
                        self.assertEqual((row["turns"], row["calls"]), (len(turns), single), row)
                        self.assertEqual(row["steps"], calling + len(turns), row)
                figures = summary(rows)
                self.assertEqual(figures["entries that succeed in every mode"], len(ENTRIES))
                for mode in MODES:
                    self.assertEqual((figures[mode]["succeeded"], figures[mode]["success"]), (len(ENTRIES), "100%"))
                tokens = [figures[mode]["of all"]["tokens"] for mode in MODES]
                self.assertEqual(tokens, sorted(tokens))

    def test_a_call_that_is_left_out_is_no_success(self):
        rows, _fake = self.drive(Player(calls=lambda calls: calls[:-1]))
        self.assertEqual([row["id"] for row in rows if row["success"]], [])
        self.assertEqual(summary(rows)["cx"]["success"], "0%")
        self.assertEqual(summary(rows)["entries that succeed in every mode"], 0)

    def test_an_argument_that_is_wrong_is_no_success(self):
        def wrong(calls):
            altered = lambda value: f"{value}x" if isinstance(value, str) else value
            return [(server, tool, {name: altered(value) for name, value in arguments.items()})
                    for server, tool, arguments in calls]

        rows, _fake = self.drive(Player(calls=wrong))
        self.assertEqual([row["id"] for row in rows if row["success"]], [])

    def test_a_call_too_many_that_changes_state_is_no_success(self):
        rows, _fake = self.drive(
            Player(calls=lambda calls: [*calls, ("files", "touch", {"file_name": "left_behind.txt"})]),
            chosen=[entry for entry in ENTRIES if "GorillaFileSystem" in entry["involved_classes"]],
        )
        self.assertTrue(rows)
        for row in rows:
            self.assertFalse(row["success"], row)
            self.assertIn("does not match the state", row["problem"])

    def test_a_model_that_only_says_that_it_is_done_is_no_success(self):
        rows, _fake = self.drive(lambda system, messages: '{"done": "Gladly."}')
        self.assertEqual(len(self.all_problems(rows)), len(rows))

    def test_answers_that_were_not_agreed_are_asked_for_again(self):
        truth = Player()

        def play(system, messages):
            wrong = {0: "I would call a tool.", 1: '{"calls": "ls"}'}
            said = sum(message["role"] == "assistant" for message in messages)
            if said in wrong:
                return wrong[said]
            asked = next(message for message in reversed(messages)
                         if message["role"] == "user" and "not what was agreed" not in message["content"])
            return f"Here you are:\n```json\n{truth(system, [asked])}\n```"

        rows, fake = self.drive(play, modes=["cx"])
        self.assertEqual(self.all_problems(rows), [])
        self.assertEqual(sum(row["steps"] for row in rows), fake.asked)

    def test_a_tool_that_is_not_there_is_an_answer(self):
        said = []

        def play(system, messages):
            said.append(messages[-1]["content"])
            called = any(message["role"] == "assistant" for message in messages)
            return '{"done": ""}' if called else '{"calls": [{"name": "no_such_tool", "arguments": {}}]}'

        rows, _fake = self.drive(play, chosen=ENTRIES[:1])
        self.assertEqual(said.count("no_such_tool returned:\nthere is no tool no_such_tool"), len(MODES))
        self.assertEqual([row["success"] for row in rows], [False] * len(MODES))

    def test_steps_are_bounded(self):
        rows, fake = self.drive(lambda system, messages: "no", modes=["cx"], chosen=ENTRIES[:1], steps=3)
        self.assertEqual((rows[0]["problem"], rows[0]["steps"], fake.asked), ("turn 0: out of steps", 3, 3))

    def test_tokens_are_bounded(self):
        rows, fake = self.drive(lambda system, messages: "word " * 300, modes=["cx"], chosen=ENTRIES[:1], tokens=8_000)
        self.assertEqual(rows[0]["problem"], "turn 0: out of tokens")
        self.assertLess(rows[0]["steps"], 20)
        self.assertLessEqual(fake.tokens, 8_000)

    def test_time_is_bounded(self):
        rows, _fake = self.drive(lambda system, messages: time.sleep(20), modes=["cx"], chosen=ENTRIES[:1], seconds=1.0)
        self.assertEqual(rows[0]["problem"], "turn 0: out of time")

    def test_a_provider_that_fails_is_not_the_models_failure(self):
        def refuse(system, messages):
            raise Refused(500)

        rows, _fake = self.drive(refuse, modes=["cx"], chosen=ENTRIES[:1])
        self.assertTrue(rows[0]["provider"])
        figures = summary(rows)["cx"]
        self.assertEqual((figures["entries"], figures["the provider failed"], figures["success"]), (0, 1, None))

    def test_a_rate_limit_is_waited_for(self):
        truth = Player()
        refused = []

        def play(system, messages):
            if not refused:
                refused.append(time.monotonic())
                raise Refused(429, {"retry-after": "1"})
            return truth(system, messages)

        rows, _fake = self.drive(play, modes=["cx"], chosen=ENTRIES[:1])
        self.assertEqual(self.all_problems(rows), [])

    def test_a_wrong_key_is_said_and_no_key_is_given_to_the_cx_that_is_measured(self):
        rows, _fake = self.drive(
            Player(), modes=["cx"], chosen=ENTRIES[:1], environment={"OPENAI_API_KEY": "another"}
        )
        self.assertIn("refuses the key", rows[0]["problem"])

        seen = []

        def play(system, messages):
            seen.append(messages[-1]["content"])
            code = "try { return await llm.ask('x') } catch (error) { return error.code }"
            first = not any(message["role"] == "assistant" for message in messages)
            call = {"name": "executeTypescript", "arguments": {"code": code, "enableSampling": True}}
            return json.dumps({"calls": [call]} if first else {"done": ""})

        fake = FakeProvider(play)
        self.addCleanup(fake.close)
        # As a user may have set it for all programs.
        with mock.patch.dict(os.environ, fake.environment("openai")):
            model = Model(CX, Bounds())
            self.addCleanup(model.close)
            drive(CX, ENTRIES[:1], ["cx"], Bounds(), model)
        self.assertIn("executeTypescript returned:\nMODEL_UNAVAILABLE", seen)

    def test_an_answer_arrives_as_it_is(self):
        said = "Write to jane@example.com, 4111 1111 1111 1111."
        fake = FakeProvider(lambda system, messages: said)
        self.addCleanup(fake.close)
        model = Model(CX, Bounds(), {"PATH": os.environ["PATH"]} | fake.environment("openai"))
        self.addCleanup(model.close)
        answer = model.ask("Be brief.", [{"role": "user", "content": "one two"}], 0, time.monotonic() + 60)
        self.assertEqual(answer, (said, fake.tokens))


class Agreed(unittest.TestCase):
    def test_what_counts_as_agreed(self):
        for text, good in (
            ('{"done": ""}', True),
            ('Sure:\n```json\n{"calls": [{"name": "ls"}]}\n```', True),
            ('{"calls": []}', False),
            ('{"calls": [{"name": 5}]}', False),
            ('{"calls": [{"name": "ls", "arguments": []}]}', False),
            ("[]", False),
            ("", False),
            ('{"calls": [', False),
        ):
            self.assertEqual(agreed(text) is not None, good, text)


if __name__ == "__main__":
    unittest.main()
