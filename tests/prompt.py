"""Types inputs at the prompt of a command that runs at its own terminal.

`prompt.py INPUTS COMMAND...`: INPUTS is a JSON list of texts that are typed, each when the prompt is there again; or of
pairs of a text that must be on the screen since the last input, and what is typed then. A number is a signal that is
sent in place of typing, and an empty text closes the terminal. `"background"` in place of the list starts the command
in the background of its terminal, and sends it SIGTERM when that has stopped it: the status is that of a shell, 143 if
the signal has ended it. What is on the screen goes to stdout, without what moves the cursor, unless `CX_RAW` is set; at
last a line says so if the command has left the terminal without lines (raw mode).
"""

import json
import os
import pty
import re
import select
import signal
import sys
import termios
import time

LONGEST = 180.0

# The editor asks where the cursor is before it draws the prompt.
WHERE = b"\x1b[6n"

PROMPT = re.compile(rb"(ts|py)\S*> ")


def main(inputs, command):
    pid, terminal = pty.fork()
    if pid == 0:
        # Whatever has started the tests may ignore them.
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.environ.setdefault("TERM", "xterm")
        if inputs == "background":
            os._exit(in_background(command))
        os.execvp(command[0], command)
    if inputs == "background":
        inputs = []
    screen = b""
    typed_at = 0
    is_open = True
    deadline = time.monotonic() + LONGEST
    while time.monotonic() < deadline:
        ready, _, _ = select.select([terminal], [], [], 0.3)
        if ready:
            try:
                piece = os.read(terminal, 65536)
            except OSError:
                break
            if not piece:
                break
            for _ in range(piece.count(WHERE)):
                os.write(terminal, b"\x1b[1;1R")
            screen += piece
        # Nothing more is drawn, and the prompt is there since the last input.
        elif inputs and is_asked(inputs[0], plain(screen[typed_at:])):
            typed_at = len(screen)
            keys = inputs.pop(0)
            keys = keys[1] if isinstance(keys, list) else keys
            if keys == "":
                os.close(terminal)
                is_open = False
                break
            if isinstance(keys, int):
                os.kill(pid, keys)
            else:
                os.write(terminal, keys.encode())
    else:
        os.kill(pid, 9)
    sys.stdout.buffer.write(screen if "CX_RAW" in os.environ else plain(screen))
    sys.stdout.buffer.flush()
    if is_open and not termios.tcgetattr(terminal)[3] & termios.ICANON:
        sys.stdout.write("\nthe terminal is raw\n")
    sys.stdout.flush()
    while not (ended := os.waitpid(pid, os.WNOHANG))[0]:
        if time.monotonic() >= deadline:
            os.kill(pid, 9)
        time.sleep(0.05)
    return os.waitstatus_to_exitcode(ended[1])


def in_background(command):
    """Starts a command and ends it as a shell does with `COMMAND &` and `kill %1`."""
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        os.execvp(command[0], command)
    status = os.waitpid(pid, os.WUNTRACED)[1]
    if os.WIFSTOPPED(status):
        os.kill(pid, signal.SIGTERM)
        os.kill(pid, signal.SIGCONT)
        status = os.waitpid(pid, os.WUNTRACED)[1]
        if os.WIFSTOPPED(status):
            os.write(1, b"stopped again\n")
            os.kill(pid, signal.SIGKILL)
            return 1
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def is_asked(awaited, shown):
    """Whether the first input can be typed."""
    if isinstance(awaited, list):
        return awaited[0].encode() in shown
    return PROMPT.search(shown)


def plain(screen):
    """Without escape sequences."""
    return re.sub(rb"\x1b(\[[0-9;?>]*[A-Za-z]|\][^\x07]*\x07|[=>78])", b"", screen)


sys.exit(main(json.loads(sys.argv[1]), sys.argv[2:]))
