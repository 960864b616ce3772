"""LiveMCPBench's recorded conversations, directly and through cx.

    recorded.py CX [--entries N] [--figures FILE]

A model held them with the tools of 70 real MCP servers. Here each server answers as it did then: the calls are made
again as single calls, as scripts in TypeScript and as scripts in Python. README.md says what is counted."""

import ast
import json
import re
from importlib import resources

from jsonschema import Draft202012Validator
from mcp import types

from bench import Entry, parser, report
from hosting import Backend, Hosted

FILES = resources.files("baseline")
CONVERSATIONS = FILES / "output" / "claude-sonnet-4-20250514_Qwen3-Embedding-0.6B.json"
DEFINITIONS = FILES / "mcp_copilot" / "config" / "mcp_arg_Qwen3-Embedding-0.6B_qwen25_72b_int4_instruct.json"

# How the benchmark's client writes an answer. The conversations have its first 10,000 characters.
ANSWER = "meta=None content=[TextContent(type='text', text="


def definition(tool):
    """A tool with the names, types and descriptions of its parameters, which is what the benchmark has of schemas."""
    properties, required = {}, []
    for name, text in tool["parameter"].items():
        kind, description = re.fullmatch(r"\(([^)]*)\) ?(.*)", text, re.DOTALL).groups()
        optional, _, kind = kind.rpartition(", ")
        properties[name] = {} if kind == "any" else {"type": kind}
        if description:
            properties[name]["description"] = description
        if not optional:
            required.append(name)
    schema = {"type": "object", "properties": properties, "required": required}
    return types.Tool(name=tool["name"], description=tool["description"] or "", input_schema=schema)


def first_part(read, text, mark):
    """Reads a literal that was cut, as far as it goes."""
    for end in range(len(text), 0, -1):
        try:
            return read(text[:end] + mark)
        except (SyntaxError, ValueError):
            continue
    return ""


def answer(recorded):
    """What a server returned: its text, and whether the call failed."""
    if not recorded.startswith(ANSWER):
        return recorded, True
    literal = recorded.removeprefix(ANSWER)
    whole = re.fullmatch(r"(.*), annotations=None\)\] isError=(True|False)", literal, re.DOTALL)
    if not whole:
        text = first_part(ast.literal_eval, literal, literal[0])
        return first_part(json.loads, text.partition('"text": ')[2], '"'), False
    text = ast.literal_eval(whole[1])
    if whole[2] == "True":
        return text, True
    # The text is the server's answer as JSON.
    result = json.loads(text)
    return "\n".join(block["text"] for block in result["content"]), result["isError"]


def server_name(name):
    """A server's name as a part of an address."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", name)


class Recording(Backend):
    """A server that answers the calls of the conversation that runs as they were answered."""

    def __init__(self, tools):
        self.tools = [definition(tool) for tool in tools]
        self.checks = {tool.name: Draft202012Validator(tool.input_schema) for tool in self.tools}
        # The calls that are expected, with their answers, and those that were not.
        self.expected = []
        self.unexpected = []

    def allows(self, tool, arguments):
        return tool in self.checks and self.checks[tool].is_valid(arguments)

    def call(self, name, arguments):
        for call in self.expected:
            if call[:2] == (name, arguments):
                self.expected.remove(call)
                text, failed = call[2]
                return text, None, failed
        self.unexpected.append((name, arguments))
        return "This call was not recorded.", None, True


class Recordings(Hosted):
    """All of them, served until the process ends."""

    def __init__(self):
        servers = json.loads(DEFINITIONS.read_text())
        super().__init__({server_name(server["server_name"]): Recording(server["tools"]) for server in servers})

    def load(self, calls):
        for backend in self.all.values():
            backend.expected, backend.unexpected = [], []
        for server, tool, arguments, recorded in calls:
            self.all[server].expected.append((tool, arguments, recorded))


class Conversation:
    """One conversation: what the model searched for, and the calls that it made then."""

    def __init__(self, record, recordings):
        self.id = record["task_id"]
        self.recordings = recordings
        # Calls with their answers, and the queries since the call before.
        self.calls = []
        self.searches = []
        self.left_out = 0
        messages = record["messages"]
        answers = {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}
        searched = []
        for message in messages:
            for call in message.get("tool_calls") or []:
                arguments = json.loads(call["function"]["arguments"])
                if call["function"]["name"] == "route":
                    searched.append(words(arguments["query"]))
                    continue
                server, tool = server_name(arguments["server_name"]), arguments["tool_name"]
                if not recordings.all[server].allows(tool, arguments["params"]):
                    self.left_out += 1
                    continue
                self.calls.append((server, tool, arguments["params"], answer(answers[call["id"]])))
                self.searches.append(searched)
                searched = []

    def problem(self, number, way):
        """Which calls did not arrive as they were recorded, once all are made."""
        if number < len(self.calls) - 1:
            return None
        backends = self.recordings.all.values()
        missing = [call[:2] for backend in backends for call in backend.expected]
        other = [call for backend in backends for call in backend.unexpected]
        return f"{way}: missing {missing}, not recorded {other}"[:300] if missing or other else None

    def entry(self):
        return Entry(
            id=self.id,
            servers=list(dict.fromkeys(call[0] for call in self.calls)),
            queries=self.searches,
            turns=[[call[:3]] for call in self.calls],
            load=lambda: self.recordings.load(self.calls),
            problem=self.problem,
        )


def words(query):
    """A query of the benchmark without the labels that its own search asks for."""
    return " ".join(re.sub(r"</?tool_assistant>|^(server|tool):", "", query, flags=re.MULTILINE).split())


def conversations(recordings):
    """Those that have calls."""
    for record in json.loads(CONVERSATIONS.read_text()):
        conversation = Conversation(record, recordings)
        if conversation.calls:
            yield conversation


def main():
    arguments = parser(__doc__).parse_args()
    recordings = Recordings()
    report("recorded", (conversation.entry() for conversation in conversations(recordings)), recordings, arguments)


if __name__ == "__main__":
    main()
