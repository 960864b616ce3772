"""One run: a fresh `__main__`, the script's code, its value or its error as text for the host."""

import asyncio
import atexit
import builtins
import inspect
import itertools
import linecache
import logging
import os
import random
import sys
import tempfile
import time
import types
import uuid
import warnings
from asyncio import events

from cx_guest import fetch, llm, local_time, loop, output, report, runtime, script_names, source, state, values
from cx_guest.program import VALUE_NAME, Program

class _State:
    """Made by `prepare`, filled by `load`, used by `run`."""

    loop: loop.EventLoop
    main: types.ModuleType
    namespace: dict
    program: Program
    name: str
    names_loaded: bool
    logs_times: bool
    inputs: object
    result_bytes: int


def install() -> None:
    """Changes the interpreter into the one that scripts find. Called at build time."""
    loop.install()
    output.install()
    script_names.install()
    runtime.install()
    local_time.install()
    _State.loop = loop.EventLoop()
    _State.exit_functions = atexit._ncallbacks()
    builtins.input = output.no_input
    warnings._warn_unawaited_coroutine = _warn_unawaited
    warm_up()


# A script that does what most scripts do.
_WARM_UP = """
import json

async def work(number=1):
    return {"text": f"{number}", "list": [x * 1.5 for x in range(2)]}

print(end="")
value = await work()
value["text"]
"""


def warm_up() -> None:
    """Compiles and runs a script that does nothing, so that Python's own caches are filled in the snapshot."""
    namespace = {"__builtins__": builtins, "inputs": None}
    program = source.compile_script(_WARM_UP, "<warm-up>")
    values.to_json("value", {"value": loop.run_coroutine(_State.loop, _finish(eval(program.code, namespace)))})
    values.from_json('{"a": [1]}')


def prepare() -> None:
    """Seeds what the snapshot froze, and makes the event loop and the script's module."""
    random.seed()
    # The names of temporary files and UUIDs of version 1 would be the same in every run.
    tempfile._name_sequence = None
    uuid._node = uuid._last_timestamp = None
    os.environ.clear()
    main = types.ModuleType("__main__")
    namespace = main.__dict__
    namespace["__builtins__"] = builtins
    namespace.update(script_names.script_globals())
    namespace["state"] = state.State()
    namespace["llm"] = llm.Llm()
    sys.modules["__main__"] = main
    _State.main = main
    _State.namespace = namespace
    _State.loop = loop.EventLoop()
    # What is not asynchronous may still make futures: they belong to the loop that will run them.
    events.set_event_loop(_State.loop)
    _State.exit_functions = atexit._ncallbacks()
    sys.set_coroutine_origin_tracking_depth(1)


def load(script) -> str | None:
    """Compiles the script. Returns nothing, or the report of its syntax error."""
    name = script.name
    text = script.source
    try:
        _State.program = source.compile_script(text, name)
    except source.SourceError as error:
        return values.to_json("report", error.report)
    namespace = _State.namespace
    _State.inputs = namespace["inputs"] = values.from_json(script.input) if script.input else None
    namespace["__file__"] = name
    # A relative path is one in the scratch directory.
    os.chdir("/tmp")
    sys.argv = [name]
    if script.time_zone is not None:
        local_time.start(script.time_zone)
    servers = values.from_json(script.servers)
    if script.network:
        fetch.start(namespace)
    script_names.start(namespace, servers, script.argument_bytes)
    runtime.start(namespace, servers)
    # Read when a traceback or `inspect.getsource` asks for it.
    linecache.cache[name] = (lambda: text,)
    _State.name = name
    _State.logs_times = "relativeCreated" in text
    _State.names_loaded = "LOADED_MCP_SERVERS" in text
    _State.result_bytes = script.result_bytes
    return None


