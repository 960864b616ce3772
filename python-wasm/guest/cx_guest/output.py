"""What a script prints: text streams whose whole lines go to the host, and a standard input that says there is none."""

import codecs
import io
import sys

import wit_world

# Whole lines are sent in pieces of at most this many characters.
_MAX_CHARACTERS = 65_536
# A longer line is broken into several, so that neither side needs memory for all of it.
_MAX_LINE = 524_288

_log = wit_world.log


def printable(text: str) -> str:
    """Returns text that UTF-8 can write: a lone surrogate, which would end the instance with a trap, becomes U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        # As UTF-16, so that two halves become the character that they are in TypeScript.
        return codecs.utf_16_le_decode(codecs.utf_16_le_encode(text, "surrogatepass")[0], "replace", True)[0]


class _Bytes(io.RawIOBase):
    """`sys.stdout.buffer`: UTF-8 that goes to the text stream."""

    def __init__(self, stream: "Output"):
        self._stream = stream
        # A character whose last bytes are still to come waits for them.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        return True

    def write(self, data) -> int:
        data = bytes(data)
        self._stream.write(self._decoder.decode(data))
        return len(data)

    def flush(self) -> None:
        if not self._stream.closed:
            self._stream.flush()


class Output(io.TextIOBase):
    """A text stream that sends whole lines at once. The rest waits for its newline, for `flush` or for the end."""

    encoding = "utf-8"
    errors = "replace"
    newlines = None
    line_buffering = True

    def __init__(self, to, name: str):
        self._to = to
        self._parts: list[str] = []
        self._length = 0
        self.name = name
        self.mode = "w"
        self.buffer = _Bytes(self)

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        parts = self._parts
        if "\n" not in text:
            parts.append(text)
            self._length += len(text)
            if self._length > _MAX_LINE:
                self.flush()
            return len(text)
        if parts:
            whole = "".join(parts) + text
            parts.clear()
        else:
            whole = text
        end = whole.rindex("\n")
        rest = whole[end + 1 :]
        self._length = len(rest)
        if rest:
            parts.append(rest)
        self._send(whole[:end])
        return len(text)

    def _send(self, text: str) -> None:
        if len(text) <= _MAX_CHARACTERS:
            return _log(self._to, printable(text))
        start = 0
        while start <= len(text):
            end = len(text)
            if end - start > _MAX_CHARACTERS:
                end = text.rfind("\n", start, start + _MAX_CHARACTERS)
                if end < 0:
                    end = text.find("\n", start)
                if end < 0 or end - start > _MAX_LINE:
                    end = min(len(text), start + _MAX_LINE)
            _log(self._to, printable(text[start:end]))
            start = end + (text[end : end + 1] == "\n" or end == len(text))
        return None

    def flush(self) -> None:
        if self._parts:
            text = "".join(self._parts)
            self._parts.clear()
            self._length = 0
            if text:
                self._send(text)

    def writelines(self, lines) -> None:
        self.write("".join(lines))

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def reconfigure(self, **_options) -> None:
        """Nothing to choose: UTF-8, by lines."""

    def close(self) -> None:
        """Flushes, and stays open: what the script prints later is not lost."""
        self.flush()


# Before a script can replace it.
_print = print


def say(text: str) -> None:
    """Prints a line of cx to the script's standard error, or past it if the script's stream fails."""
    for stream in (sys.stderr, _Own.stderr):
        try:
            if stream is not None:
                return _print(text, file=stream)
        except BaseException:
            # The script may have put anything there.
            pass


class _Own:
    """The stream that `install` made."""

    stderr: "Output | None" = None


NO_INPUT = "there is no standard input; data comes in as `inputs`"


class Input(io.TextIOBase):
    """A standard input of which every read says that there is none."""

    encoding = "utf-8"
    errors = "strict"
    name = "<stdin>"
    mode = "r"

    def _none(self, *_arguments):
        raise EOFError(NO_INPUT)

    read = readline = readlines = __next__ = _none

    def __iter__(self):
        self._none()

    @property
    def buffer(self):
        return self

    def readable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False


def no_input(prompt: object = "", /):
    """There is no standard input."""
    raise EOFError(NO_INPUT)


def install() -> None:
    """Replaces the standard streams. Called at build time."""
    sys.stdout = sys.__stdout__ = Output(wit_world.OutputStream.STDOUT, "<stdout>")
    _Own.stderr = sys.stderr = sys.__stderr__ = Output(wit_world.OutputStream.STDERR, "<stderr>")
    sys.stdin = sys.__stdin__ = Input()


def finish() -> None:
    """Sends what waits for its newline."""
    for stream in (sys.__stdout__, sys.__stderr__, sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            # The script may have put anything there.
            pass
