"""Puts a sentence in the place of what cannot work in a script: why not, and what there is instead.

None of this is a control: a script may undo it all, and then meets the host, which has no sockets, threads or
processes to give, and of files those that the run may use.
"""

import errno
import os
import sys
from collections.abc import Callable

from .refusals import ACCOUNTS, FILES, MODULES, NETWORK, PACKAGES, PROCESS, RELATIVE, SCRYPT, SIGNALS, STDIN, THREADS

# Names that `os` has elsewhere.
_OS = frozenset(
    "fork forkpty execv execve execvp execvpe execl execle execlp execlpe system popen kill killpg wait waitpid wait3"
    " wait4 waitid posix_spawn posix_spawnp spawnl spawnle spawnlp spawnv spawnve spawnvp abort_process startfile"
    " setsid nice openpty getlogin".split()
)
_SIGNAL = frozenset(
    "alarm setitimer getitimer pause sigwait sigwaitinfo sigtimedwait pthread_kill pidfd_send_signal".split()
)


# Modules that other packages need; a script has little use for them.
_DEPENDENCIES = frozenset("attr componentize_py_runtime pyrsistent soupsieve typing_extensions tzdata".split())


class Finder:
    """The last finder: it gets the names that no other one has found, and its error says what there is."""

    def __init__(self, bundle) -> None:
        names = {name.partition(".")[0] for name in bundle.modules} | set(sys.builtin_module_names)
        self.names = sorted(name for name in names if not name.startswith("_"))
        standard = sys.stdlib_module_names
        self.packages = ", ".join(name for name in self.names if name not in standard and name not in _DEPENDENCIES)

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        # Only an `import` gets the sentence: `importlib.util.find_spec` asks whether, and is answered None.
        if sys._getframe(2).f_code.co_name != "_find_and_load_unlocked":
            return None
        sentence = self.explain(name)
        if sentence is not None:
            raise ModuleNotFoundError(f"No module named {name!r}: {sentence}", name=name)
        return None

    def explain(self, name: str) -> str | None:
        """The sentence for a module that is not here; None for one inside of a package that is."""
        package, _, last = name.rpartition(".")
        if package in ("mcp.servers", "mcp_tools"):
            return _servers(last)
        top = name.partition(".")[0]
        sentence = MODULES.get(name) or MODULES.get(top)
        here = f"besides the standard library there are {self.packages}; a script cannot install more"
        if top in PACKAGES:
            return f"{PACKAGES[top]}; {here}"
        if sentence is not None or top != name:
            return sentence
        if name.startswith("_"):
            return here
        import difflib

        near = difflib.get_close_matches(name, self.names, n=1, cutoff=0.75)
        return f"did you mean {near[0]!r}? {here}" if near else here


# The object that has the run's servers as attributes. `script_names` sets it.
servers: object = None


def _servers(wrong: str) -> str:
    """The sentence for a submodule that would be a server."""
    import difflib

    names = sorted(dir(servers))
    near = difflib.get_close_matches(wrong, names, n=1, cutoff=0.6)
    known = ", ".join(names[:20]) or "none"
    return f"did you mean {near[0]!r}?" if near else f"it is not a server; there are: {known}"


def install() -> None:
    """Puts the sentences in the place of what would fail without them. Build time only, after the preload."""
    import _thread
    import builtins
    import io
    import signal
    import threading

    _thread.start_new_thread = _thread.start_new = _raises("_thread.start_new_thread", RuntimeError, THREADS)
    _thread.start_joinable_thread = _raises("threading.Thread.start", RuntimeError, THREADS)
    threading.Condition.wait = _condition_wait(threading.Condition.wait)
    threading._start_new_thread = _thread.start_new_thread
    threading._start_joinable_thread = _thread.start_joinable_thread
    os.__getattr__ = _absent("os", _OS, PROCESS)
    signal.__getattr__ = _absent("signal", _SIGNAL, SIGNALS)
    builtins.open = io.open = _opening(_file(io.open))
    for name in ("open", "listdir", "scandir", "mkdir", "chdir", "unlink", "remove", "rename", "replace", "rmdir"):
        setattr(os, name, _file(getattr(os, name)))
    for name in ("input", "breakpoint"):
        setattr(builtins, name, _raises(name, EOFError, STDIN))
    os.environ.clear()
    # What is there for `argparse`, which takes the first for the program's name.
    sys.argv[:] = [""]


def after_import(module) -> None:
    """Puts the sentences into a module that was just imported."""
    patch = _PATCHES.get(module.__name__)
    if patch is not None:
        patch(module)


def _raises(what: str, error: type[Exception], sentence: str) -> Callable:
    def refused(*args, **kwargs):
        raise error(f"{what}: {sentence}")

    refused.__name__ = refused.__qualname__ = what.rpartition(".")[2]
    return refused


def _condition_wait(wait: Callable) -> Callable:
    """Queues, events and futures wait here. Without a time there is no end: no other thread can wake the only one."""

    def wrapped(self, timeout=None):
        if timeout is None:
            raise RuntimeError("this wait cannot end, for a script has one thread: give a timeout, or use asyncio")
        return wait(self, timeout)

    wrapped.__name__ = "wait"
    wrapped.__qualname__ = "Condition.wait"
    wrapped.__doc__ = wait.__doc__
    return wrapped


def _absent(module: str, names: frozenset[str], sentence: str) -> Callable:
    """A module's `__getattr__`. The names stay absent, for code that asks with `hasattr`, but the error explains."""

    def __getattr__(name: str):
        if name in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}: {sentence}", name=name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name, obj=sys.modules.get(module))

    return __getattr__


