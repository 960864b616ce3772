import os
import pathlib


def attempt(action):
    try:
        return action()
    except Exception as error:
        return [type(error).__name__, str(error)]


return {
    "read": attempt(lambda: open("/etc/passwd").read()),
    "write": attempt(lambda: open("/out.txt", "w")),
    "path": attempt(lambda: pathlib.Path("/srv/notes.md").read_text()),
    "scratch": attempt(lambda: pathlib.Path("/tmp/notes.md").read_text()),
    "listdir": attempt(lambda: os.listdir("/home")),
    "link": attempt(lambda: os.symlink("/etc", "/tmp/etc")),
    "hard link": attempt(lambda: os.link("/etc/passwd", "/tmp/passwd")),
    "exists": os.path.exists("/etc/passwd"),
    "environment": dict(os.environ),
}
