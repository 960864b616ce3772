"""Runs a sample of CPython's own tests inside of cx and compares what fails with `expected.md`."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent

# What is run: module of `test`. Of packages only modules that need neither sockets nor processes.
SAMPLE = """
test_json.test_decode test_json.test_default test_json.test_dump test_json.test_encode_basestring_ascii
test_json.test_enum test_json.test_fail test_json.test_float test_json.test_indent test_json.test_pass1
test_json.test_pass2 test_json.test_pass3 test_json.test_pickleable test_json.test_recursion test_json.test_scanstring
test_json.test_separators test_json.test_speedups test_json.test_unicode
test_re
test_asyncio.test_context test_asyncio.test_eager_task_factory test_asyncio.test_futures test_asyncio.test_futures2
test_asyncio.test_graph test_asyncio.test_locks test_asyncio.test_pep492 test_asyncio.test_protocols
test_asyncio.test_queues test_asyncio.test_runners test_asyncio.test_taskgroups
test_asyncio.test_timeouts test_asyncio.test_transports test_asyncio.test_waitfor
test_datetime
test_collections test_ordered_dict test_deque test_defaultdict
test_statistics test_fractions test_dataclasses test_enum test_contextlib test_contextlib_async
test_functools test_heapq test_bisect test_string.test_string test_textwrap test_random
test_base64 test_copy
""".split()

# One run for each class: all of them in one run sometimes end with a trap in the interpreter, see README.md.
TASKS = """
CTask_CFuture_Tests CTask_CFuture_SubclassTests CTaskSubclass_PyFuture_Tests PyTask_CFutureSubclass_Tests
CTask_PyFuture_Tests PyTask_CFuture_Tests PyTask_PyFuture_Tests PyTask_PyFuture_SubclassTests CTask_Future_Tests
PyIntrospectionTests CIntrospectionTests PyCurrentLoopTests CCurrentLoopTests GenericTaskTests FutureGatherTests
CoroutineGatherTests SleepTests
""".split()
SAMPLE += [f"test_asyncio.test_tasks:{name}" for name in TASKS]

# Helpers that the modules import.
HELPERS = "support/**/*.py", "*_tests.py", "datetimetester.py", "pickle*.py", "test_*.py", "test_*/*.py", "mock_socket.py"

# Data files that modules read: module -> patterns in the tests' directory. They are opened from memory.
DATA = {
    "test_asyncio": ["certdata/*.pem", "certdata/keycert3.pem.reference"],
    "test_fractions": ["mathdata/*"],
    "test_random": ["randv*.pck"],
}

# Left out: these corrupt the memory of CPython 3.14.0's interpreter, so the results of these and later tests are
# random.
WITHOUT = [
    "test.test_json.test_speedups.TestEncode.test_current_indent_level",
    "test.test_ordered_dict.*.test_issue148660_*",
    "test.test_asyncio.test_futures.*.test_futureiter_send_after_*_no_crash",
    "test.test_asyncio.test_tasks.*.test_get_context_uninitialized_segfault",
    "test.test_functools.*.test_repr_safety_against_reentrant_mutation",
]

# cx stops a run after 10 s of CPU time unless a configuration allows more.
LIMITS = {"cpuTimeMs": 600_000, "maxResultBytes": 1_000_000}


def sources(directory: Path, wanted: str) -> dict[str, list]:
    """Returns {module name: [text, whether it is a package]}: the wanted module, its package, and helpers."""
    found: dict[str, list] = {}
    wanted_package = wanted.split(".")[0]
    for pattern in HELPERS:
        for path in directory.glob(pattern):
            parts = path.relative_to(directory).with_suffix("").parts
            if parts[0].startswith("test_") and parts[0] not in (wanted_package, "test_contextlib"):
                continue
            package = parts[-1] == "__init__"
            name = ".".join(("test", *(parts[:-1] if package else parts)))
            found[name] = [path.read_text(encoding="utf-8"), package]
    found["test"] = ["", True]
    if "test.test_asyncio" in found:
        # It says only that all of it is to be skipped where there are no sockets.
        found["test.test_asyncio"] = ["", True]
    return found


def data(directory: Path, wanted: str) -> dict[str, str]:
    """Returns the data files of a module: {path in the directory: text, one character for each byte}."""
    paths = [path for pattern in DATA.get(wanted.split(".")[0], ()) for path in directory.glob(pattern)]
    return {str(path.relative_to(directory)): path.read_bytes().decode("latin-1") for path in paths}


def run(cx: str, directory: Path, entry: str, work: Path) -> dict:
    """Runs one entry of the sample in its own process. Returns what guest.py says, or {"broken": why}."""
    module, _, only = entry.partition(":")
    limits = work / "cx.json"
    limits.write_text(json.dumps({"limits": LIMITS}))
    given = work / "input.json"
    question = {"run": f"test.{module}", "classes": [only] if only else None, "without": WITHOUT}
    question |= {"modules": sources(directory, module), "data": data(directory, module)}
    given.write_text(json.dumps(question))
    command = [cx, "run", "--lang", "py", "--json", "--timeout", "300s", "--memory", "1GiB", "--input", f"@{given}"]
    environment = {**os.environ, "CX_CONFIG": str(limits)}
    done = subprocess.run(
        [*command, str(HERE / "guest.py")], capture_output=True, text=True, env=environment, timeout=600, check=False
    )
    try:
        outcome = json.loads(done.stdout)
    except ValueError:
        return {"broken": f"no outcome, exit {done.returncode}: {done.stderr[-500:]}"}
    value = outcome.get("value")
    return value if isinstance(value, dict) and "ran" in value else {"broken": json.dumps(outcome)[:1500]}


def expected() -> set[str]:
    """The test ids in the table of expected.md: those in the first column, each in backticks. `*` ends a prefix."""
    return set(re.findall(r"^\| `([^`]+)` \|", (HERE / "expected.md").read_text(encoding="utf-8"), re.MULTILINE))


def matches(pattern: str, test: str) -> bool:
    """Whether a pattern of the table means this test. A `*` stands for any characters but dots."""
    return re.fullmatch(re.escape(pattern).replace(r"\*", "[^.]*"), test) is not None


def compare(outcomes: dict[str, dict], patterns: set[str], whole: bool) -> list[str]:
    """Says what differs from the table. `whole`: all was run, so a row without a failure is out of date."""
    problems = []
    failures = {}
    for entry, outcome in outcomes.items():
        if "broken" in outcome:
            problems.append(f"{entry}: could not be run: {outcome['broken'][:500]}")
        elif outcome["ran"] == 0:
            problems.append(f"{entry}: no test ran; {outcome.get('module', 'the module has none')}")
        failures |= outcome.get("failures", {})
    for test, why in failures.items():
        if not any(matches(pattern, test) for pattern in patterns):
            problems.append(f"{test}: failed, and expected.md does not list it: {why}")
    if whole:
        for pattern in sorted(patterns):
            if not any(matches(pattern, test) for test in failures):
                problems.append(f"{pattern}: listed in expected.md, but it passes or is not there: remove the row")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", type=Path, help="directory of CPython's `test` package, as fetch.sh prints it")
    parser.add_argument("--cx", default="cx", help="the program [default: cx]")
    parser.add_argument("--only", default="", help="only entries in which this regular expression is found")
    parser.add_argument("--save", type=Path, help="write all outcomes to this file, as JSON")
    chosen = parser.parse_args()
    chosen_entries = [entry for entry in SAMPLE if re.search(chosen.only, entry)]
    if not chosen_entries:
        parser.error(f"no entry of the sample matches `--only {chosen.only}`")
    outcomes = {}
    with tempfile.TemporaryDirectory() as work:
        for entry in chosen_entries:
            started = time.monotonic()
            outcome = outcomes[entry] = run(chosen.cx, chosen.tests, entry, Path(work))
            counts = "could not be run"
            if "broken" not in outcome:
                counts = f"ran {outcome['ran']}, failed {len(outcome['failures'])}, skipped {outcome['skipped']}"
            print(f"{entry}: {counts}, {time.monotonic() - started:.1f} s", flush=True)
            if chosen.save:
                chosen.save.write_text(json.dumps(outcomes, indent=1))
    problems = compare(outcomes, expected(), whole=not chosen.only)
    for problem in problems:
        print(problem, file=sys.stderr)
    ran, failed, skipped = (sum(count(o) for o in outcomes.values() if "broken" not in o) for count in COUNTS)
    print(f"{ran} tests ran, {failed} failed, {skipped} skipped; {len(problems)} differences from expected.md")
    return 1 if problems else 0


COUNTS = (lambda o: o["ran"], lambda o: len(o["failures"]), lambda o: o["skipped"])


if __name__ == "__main__":
    sys.exit(main())
