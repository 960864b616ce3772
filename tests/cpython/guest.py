"""Runs one module of CPython's tests inside of cx. The module's name and all sources come in as `inputs`."""

import builtins
import fnmatch
import importlib.abc
import importlib.machinery
import io
import linecache
import os
import sys
import sysconfig
import time
import unittest

# The directory where a module of tests appears to be; nothing is there.
HOME = "/python/test"
# The longest line that says why a test failed, in characters.
LONGEST = 300


class Sources(importlib.abc.InspectLoader, importlib.abc.MetaPathFinder):
    """Finds `test` and what is in it among the sources: module name -> [text, whether it is a package]."""

    def __init__(self, modules: dict[str, list]) -> None:
        self.modules = modules

    def find_spec(self, name, path=None, target=None):
        if name not in self.modules:
            return None
        package = self.is_package(name)
        spec = importlib.machinery.ModuleSpec(name, self, origin=self.get_filename(name), is_package=package)
        spec.has_location = True
        if package:
            spec.submodule_search_locations = [self.get_filename(name).removesuffix("/__init__.py")]
        return spec

    def is_package(self, name):
        return self.modules[name][1]

    def get_filename(self, name):
        end = "/__init__.py" if self.is_package(name) else ".py"
        return HOME + name.removeprefix("test").replace(".", "/") + end

    def get_source(self, name):
        return self.modules[name][0]

    def get_code(self, name):
        file = self.get_filename(name)
        text = self.get_source(name)
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        return compile(text, file, "exec", dont_inherit=True)


def install_data(files: dict[str, str]) -> None:
    """Lets `open` and the questions of `os` find data files: path below HOME -> text, one character for each byte."""
    contents = {f"{HOME}/{path}": text.encode("latin-1") for path, text in files.items()}
    directories = {os.path.dirname(path) for path in contents}
    real_open, real_isfile, real_exists, real_listdir = builtins.open, os.path.isfile, os.path.exists, os.listdir

    def open_data(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
        found = contents.get(file) if isinstance(file, str) else None
        if found is None or mode not in ("r", "rb"):
            return real_open(file, mode, buffering, encoding, errors, newline, closefd, opener)
        return io.BytesIO(found) if mode == "rb" else io.TextIOWrapper(io.BytesIO(found), encoding or "utf-8", errors)

    builtins.open = open_data
    os.path.isfile = lambda path: path in contents or real_isfile(path)
    os.path.exists = lambda path: path in contents or path in directories or real_exists(path)
    os.listdir = lambda path=".": (
        [os.path.basename(file) for file in contents if os.path.dirname(file) == path]
        if path in directories
        else real_listdir(path)
    )


class Result(unittest.TestResult):
    """Counts, and keeps one line for each test that failed: {test id: why}."""

    def __init__(self) -> None:
        super().__init__()
        self.why: dict[str, str] = {}
        self.seconds: dict[str, float] = {}
        self.reasons: dict[str, int] = {}

    def startTest(self, test):
        super().startTest(test)
        self.started = time.monotonic()

    def stopTest(self, test):
        super().stopTest(test)
        self.seconds[test.id()] = round(time.monotonic() - self.started, 2)

    def _note(self, test, error):
        kind, value = error[0], error[1]
        line = f"{kind.__name__}: {value}".strip().replace("\n", " ")
        self.why.setdefault(test.id(), line[:LONGEST])

    def addError(self, test, err):
        self._note(test, err)

    def addFailure(self, test, err):
        self._note(test, err)

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self._note(test, err)

    def addUnexpectedSuccess(self, test):
        self.why[test.id()] = "passed, though its own file expects a failure"

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.reasons[reason] = self.reasons.get(reason, 0) + 1


def run(name: str, classes: list[str] | None, without: list[str]) -> dict:
    """Runs a module's tests, or those of some of its classes, without those whose ids match a pattern."""
    result = Result()
    try:
        module = importlib.import_module(name)
    except unittest.SkipTest as reason:
        return {"ran": 0, "skipped": 0, "failures": {}, "module": f"skipped: {reason}"}
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    tests = [test for test in flat(suite) if classes is None or type(test).__name__ in classes]
    suite = unittest.TestSuite(
        test for test in tests if not any(fnmatch.fnmatchcase(test.id(), pattern) for pattern in without)
    )
    suite.run(result)
    slowest = sorted(result.seconds.items(), key=lambda pair: -pair[1])[:3]
    return {
        "ran": result.testsRun,
        "skipped": len(result.skipped),
        "failures": result.why,
        "reasons": result.reasons,
        "slowest": dict(slowest),
    }


def flat(suite):
    """The tests of a suite, those of suites in it too."""
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


sys.meta_path.insert(0, Sources(inputs["modules"]))
install_data(inputs["data"])
# `test.support` splits this as a shell does; componentize-py's has a quotation mark without its other one.
sysconfig.get_config_vars()["CONFIG_ARGS"] = ""
return run(inputs["run"], inputs["classes"], inputs["without"])
