"""Runs scripts of the suite in worker processes under strace, and compares the system calls that workers make after
their filter is installed with the list in src/engine/process/sandbox/syscalls.rs.

    python3 tests/syscalls.py CX [EVERY]

Only every EVERYth script is run; without it, all of them. Prints each call with its number, what was called and
refused, what was called and is not on the list (a mistake), and what is on the list and was not called (for a reviewer:
aborting, long runs and older kernels need some of those). Fails if a call is not on the list.
"""

import collections
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "src/engine/process/sandbox/syscalls.rs"
# Those with conditions are in sandbox.rs.
CONDITIONAL = {"clock_getres", "clock_gettime", "clock_nanosleep", "clone", "clone3", "fcntl", "futex", "madvise"}
CONDITIONAL |= {"mmap", "prctl", "prlimit64", "tgkill"}
LINE = re.compile(r"^(\d+) +\d+\.\d+ (?:<\.\.\. )?([a-z0-9_]+)(.*)$")


def after_the_filter(trace):
    """The calls of all threads of each worker after its filter was installed."""
    # `clone` and `clone3` whose result is on a later line, by thread: whether they make a thread.
    processes, confined, begun = {}, set(), {}
    for line in trace.read_text(errors="replace").splitlines():
        found = LINE.match(line)
        if not found:
            continue
        thread, name, rest = int(found[1]), found[2], found[3]
        process = processes.setdefault(thread, thread)
        if name == "seccomp" and "TSYNC" in rest:
            confined.add(process)
        elif name in ("clone", "clone3", "vfork"):
            is_thread = "CLONE_THREAD" in rest or ("resumed" in line and begun.pop(thread, False))
            if "unfinished" in rest:
                begun[thread] = is_thread
            elif child := re.search(r"= (\d+)$", rest):
                processes[int(child[1])] = process if is_thread else int(child[1])
        if process in confined and name != "seccomp" and "exited" not in line:
            yield name, rest


def main():
    cx, every = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    called, refused = collections.Counter(), collections.Counter()
    scripts = sorted([*(ROOT / "tests/scripts").glob("*.ts"), *(ROOT / "tests/scripts").glob("*.py")])
    with tempfile.TemporaryDirectory() as directory:
        trace = pathlib.Path(directory) / "trace"
        for script in scripts[::every]:
            command = ["strace", "-f", "-qq", "-ttt", "-o", trace, cx, "run", "--isolation", "process"]
            command += ["--timeout", "30s", "--input", '{"n": 7, "list": [1, 2]}', script]
            subprocess.run(command, cwd=directory, capture_output=True, timeout=120, check=False)
            for name, rest in after_the_filter(trace):
                called[name] += 1
                if "EPERM" in rest:
                    refused[name + rest] += 1
    allowed = set(re.findall(r'^    \("([a-z0-9_]+)",', LIST.read_text(), re.M)) | CONDITIONAL
    print("called by confined workers:")
    for name, count in called.most_common():
        print(f"  {count:7} {name}")
    print("refused:")
    for call, count in refused.most_common(20):
        print(f"  {count:7} {call[:150]}")
    missing = sorted(set(called) - allowed)
    print("called and not on the list:", *missing)
    print("on the list and not called:", *sorted(allowed - set(called)))
    if not called:
        sys.exit("no call of a confined worker was seen")
    if missing:
        sys.exit("the list lacks calls")


main()
