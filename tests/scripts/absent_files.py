import os
import pathlib
import tempfile


def attempt(action):
    try:
        return action()
    except Exception as error:
        return [type(error).__name__, str(error)]


return {
    "read": attempt(lambda: open("/etc/passwd").read()),
    "write": attempt(lambda: open("out.txt", "w")),
    "path": attempt(lambda: pathlib.Path("notes.md").read_text()),
    "listdir": attempt(lambda: os.listdir("/")),
    "temporary": attempt(lambda: tempfile.TemporaryFile()),
    "exists": os.path.exists("/etc/passwd"),
    "environment": dict(os.environ),
}
