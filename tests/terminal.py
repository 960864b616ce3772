"""Runs a command at its own terminal and answers its questions.

`terminal.py ANSWER COMMAND...`: the screen goes to stdout as it changes, with `<typed>` where the answer was typed,
`PAUSE` seconds after the question was shown. A question is what `CX_QUESTION`, a regular expression, finds, if it is
set. Before the question `y` was typed already. Each line of ANSWER is the answer to one question, and the last one is
that to all further questions.
"""

import os
import pty
import re
import select
import sys
import time

LONGEST = 180.0

# What is typed earlier is no answer: a command drops it when it has asked, which a busy machine may delay.
PAUSE = 1.5

# An approval prompt, whether to answer a server's question, a confirmation, the keys of `cx top`, and a field of a server's form.
QUESTIONS = r"or why not\] |(Answer it|Do you|content|sessions)\? \[y/N\] |q quit|^\w+( \[[^\]\n]*\])?> "
QUESTION = re.compile(os.environ.get("CX_QUESTION", QUESTIONS).encode(), re.MULTILINE)


def show(piece):
    sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()
    return piece


def main(answer, command):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvp(command[0], command)
    # Must not count as an answer: it was typed before anything was asked.
    os.write(terminal, b"y\ny")
    screen = b""
    answered = 0
    answers = answer.split("\n")
    deadline = time.monotonic() + LONGEST
    while time.monotonic() < deadline:
        ready, _, _ = select.select([terminal], [], [], 1.0)
        if not ready:
            continue
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            break
        if not piece:
            break
        screen += show(piece)
        if len(QUESTION.findall(screen)) > answered:
            typed = answers[min(answered, len(answers) - 1)]
            answered += 1
            until = time.monotonic() + PAUSE
            while (left := until - time.monotonic()) > 0:
                if select.select([terminal], [], [], left)[0]:
                    screen += show(os.read(terminal, 65536))
            show(b"<typed>")
            os.write(terminal, typed.encode() + b"\n")
    else:
        os.kill(pid, 9)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


sys.exit(main(sys.argv[1], sys.argv[2:]))
