import os
import pathlib
import sqlite3


def attempt(action):
    try:
        return action()
    except Exception as error:
        return [type(error).__name__, str(error)]


os.mkdir("/tmp/below")
return {
    "name": attempt(lambda: open("data.json")),
    "path": attempt(lambda: pathlib.Path("data/rows.csv").read_text()),
    "absolute": attempt(lambda: open("/tmp/data.json")),
    "below": attempt(lambda: os.chdir("below") or open("data.json")),
    "stdin": attempt(lambda: open(0).read()),
    "database": attempt(lambda: sqlite3.connect("/srv/data.db")),
    "own database": attempt(lambda: sqlite3.connect("/tmp/data.db").execute("select 1").fetchone()),
}
