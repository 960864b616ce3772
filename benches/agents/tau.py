"""τ²-bench's tasks, directly and through cx.

    tau.py CX [--entries N] [--figures FILE]

The right calls of each task are made as single calls, as scripts in TypeScript and as scripts in Python, a call a turn.
The benchmark's own checkers compare the databases, the state of the user's device and the calls. README.md says what is
counted."""

import inspect
import logging
import sys
import types as python_types

# The evaluator's module has a table for reports, and reads a file with keys of models. Neither is needed here.
PANDAS, DOTENV = python_types.ModuleType("pandas"), python_types.ModuleType("dotenv")
PANDAS.DataFrame = None
DOTENV.load_dotenv = lambda: True
# What it logs are the errors that tools return, which are checked here.
LOGURU = python_types.ModuleType("loguru")
LOGURU.logger = logging.Logger("tau2", logging.CRITICAL)
sys.modules |= {module.__name__: module for module in (PANDAS, DOTENV, LOGURU)}

from mcp import types
from pydantic import TypeAdapter
from tau2.data_model.message import AssistantMessage, ToolCall, ToolMessage, UserMessage
from tau2.domains.airline import environment as airline
from tau2.domains.retail import environment as retail
from tau2.domains.telecom import environment as telecom
from tau2.evaluator.evaluator_action import ActionEvaluator
from tau2.evaluator.evaluator_env import EnvironmentEvaluator

from bench import Entry, parser, report
from hosting import Backend, Hosted, structured, wrapped_schema

DOMAINS = {"airline": airline, "retail": retail, "telecom": telecom}

# The server with the tools of each requestor. In `telecom` a task also needs what the user does with the telephone.
SERVERS = {
    "airline": {"assistant": "airline"},
    "retail": {"assistant": "retail"},
    "telecom": {"assistant": "telecom", "user": "phone"},
}

# The messages with the calls of each requestor.
MESSAGES = {"assistant": AssistantMessage, "user": UserMessage}


class Domain:
    """One domain of the benchmark, in the state of the task that runs."""

    def __init__(self, name):
        self.module = DOMAINS[name]
        self.environment = self.module.get_environment()
        # The calls since `load` with their answers, as the benchmark records a conversation.
        self.messages = []

    def load(self, task):
        self.environment = self.module.get_environment()
        self.messages = []
        if task.initial_state:
            initial = task.initial_state
            self.environment.set_state(initial.initialization_data, initial.initialization_actions, [])

    def call(self, requestor, name, arguments):
        """Calls a tool and records it. Returns its text, its value, and whether it failed."""
        environment = self.environment
        try:
            value, failed = environment.make_tool_call(name, requestor=requestor, **arguments), False
            environment.sync_tools()
        except Exception as error:
            value, failed = f"Error: {error}", True
        text = environment.to_json_str(value)
        number = str(len(self.messages))
        call = ToolCall(id=number, name=name, arguments=arguments, requestor=requestor)
        self.messages.append(MESSAGES[requestor](role=requestor, tool_calls=[call]))
        self.messages.append(ToolMessage(id=number, role="tool", content=text, requestor=requestor, error=failed))
        return text, value, failed

    def recorded(self):
        """The calls and their answers, to compare them."""
        calls = [call for message in self.messages[::2] for call in message.tool_calls]
        made = [(call.requestor, call.name, call.arguments) for call in calls]
        return made, [(message.content, message.error) for message in self.messages[1::2]]


class Tools(Backend):
    """The tools that one requestor has in a domain, as a server."""

    def __init__(self, domain, requestor):
        self.domain = domain
        self.requestor = requestor
        environment = domain.environment
        tools = environment.get_tools() if requestor == "assistant" else environment.get_user_tools()
        self.results = {tool.name: TypeAdapter(inspect.signature(tool._func).return_annotation) for tool in tools}
        self.tools = [self.tool(tool.openai_schema["function"]) for tool in tools]
        properties = {tool.name: tool.input_schema.get("properties", {}) for tool in self.tools}
        self.numbers = {
            name: [key for key, schema in members.items() if schema.get("type") == "number"]
            for name, members in properties.items()
        }

    def tool(self, function):
        schema = self.results[function["name"]].json_schema(mode="serialization")
        return types.Tool(
            name=function["name"],
            description=function["description"],
            input_schema=function["parameters"],
            output_schema=wrapped_schema(schema),
        )

    def call(self, name, arguments):
        # As SDKs do, because a number without a fraction may be written like an integer, and TypeScript does.
        numbers = self.numbers.get(name, ())
        written = {key: float(arguments[key]) for key in numbers if isinstance(arguments.get(key), int)}
        text, value, failed = self.domain.call(self.requestor, name, arguments | written)
        if failed:
            return text, None, True
        # Some tools return what their annotations do not say.
        return text, structured(self.results[name].dump_python(value, mode="json", warnings=False)), False


class Domains(Hosted):
    """All of them, served until the process ends."""

    def __init__(self):
        self.domains = {name: Domain(name) for name in DOMAINS}
        super().__init__(
            {
                server: Tools(self.domains[name], requestor)
                for name, servers in SERVERS.items()
                for requestor, server in servers.items()
            }
        )


class Task:
    """A task of a domain."""

    def __init__(self, name, domain, task):
        self.name = name
        self.domain = domain
        self.task = task
        self.calls = [
            (SERVERS[name][action.requestor], action.name, action.arguments)
            for action in task.evaluation_criteria.actions or []
        ]
        self.question = task.user_scenario.instructions.reason_for_call
        # What the calls were, and what they returned, when they were first made.
        self.first = None

    def problem(self, number, way):
        """What is wrong with the databases, the calls or the answers, once all calls are made."""
        if number < len(self.calls) - 1:
            return None
        # The first way is without cx. The checkers make the recorded calls again, and see nothing else.
        recorded = self.domain.recorded()
        if self.first is None:
            self.first = recorded
        elif recorded != self.first:
            return f"{way}: other calls arrived, or they returned something else"
        else:
            return None
        messages = self.domain.messages
        state = EnvironmentEvaluator.calculate_reward(self.domain.module.get_environment, self.task, messages)
        calls = ActionEvaluator.calculate_reward(self.task, messages)
        if state.reward < 1 or calls.reward < 1:
            return f"{way}: the benchmark's check fails: {state.reward_breakdown}, calls: {calls.reward}"
        return None

    def entry(self):
        return Entry(
            id=f"{self.name}_{self.task.id}",
            servers=list(SERVERS[self.name].values()),
            # What the user says later is a model's part in this benchmark, so a search has only the first words.
            queries=[[self.question]] + [[]] * (len(self.calls) - 1),
            turns=[[call] for call in self.calls],
            load=lambda: self.domain.load(self.task),
            problem=self.problem,
        )


def tasks(domains):
    """The tasks that have calls."""
    for name, domain in domains.domains.items():
        for task in domain.module.get_tasks("base"):
            task = Task(name, domain, task)
            if task.calls:
                yield task


def main():
    arguments = parser(__doc__).parse_args()
    domains = Domains()
    report("tau2", (task.entry() for task in tasks(domains)), domains, arguments)


if __name__ == "__main__":
    main()