def _file(function: Callable) -> Callable:
    """The function, whose OSError says which files there are, where the script wants others. The class and `errno`
    stay those of the system."""

    def wrapped(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except OSError as error:
            sentence = FILES if _is_elsewhere(error) else RELATIVE if _is_relative(error) else None
            if sentence is None:
                raise
            text = f"{error.strerror}: {sentence}"
            raise type(error)(error.errno, text, error.filename, None, error.filename2) from None

    wrapped.__name__ = function.__name__
    wrapped.__qualname__ = function.__qualname__
    wrapped.__doc__ = function.__doc__
    return wrapped


def _opening(function: Callable) -> Callable:
    """`open`, which refuses to read the standard input: it would be an empty file."""

    def open(file, *args, **kwargs):
        if type(file) is int and file == 0:
            raise EOFError(f"open(0): {STDIN}")
        return function(file, *args, **kwargs)

    open.__qualname__ = function.__qualname__
    open.__doc__ = function.__doc__
    return open


_REFUSED = frozenset((errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTCAPABLE))


def _is_elsewhere(error: OSError) -> bool:
    """Whether the error is about a place that the script may not use: a refusal, or a directory that is not there."""
    if error.errno in _REFUSED:
        return True
    if error.errno != errno.ENOENT or not isinstance(error.filename, str):
        return False
    parent = os.path.dirname(os.path.abspath(error.filename))
    return parent == "/" or not (parent + "/").startswith("/tmp/") and not os.path.isdir(parent)


def _is_relative(error: OSError) -> bool:
    """Whether the error is about a file that is not there, which the script named as if it were in its own place."""
    is_missing = error.errno == errno.ENOENT and isinstance(error.filename, str)
    return is_missing and not os.path.isabs(error.filename) and os.getcwd() == "/tmp"


def _socket(module) -> None:
    def __init__(self, *args, **kwargs):
        raise OSError(f"socket.socket: {NETWORK}")

    module.socket.__init__ = __init__
    for name in (
        "getaddrinfo gethostbyname gethostbyname_ex gethostbyaddr getnameinfo create_connection create_server"
        " socketpair fromfd"
    ).split():
        setattr(module, name, _raises(f"socket.{name}", OSError, NETWORK))


def _subprocess(module) -> None:
    module.Popen.__init__ = _raises("subprocess.Popen", OSError, PROCESS)
    # `__del__` of an object that was never made looks at this.
    module.Popen._child_created = False


def _url(module) -> None:
    module.urlopen = _raises("urllib.request.urlopen", OSError, NETWORK)
    module.OpenerDirector.open = _raises("urllib.request", OSError, NETWORK)


def _http(module) -> None:
    module.HTTPConnection.connect = _raises("http.client", OSError, NETWORK)
    module.__getattr__ = _absent("http.client", frozenset(("HTTPSConnection",)), NETWORK)


def _sqlite(module) -> None:
    connect = module.connect

    def connecting(database, *args, **kwargs):
        try:
            connection = connect(database, *args, **kwargs)
        except module.OperationalError as error:
            if str(error) != "unable to open database file":
                raise
            raise module.OperationalError(f"{error}: {FILES}") from None
        # SQLite's own are seeded by the second of the clock: there is no source of random bytes that it knows.
        connection.create_function("random", 0, lambda: int.from_bytes(os.urandom(8), signed=True))
        connection.create_function("randomblob", 1, lambda size: os.urandom(max(1, int(size or 0))))
        return connection

    connecting.__name__ = connecting.__qualname__ = "connect"
    connecting.__doc__ = connect.__doc__
    module.connect = connecting


def _soup(module) -> None:
    class FeatureNotFound(module.FeatureNotFound):
        def __init__(self, *args) -> None:
            super().__init__(" ".join([*map(str, args), 'Here there is BeautifulSoup(text, "html.parser").']))

    FeatureNotFound.__module__ = "bs4"
    module.FeatureNotFound = FeatureNotFound


def _hashlib(module) -> None:
    from . import key_derivation

    module.pbkdf2_hmac = key_derivation.pbkdf2_hmac
    module.__all__ = (*module.__all__, "pbkdf2_hmac")
    module.__getattr__ = _absent("hashlib", frozenset(("scrypt",)), SCRYPT)


def _browser(module) -> None:
    for name in ("open", "open_new", "open_new_tab"):
        sentence = "a script has no browser: return the address"
        setattr(module, name, _raises(f"webbrowser.{name}", module.Error, sentence))


def _debugger(module) -> None:
    # Not its class, which `doctest` makes an object of. Without input it would end the script as if that had exited.
    for name in ("set_trace", "set_trace_async", "post_mortem", "pm", "run", "runeval", "runcall"):
        setattr(module, name, _raises(f"pdb.{name}", EOFError, STDIN))


def _getpass(module) -> None:
    module.getpass = _raises("getpass.getpass", EOFError, STDIN)
    module.getuser = _raises("getpass.getuser", OSError, ACCOUNTS)


_PATCHES = {
    "socket": _socket,
    "subprocess": _subprocess,
    "urllib.request": _url,
    "http.client": _http,
    "webbrowser": _browser,
    "getpass": _getpass,
    "pdb": _debugger,
    "hashlib": _hashlib,
    "sqlite3": _sqlite,
    "bs4": _soup,
}
