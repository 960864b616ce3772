"""AgentDojo's user tasks, directly and through cx.

    dojo.py CX [--entries N] [--figures FILE]

The ground truth of each task is made as single calls, as a script in TypeScript and as one in Python. The benchmark's own
checker compares the state before and after, and the calls that arrived. README.md says what is counted."""

import copy
import datetime
import importlib.util
import json
import re
import sys
import types as python_types

from mcp import types
from pydantic import TypeAdapter

from bench import Entry, parser, report
from hosting import Backend, Hosted, structured, wrapped_schema

# The pipelines import the clients of all providers, and none is needed here.
PIPELINES = python_types.ModuleType("agentdojo.agent_pipeline")
PIPELINES.__path__ = [f"{importlib.util.find_spec('agentdojo').submodule_search_locations[0]}/agent_pipeline"]
GROUND_TRUTH = python_types.ModuleType("agentdojo.agent_pipeline.ground_truth_pipeline")
GROUND_TRUTH.GroundTruthPipeline = None
sys.modules |= {module.__name__: module for module in (PIPELINES, GROUND_TRUTH)}

from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suites

VERSION = "v1.2.2"


class Suite(Backend):
    """One suite of the benchmark as a server, and the environment of the task that runs."""

    def __init__(self, suite):
        self.suite = suite
        self.functions = {function.name: function for function in suite.tools}
        self.results = {name: TypeAdapter(function.return_type) for name, function in self.functions.items()}
        self.tools = [self.tool(function) for function in suite.tools]
        self.runtime = FunctionsRuntime(suite.tools)
        self.environment = None
        # The calls since `load`, and what they returned.
        self.calls = []
        self.returned = []

    def tool(self, function):
        return types.Tool(
            name=function.name,
            description=function.description,
            input_schema=function.parameters.model_json_schema(),
            output_schema=wrapped_schema(self.results[function.name].json_schema(mode="serialization")),
        )

    def load(self, task):
        self.environment = task.init_environment(self.suite.load_and_inject_default_environment({}))
        self.calls = []
        self.returned = []

    def call(self, name, arguments):
        """Calls a tool. Returns its text, its value, and whether it failed."""
        self.calls.append(FunctionCall(function=name, args=arguments))
        value, error = self.runtime.run_function(self.environment, name, arguments)
        if error:
            self.returned.append(error)
            return error, None, True
        value = self.results[name].dump_python(value, mode="json")
        self.returned.append(value)
        return json.dumps(value), structured(value), False


class Suites(Hosted):
    """All of them, served until the process ends."""

    def __init__(self):
        super().__init__({name: Suite(suite) for name, suite in get_suites(VERSION).items()})


class Task:
    """A user's task of a suite."""

    def __init__(self, name, suite, task):
        self.name = name
        self.suite = suite
        self.task = task
        suite.load(task)
        # As JSON has them: some arguments are dates.
        truth = task.ground_truth(suite.environment)
        self.calls = [(name, call.function, json.loads(json.dumps(dict(call.args), default=str))) for call in truth]
        # What the calls returned when they were first made.
        self.returned = None

    def load(self):
        self.suite.load(self.task)
        self.before = copy.deepcopy(self.suite.environment)

    def problem(self, way):
        """What is wrong with the state, the calls or the answers."""
        after = self.suite.environment
        output = self.task.GROUND_TRUTH_OUTPUT
        right = self.task.utility_from_traces(output, self.before, after, self.suite.calls)
        if right is None:
            right = self.task.utility(output, self.before, after)
        if not right:
            return f"{way}: the task's own check fails"
        # The first way is without cx.
        returned = without_now(self.suite.returned)
        self.returned = self.returned or returned
        if returned != self.returned:
            return f"{way}: the calls returned something else"
        return None

    def entry(self):
        return Entry(
            id=f"{self.name}_{self.task.ID}",
            servers=[self.name],
            queries=[[self.task.PROMPT]],
            turns=[self.calls],
            load=self.load,
            problem=lambda _number, way: self.problem(way),
        )


def without_now(returned):
    """Results without the present time, which what is sent and written bears. The tasks are about other years."""
    return re.sub(rf"{datetime.date.today()}T[0-9:.]+", "now", json.dumps(returned))


def tasks(suites):
    """The tasks that have calls."""
    for name, suite in suites.all.items():
        for task in suite.suite.user_tasks.values():
            task = Task(name, suite, task)
            if task.calls:
                yield task


def main():
    arguments = parser(__doc__).parse_args()
    suites = Suites()
    report("agentdojo", (task.entry() for task in tasks(suites)), suites, arguments)


if __name__ == "__main__":
    main()
