"""Says in one sentence what cannot work in a script, and what there is instead.

None of this is a control: a script may undo it all, and then meets the host, which has no sockets, threads or
processes to give, and of files those that the run may use.
"""

import errno
import os
import sys
import time
from collections.abc import Callable

NETWORK = (
    "scripts have no sockets: `await fetch(url)` reaches hosts that a person has granted (`--allow-net HOST`), and "
    'search_tools("fetch") finds tools that fetch'
)
PROCESS = (
    'scripts cannot start or signal processes: call a tool that runs commands, search_tools("run command") finds one'
)
THREADS = "scripts cannot start threads: run tool calls at once with `await asyncio.gather(...)` or call_tools([...])"
FILES = (
    "scripts can use /tmp, which ends with the run, and directories that a person grants (--allow-read, --allow-write);"
    ' else call a tool, search_tools("file") finds one'
)
RELATIVE = (
    "a relative path is in /tmp, which is empty when a run begins; a person can grant directories (--allow-read,"
    ' --allow-write), else call a tool, search_tools("file") finds one'
)
NATIVE = "native code cannot be loaded into a script"
TERMINAL = "a script has no terminal: print(...) what the reader should see, return the value"
STDIN = "a script has no stdin: read `inputs`"
MAPPING = "scripts cannot map files or share memory: use bytearray or memoryview"
ACCOUNTS = "there are no users, groups or system services here"
SCRYPT = "it needs OpenSSL, which is not here: hashlib.pbkdf2_hmac derives keys too, or call a tool"
COMPRESSION = "this compression is not here: zlib and gzip are, or call a tool that unpacks"


def _table(*rows: tuple[str, str]) -> dict[str, str]:
    """Rows of names and their sentence -> a sentence for each name."""
    return {name: sentence for names, sentence in rows for name in names.split()}


# Modules of the standard library that cannot work -> why.
MODULES: dict[str, str] = _table(
    ("ssl _ssl", NETWORK),
    ("multiprocessing _multiprocessing _posixsubprocess _posixshmem pty", PROCESS),
    ("ctypes _ctypes", NATIVE),
    ("bz2 _bz2 lzma _lzma _zstd", COMPRESSION),
    ("curses _curses _curses_panel readline termios tty tkinter _tkinter turtle turtledemo idlelib", TERMINAL),
    ("mmap fcntl", MAPPING),
    ("grp pwd resource syslog", ACCOUNTS),
    ("dbm.gnu dbm.ndbm _gdbm _dbm", "this kind of dbm is not here: use sqlite3 or a dict"),
    ("msvcrt nt _winapi winreg winsound _overlapped _msi nturl2path", "it belongs to Windows; this is Python on WASI"),
    ("_scproxy", "it belongs to macOS; this is Python on WASI"),
    (
        "_ios_support _android_support _apple_support _osx_support _aix_support",
        "it belongs to another platform; this is Python on WASI",
    ),
    ("ensurepip venv pip", "packages cannot be installed in a script: use the standard library"),
    ("pydoc_data test antigravity", "it is left out of this build"),
    ("js pyodide pyodide_js micropip", "this is CPython without a browser: tools are the way out"),
)