def run() -> str:
    """Runs the script. Returns `+` and its value, or `-` and the report of its error."""
    try:
        for note in _State.program.notes:
            output.say(note)
        if _State.logs_times:
            # Else that of the snapshot. Not read by other scripts: a reading of the clock is part of a recording.
            logging._startTime = time.time_ns()
        if _State.names_loaded:
            runtime.name_loaded(_State.namespace)
        try:
            value = _execute(_State.program, _State.namespace)
            text = "+" + values.cut(values.to_json("value", value), _State.result_bytes)
        except SystemExit as error:
            failure = report.exit_report(error, _State.name)
            text = "+null" if failure is None else "-" + failure
    except BaseException as error:
        text = "-" + report.describe(error, _State.name)
    else:
        try:
            _warn_of_forgotten(_State.namespace)
        except BaseException as error:
            output.say(f"looking for calls without `await` failed: {type(error).__name__}")
    _run_exit_functions()
    output.finish()
    return text


def _run_exit_functions() -> None:
    """Runs the functions that the script has registered with `atexit`, which prints their errors as Python does."""
    try:
        if atexit._ncallbacks() > _State.exit_functions:
            atexit._run_exitfuncs()
    except BaseException:
        # Not even that may cost the run its value.
        pass


def _execute(program: Program, namespace: dict):
    code = program.code
    if program.returns:
        namespace["__doc__"] = program.doc
        value = types.FunctionType(code, namespace)()
        if code.co_flags & inspect.CO_COROUTINE:
            return loop.run_coroutine(_State.loop, _finish(value))
    else:
        value = eval(code, namespace)
        if code.co_flags & inspect.CO_COROUTINE:
            return loop.run_coroutine(_State.loop, _finish(value, program, namespace))
        value = _value(program, namespace)
    if _is_awaitable(value):
        return loop.run_coroutine(_State.loop, _finish(value))
    return value


async def _finish(script, program: Program | None = None, namespace: dict | None = None):
    value = await script
    if program is not None:
        value = _value(program, namespace)
    while _is_awaitable(value):
        awaited = await value
        if awaited is value:
            # An answer of a model in pieces: `await` leaves it as it is.
            break
        value = awaited
    return value


def _is_awaitable(value) -> bool:
    return type(value) not in _COMMON and inspect.isawaitable(value)


_COMMON = frozenset({int, str, float, bool, list, dict, tuple, type(None)})


def _value(program: Program, namespace: dict):
    """Returns the value of a script that has run, or what its function returns."""
    if program.entry is not None:
        function = namespace[program.entry]
        # Not the variable: the script may have used the name for something else.
        inputs = _State.inputs
        return function(inputs) if _takes_input(function, inputs) else function()
    return namespace.pop(VALUE_NAME, None) if program.has_value else None


def _takes_input(function, inputs) -> bool:
    """Whether the function's first parameter is for the run's input: it has no default, or there is an input."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    if not parameters:
        return False
    first = parameters[0]
    if first.kind not in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD):
        return False
    return first.default is first.empty or inputs is not None


# --- what was forgotten ---------------------------------------------------------------------------------------------


def _warn_unawaited(coroutine) -> None:
    """Says which call of a coroutine function was never awaited, and where. Python calls it when it drops one."""
    name = getattr(coroutine, "__qualname__", "?")
    origin = coroutine.cr_origin
    location = ""
    for file, line, _function in origin or ():
        location = f" (line {line})" if file == getattr(_State, "name", None) else f" ({file}, line {line})"
    output.say(f"`{name}()` was never awaited{location}: write `await` before it")


def _held(namespace: dict):
    """What the variables hold, and what the collections in them hold."""
    for value in list(namespace.values()):
        kind = type(value)
        if kind is list or kind is tuple or kind is set:
            yield from list(itertools.islice(value, _MAX_LOOKED_AT))
        elif kind is dict:
            yield from list(itertools.islice(value.values(), _MAX_LOOKED_AT))
        else:
            yield value


# Of each collection: a list of a million numbers must not delay the answer.
_MAX_LOOKED_AT = 100


def _warn_of_forgotten(namespace: dict) -> None:
    """The same for coroutines that a variable still holds at the end, and for tasks whose error was never read."""
    for value in _held(namespace):
        if type(value) is types.CoroutineType:
            if inspect.getcoroutinestate(value) == inspect.CORO_CREATED:
                _warn_unawaited(value)
            value.close()
        elif type(value) is asyncio.Task and value.done() and value._log_traceback:
            value.get_loop().call_exception_handler(
                {"message": "exception was never retrieved", "exception": value.exception()}
            )
