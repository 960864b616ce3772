#!/usr/bin/env python3
"""Prints the line coverage of each folder of `src`, and fails if one is below its least figure."""

import json
import os
import subprocess
import sys
from collections import defaultdict

# Percent of lines. They are raised when the figures rise.
LEAST = {"src": 94.5, "src/engine": 95, "src/run": 95, "src/tools/policy": 99}

# Code of tests, and of targets for fuzzing, that lies beside the code that it tests.
TESTS = r"(^|/)(tests|fuzz|examples|benches)/|/tests\.rs$|(pool|admission|compute|clock|breaker)/models\.rs$|src/sync/model(/|\.rs$)|/tests/|/\.cargo/|/rustc/|/target/"


def programs(out):
    with open(f"{out}/built.json") as lines:
        messages = [json.loads(line) for line in lines]
    return sorted({message["executable"] for message in messages if message.get("executable")})


def folders(file):
    """The folders of `src` whose figures a file counts for."""
    parts = file.split("/")
    yield "src"
    if len(parts) > 2:
        yield "/".join(parts[:2])
    if file.startswith("src/tools/policy"):
        yield "src/tools/policy"
    if file.startswith("src/engine/") and len(parts) > 3:
        yield "/".join(parts[:3])


def main():
    cov, out = sys.argv[1:]
    first, *others = programs(out)
    objects = [part for program in others for part in ("--object", program)]
    command = [cov, "export", "--summary-only", f"--instr-profile={out}/all.profdata"]
    command += [f"--ignore-filename-regex={TESTS}", first, *objects]
    exported = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    root = os.getcwd() + "/"
    covered, lines, worst = defaultdict(int), defaultdict(int), []
    for file in exported["data"][0]["files"]:
        name = file["filename"].removeprefix(root)
        if not name.startswith("src/"):
            continue
        figures = file["summary"]["lines"]
        for folder in folders(name):
            covered[folder] += figures["covered"]
            lines[folder] += figures["count"]
        worst.append((figures["count"] - figures["covered"], name))
    if not lines["src"]:
        sys.exit("no file of `src` was measured")
    print(f"{'lines':>7} {'covered':>8}")
    below = []
    for folder in sorted(lines):
        percent = 100 * covered[folder] / lines[folder]
        least = LEAST.get(folder)
        note = "" if least is None else f"  (least: {least})"
        print(f"{lines[folder]:7} {percent:7.2f}%  {folder}{note}")
        if least is not None and percent < least:
            below.append(folder)
    print("\nmost lines that no test runs:")
    for missing, name in sorted(worst, reverse=True)[:15]:
        print(f"{missing:7}  {name}")
    missing = LEAST.keys() - lines.keys()
    if below or missing:
        sys.exit(f"below the least figure, or not measured: {', '.join(sorted({*below, *missing}))}")


if __name__ == "__main__":
    main()