# Packages that agents reach for -> what to use.
PACKAGES: dict[str, str] = _table(
    ("numpy scipy", "use math, statistics, fractions, decimal, array and itertools"),
    ("pandas polars pyarrow duckdb", 'use csv, sqlite3.connect(":memory:"), statistics and collections'),
    ("requests httpx aiohttp urllib3 httplib2 websockets websocket grpc paramiko", NETWORK),
    (
        "boto3 botocore openai anthropic google googleapiclient slack_sdk stripe",
        f"{NETWORK}; a language model is `llm.ask`",
    ),
    ("playwright selenium pyppeteer scrapy", 'call a tool that drives a browser, search_tools("browser") finds one'),
    (
        "psycopg2 psycopg pymysql MySQLdb pymongo redis sqlalchemy",
        "call a tool of the database; for data in memory use sqlite3",
    ),
    ("lxml html5lib cssselect", 'use xml.etree.ElementTree, or bs4 with "html.parser"'),
    ("pydantic msgspec marshmallow cattrs", "use dataclasses, attrs or jsonschema"),
    ("orjson ujson simplejson rapidjson", "use json"),
    ("toml tomli", "use tomllib"),
    ("pytz arrow pendulum tzlocal", "use zoneinfo, datetime and dateutil"),
    ("ruamel oyaml", "use yaml"),
    ("regex re2", "use re"),
    (
        "PIL cv2 matplotlib seaborn plotly imageio",
        "images cannot be drawn in a script: call a tool that does, or emit a content block",
    ),
    ("torch tensorflow sklearn transformers jax xgboost", "models cannot run in a script: call a tool, or `llm.ask`"),
    ("dotenv environ decouple", "there is no environment: read `inputs`"),
    ("rich tqdm colorama click typer tabulate2 prettytable", TERMINAL),
    ("cryptography Crypto nacl bcrypt", "use hashlib, hmac and secrets; for more call a tool"),
    ("trio anyio curio gevent eventlet uvloop nest_asyncio", "use asyncio: top-level `await` works"),
    (
        "langchain_mcp_adapters mcp_use smolagents",
        "servers are connected already: `await tools.<server>.<tool>(…)`",
    ),
    ("langchain langgraph llama_index litellm mistralai cohere ollama", "a language model is `llm.ask`"),
    ("tenacity backoff retrying", "write a loop with `try`, `except McpToolError` and `await asyncio.sleep(...)`"),
    ("jinja2 mako chevron pystache", "use f-strings or string.Template"),
    ("html2text markdownify readability trafilatura", 'use bs4: BeautifulSoup(text, "html.parser").get_text()'),
    ("networkx igraph", "use dicts, collections.deque, heapq and graphlib"),
    ("sympy mpmath gmpy2", "use fractions, decimal and math"),
    ("joblib dask ray", THREADS),
    ("pytest hypothesis", "use assert or unittest"),
    ("rapidfuzz fuzzywuzzy thefuzz Levenshtein jellyfish", "use difflib"),
    ("unidecode", "use unicodedata.normalize"),
    ("loguru structlog", "use logging or print"),
    ("aiofiles", "use open: it does not wait for a disk here"),
    ("asyncpg aiosqlite aiomysql motor", "call a tool of the database; for data in memory use sqlite3"),
    ("cachetools", "use functools.lru_cache or a dict"),
    ("flask fastapi django starlette uvicorn streamlit gradio", "a script serves nothing: return the value"),
    ("psutil", ACCOUNTS),
    ("IPython ipywidgets", TERMINAL),
    ("chardet charset_normalizer cchardet", 'decode with a codec that you know: bytes.decode("utf-8", "replace")'),
    (
        "openpyxl xlrd xlsxwriter docx pptx PyPDF2 pypdf fitz reportlab",
        "call a tool that reads documents; zipfile with xml.etree reads .xlsx and .docx from bytes",
    ),
)

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


def _servers(wrong: str) -> str:
    """The sentence for a submodule that would be a server."""
    import difflib

    from . import tools

    names = sorted(dir(tools.tools))
    near = difflib.get_close_matches(wrong, names, n=1, cutoff=0.6)
    known = ", ".join(names[:20]) or "none"
    return f"did you mean {near[0]!r}?" if near else f"it is no server; there are: {known}"


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
    signal.__getattr__ = _absent("signal", _SIGNAL, "scripts get no signals: use asyncio.timeout(...)")
    builtins.open = io.open = _opening(_file(io.open))
    for name in ("open", "listdir", "scandir", "mkdir", "chdir", "unlink", "remove", "rename", "replace", "rmdir"):
        setattr(os, name, _file(getattr(os, name)))
    for name in ("input", "breakpoint"):
        setattr(builtins, name, _raises(name, EOFError, STDIN))
    time.sleep = sleep
    os.environ.clear()
    # What is there for `argparse`, which takes the first for the program's name.
    sys.argv[:] = [""]


def sleep(seconds, /) -> None:
    """Sleeps in the host. Tool calls that end meanwhile are kept for the event loop."""
    import math

    from . import loop

    # What `float` refuses, the original refused too; `-0.0` is zero.
    seconds = float(seconds)
    if math.isnan(seconds):
        raise ValueError("Invalid value NaN (not a number)")
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    end = time.monotonic() + seconds
    # The host may return early, when a call ends.
    while (left := end - time.monotonic()) > 0:
        loop.wait(left * 1000)


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
    "hashlib": _hashlib,
    "sqlite3": _sqlite,
    "bs4": _soup,
}
