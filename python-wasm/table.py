"""Imports every module of the standard library and of the packages, and says of each whether it works.

A script: the host runs it in a real instance, and its value is {module: "works", or the sentence of the error}.
`table_md.py` makes docs/python-modules.md of it; a test compares the two.
"""

import importlib
import sys

# To import it prints a poem.
NOT_IMPORTED = {"this": "works"}


def probe(name: str) -> str:
    if name in NOT_IMPORTED:
        return NOT_IMPORTED[name]
    try:
        importlib.import_module(name)
    except ImportError as error:
        # Not the list of packages, which is the same everywhere.
        return str(error).partition("besides the standard library")[0].rstrip(" ;:")
    return IN_PART.get(name, "works")


# What can be imported, but of which a part cannot work. The sentence is the one that the part's error says.
def _said(action) -> str:
    try:
        action()
    except Exception as error:
        return f"in part: {error}"
    return "works"


def _parts() -> dict:
    import bs4
    import concurrent.futures
    import getpass
    import hashlib
    import http.client
    import os
    import signal
    import socket
    import sqlite3
    import subprocess
    import tempfile
    import threading
    import urllib.request
    import webbrowser

    return {
        "_thread": lambda: __import__("_thread").start_new_thread(print, ()),
        "bs4": lambda: bs4.BeautifulSoup("", "lxml"),
        "concurrent": lambda: concurrent.futures.ThreadPoolExecutor().submit(print),
        "getpass": getpass.getpass,
        "hashlib": lambda: hashlib.scrypt,
        "http": lambda: http.client.HTTPConnection("localhost").connect(),
        "io": lambda: open("/home/file"),
        "os": lambda: os.system,
        "pdb": lambda: __import__("pdb").set_trace(),
        "pathlib": lambda: __import__("pathlib").Path("/home/file").read_text(),
        "signal": lambda: signal.alarm,
        "socket": socket.socket,
        "sqlite3": lambda: sqlite3.connect("/home/file"),
        "subprocess": lambda: subprocess.run(["true"]),
        "tempfile": tempfile.mkdtemp,
        "threading": threading.Thread(target=print).start,
        "urllib": lambda: urllib.request.urlopen("http://localhost"),
        "webbrowser": lambda: webbrowser.open("http://localhost"),
    }


IN_PART = {name: _said(action) for name, action in _parts().items()}
PACKAGES = (
    "attr attrs bs4 dateutil jmespath jsonschema more_itertools packaging pyrsistent sortedcontainers soupsieve"
    " tabulate typing_extensions tzdata xmltodict yaml"
)
names = sorted(sys.stdlib_module_names) + PACKAGES.split()
result = {name: probe(name) for name in names}
result
