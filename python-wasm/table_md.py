"""Writes docs/python-modules.md from table.py's value: `python3 table_md.py <value.json >../docs/python-modules.md`."""

import json
import sys

HEAD = """# Modules of Python

What a Python script can import, and what it is told when something cannot work. Python is CPython 3.14 on WASI: one
thread, [few files](files.md), no network, no processes. Made by `python-wasm/table_md.py` from what
`python-wasm/table.py` finds in a real instance, and checked against it by a test. Modules that begin with an underscore
are CPython's own.

| module | |
|---|---|
"""

value = json.load(sys.stdin)
sys.stdout.write(HEAD)
for name in sorted(value, key=lambda name: (name.startswith("_"), name)):
    sys.stdout.write(f"| `{name}` | {value[name].replace('|', '&#124;')} |\n")
