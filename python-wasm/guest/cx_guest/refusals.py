"""What is said of each thing that cannot work in a script, and what there is instead."""

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
SIGNALS = "scripts get no signals: use asyncio.timeout(...)"
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
    # `concurrent.interpreters` imports them.
    ("_interpreters _interpchannels _interpqueues", THREADS),
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
