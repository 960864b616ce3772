"""How `recorded.py` reads what LiveMCPBench has recorded, and what it finds wrong."""

import json
import unittest

import recorded


def recorded_answer(text, failed=False):
    """As the benchmark's client writes it."""
    return f"{recorded.ANSWER}{text!r}, annotations=None)] isError={failed}"


def result(*texts, failed=False):
    """A server's answer as JSON."""
    return json.dumps({"content": [{"type": "text", "text": text} for text in texts], "isError": failed})


class Answers(unittest.TestCase):
    def test_the_texts_of_an_answer(self):
        answer = recorded.answer(recorded_answer(result("it's \"a\"\n", "b")))
        self.assertEqual(answer, ('it\'s "a"\n\nb', False))

    def test_a_failure_of_the_server_and_one_of_the_client(self):
        self.assertEqual(recorded.answer(recorded_answer(result("no", failed=True))), ("no", True))
        self.assertEqual(recorded.answer(recorded_answer("MCP error -32602", failed=True)), ("MCP error -32602", True))
        self.assertEqual(recorded.answer("Tool call timed out."), ("Tool call timed out.", True))

    def test_an_answer_that_was_cut_is_read_as_far_as_it_goes(self):
        whole = recorded_answer(result("line\n" * 100))
        # Wherever it was cut, also within an escape.
        for length in range(len(recorded.ANSWER) + 60, len(whole) - 40):
            text, failed = recorded.answer(whole[:length])
            self.assertTrue(("line\n" * 100).startswith(text) and not failed, f"{length}: {text!r}")
        self.assertGreater(len(text), 400)


class Definitions(unittest.TestCase):
    def test_types_descriptions_and_what_is_optional(self):
        parameter = {"path": "(string) Where (in all)\nit is", "n": "(Optional, integer) ", "x": "(any) "}
        tool = recorded.definition({"name": "read", "description": None, "parameter": parameter})
        expected = {"path": {"type": "string", "description": "Where (in all)\nit is"}, "n": {"type": "integer"}, "x": {}}
        self.assertEqual(tool.input_schema["properties"], expected)
        self.assertEqual(tool.input_schema["required"], ["path", "x"])


class Conversations(unittest.TestCase):
    def test_a_query_without_its_labels(self):
        query = "<tool_assistant>\nserver: files or disks\ntool: read a file\n</tool_assistant>"
        self.assertEqual(recorded.words(query), "files or disks read a file")

    def test_calls_that_are_missing_or_were_not_recorded(self):
        class Servers:
            all = {"files": recorded.Recording([{"name": "read", "description": "", "parameter": {}}])}
            load = recorded.Recordings.load

        call = {"server_name": "files", "tool_name": "read", "params": {"path": "a"}}
        function = {"name": "execute-tool", "arguments": json.dumps(call)}
        messages = [
            {"role": "assistant", "tool_calls": [{"id": "1", "function": function}]},
            {"role": "tool", "tool_call_id": "1", "content": recorded_answer(result("text"))},
        ]
        conversation = recorded.Conversation({"task_id": "t", "messages": messages}, Servers())
        server = conversation.recordings.all["files"]
        conversation.recordings.load(conversation.calls)
        self.assertIn("missing", conversation.problem(0, "direct"))
        self.assertEqual(server.call("read", {"path": "b"}), ("This call was not recorded.", None, True))
        self.assertEqual(server.call("read", {"path": "a"}), ("text", None, False))
        self.assertIn("not recorded [('read', {'path': 'b'})]", conversation.problem(0, "direct"))
        conversation.recordings.load(conversation.calls)
        server.call("read", {"path": "a"})
        self.assertIsNone(conversation.problem(0, "direct"))


if __name__ == "__main__":
    unittest.main()
