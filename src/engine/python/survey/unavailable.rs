//! Modules that scripts cannot import, or can import and not use: the table of `cx_guest/refusals.py`, with its
//! messages. A test compares the two in the interpreter that scripts have.

use self::Unavailable::{InUse, Module, Package};

/// Why a module cannot be used.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unavailable {
    /// A module of Python that cannot be imported, and why.
    Module(&'static str),
    /// A package that cannot be imported, and what to use.
    Package(&'static str),
    /// It can be imported, but what scripts import it for fails: what, and why.
    InUse(&'static str, &'static str),
}

/// The end of the guest's message about any package that does not exist.
pub(super) const PACKAGES: &str = "besides the standard library there are attrs, bs4, dateutil, jmespath, jsonschema, \
     more_itertools, packaging, sortedcontainers, tabulate, xmltodict, yaml; a script cannot install more";

const NETWORK: &str = "scripts have no sockets: `await fetch(url)` reaches hosts that a person has granted \
    (`--allow-net HOST`), and search_tools(\"fetch\") finds tools that fetch";
const PROCESS: &str = "scripts cannot start or signal processes: call a tool that runs commands, \
    search_tools(\"run command\") finds one";
const NATIVE: &str = "native code cannot be loaded into a script";
const COMPRESSION: &str = "this compression is not here: zlib and gzip are, or call a tool that unpacks";
const TERMINAL: &str = "a script has no terminal: print(...) what the reader should see, return the value";
const MAPPING: &str = "scripts cannot map files or share memory: use bytearray or memoryview";
const ACCOUNTS: &str = "there are no users, groups or system services here";
const DBM: &str = "this kind of dbm is not here: use sqlite3 or a dict";
const WINDOWS: &str = "it belongs to Windows; this is Python on WASI";
const MACOS: &str = "it belongs to macOS; this is Python on WASI";
const PLATFORM: &str = "it belongs to another platform; this is Python on WASI";
const INSTALL: &str = "packages cannot be installed in a script: use the standard library";
const LEFT_OUT: &str = "it is left out of this build";
const BROWSER_PYTHON: &str = "this is CPython without a browser: tools are the way out";
const NUMBERS: &str = "use math, statistics, fractions, decimal, array and itertools";
const TABLES: &str = "use csv, sqlite3.connect(\":memory:\"), statistics and collections";
const SERVICE: &str = "scripts have no sockets: `await fetch(url)` reaches hosts that a person has granted \
    (`--allow-net HOST`), and search_tools(\"fetch\") finds tools that fetch; a language model \
    is `llm.ask`";
const BROWSER: &str = "call a tool that drives a browser, search_tools(\"browser\") finds one";
const DATABASE: &str = "call a tool of the database; for data in memory use sqlite3";
const MARKUP: &str = "use xml.etree.ElementTree, or bs4 with \"html.parser\"";
const RECORDS: &str = "use dataclasses, attrs or jsonschema";
const JSON: &str = "use json";
const TOML: &str = "use tomllib";
const TIME_ZONES: &str = "use zoneinfo, datetime and dateutil";
const YAML: &str = "use yaml";
const PATTERNS: &str = "use re";
const IMAGES: &str = "images cannot be drawn in a script: call a tool that does, or emit a content block";
const MODELS: &str = "models cannot run in a script: call a tool, or `llm.ask`";
const ENVIRONMENT: &str = "there is no environment: read `inputs`";
const CRYPTOGRAPHY: &str = "use hashlib, hmac and secrets; for more call a tool";
const EVENT_LOOPS: &str = "use asyncio: top-level `await` works";
const ENCODINGS: &str = "decode with a codec that you know: bytes.decode(\"utf-8\", \"replace\")";
const DOCUMENTS: &str =
    "call a tool that reads documents; zipfile with xml.etree reads .xlsx and .docx from bytes";
const CONNECTED: &str = "servers are connected already: `await tools.<server>.<tool>(…)`";
const LANGUAGE_MODEL: &str = "a language model is `llm.ask`";
const RETRIES: &str = "write a loop with `try`, `except McpToolError` and `await asyncio.sleep(...)`";
const TEMPLATES: &str = "use f-strings or string.Template";
const PAGES: &str = "use bs4: BeautifulSoup(text, \"html.parser\").get_text()";
const GRAPHS: &str = "use dicts, collections.deque, heapq and graphlib";
const EXACT_NUMBERS: &str = "use fractions, decimal and math";
const THREADS: &str = "scripts cannot start threads: run tool calls at once with `await asyncio.gather(...)` or \
    call_tools([...])";
const TESTS: &str = "use assert or unittest";
const SIMILARITY: &str = "use difflib";
const ACCENTS: &str = "use unicodedata.normalize";
const LOGS: &str = "use logging or print";
const ASYNC_FILES: &str = "use open: it does not wait for a disk here";
const CACHES: &str = "use functools.lru_cache or a dict";
const SERVING: &str = "a script serves nothing: return the value";
const NO_BROWSER: &str = "a script has no browser: return the address";

/// Sorted by name, without modules inside a package that exists: `dbm.gnu` fails in the package's own code.
static TABLE: [(&str, Unavailable); 220] = [
    ("Crypto", Package(CRYPTOGRAPHY)),
    ("IPython", Package(TERMINAL)),
    ("Levenshtein", Package(SIMILARITY)),
    ("MySQLdb", Package(DATABASE)),
    ("PIL", Package(IMAGES)),
    ("PyPDF2", Package(DOCUMENTS)),
    ("_aix_support", Module(PLATFORM)),
    ("_android_support", Module(PLATFORM)),
    ("_apple_support", Module(PLATFORM)),
    ("_bz2", Module(COMPRESSION)),
    ("_ctypes", Module(NATIVE)),
    ("_curses", Module(TERMINAL)),
    ("_curses_panel", Module(TERMINAL)),
    ("_dbm", Module(DBM)),
    ("_gdbm", Module(DBM)),
    ("_interpchannels", Module(THREADS)),
    ("_interpqueues", Module(THREADS)),
    ("_interpreters", Module(THREADS)),
    ("_ios_support", Module(PLATFORM)),
    ("_lzma", Module(COMPRESSION)),
    ("_msi", Module(WINDOWS)),
    ("_multiprocessing", Module(PROCESS)),
    ("_osx_support", Module(PLATFORM)),
    ("_overlapped", Module(WINDOWS)),
    ("_posixshmem", Module(PROCESS)),
    ("_posixsubprocess", Module(PROCESS)),
    ("_scproxy", Module(MACOS)),
    ("_ssl", Module(NETWORK)),
    ("_tkinter", Module(TERMINAL)),
    ("_winapi", Module(WINDOWS)),
    ("_zstd", Module(COMPRESSION)),
    ("aiofiles", Package(ASYNC_FILES)),
    ("aiohttp", Package(NETWORK)),
    ("aiomysql", Package(DATABASE)),
    ("aiosqlite", Package(DATABASE)),
    ("anthropic", Package(SERVICE)),
    ("antigravity", Module(LEFT_OUT)),
    ("anyio", Package(EVENT_LOOPS)),
    ("arrow", Package(TIME_ZONES)),
    ("asyncpg", Package(DATABASE)),
    ("backoff", Package(RETRIES)),
    ("bcrypt", Package(CRYPTOGRAPHY)),
    ("boto3", Package(SERVICE)),
    ("botocore", Package(SERVICE)),
    ("bz2", Module(COMPRESSION)),
    ("cachetools", Package(CACHES)),
    ("cattrs", Package(RECORDS)),
    ("cchardet", Package(ENCODINGS)),
    ("chardet", Package(ENCODINGS)),
    ("charset_normalizer", Package(ENCODINGS)),
    ("chevron", Package(TEMPLATES)),
    ("click", Package(TERMINAL)),
    ("cohere", Package(LANGUAGE_MODEL)),
    ("colorama", Package(TERMINAL)),
    ("cryptography", Package(CRYPTOGRAPHY)),
    ("cssselect", Package(MARKUP)),
    ("ctypes", Module(NATIVE)),
    ("curio", Package(EVENT_LOOPS)),
    ("curses", Module(TERMINAL)),
    ("cv2", Package(IMAGES)),
    ("dask", Package(THREADS)),
    ("decouple", Package(ENVIRONMENT)),
    ("django", Package(SERVING)),
    ("docx", Package(DOCUMENTS)),
    ("dotenv", Package(ENVIRONMENT)),
    ("duckdb", Package(TABLES)),
    ("ensurepip", Module(INSTALL)),
    ("environ", Package(ENVIRONMENT)),
    ("eventlet", Package(EVENT_LOOPS)),
    ("fastapi", Package(SERVING)),
    ("fcntl", Module(MAPPING)),
    ("fitz", Package(DOCUMENTS)),
    ("flask", Package(SERVING)),
    ("fuzzywuzzy", Package(SIMILARITY)),
    ("gevent", Package(EVENT_LOOPS)),
    ("gmpy2", Package(EXACT_NUMBERS)),
    ("google", Package(SERVICE)),
    ("googleapiclient", Package(SERVICE)),
    ("gradio", Package(SERVING)),
    ("grp", Module(ACCOUNTS)),
    ("grpc", Package(NETWORK)),
    ("html2text", Package(PAGES)),
    ("html5lib", Package(MARKUP)),
    ("http.client", InUse("http.client", NETWORK)),
    ("httplib2", Package(NETWORK)),
    ("httpx", Package(NETWORK)),
    ("hypothesis", Package(TESTS)),
    ("idlelib", Module(TERMINAL)),
    ("igraph", Package(GRAPHS)),
    ("imageio", Package(IMAGES)),
    ("ipywidgets", Package(TERMINAL)),
    ("jax", Package(MODELS)),
    ("jellyfish", Package(SIMILARITY)),
    ("jinja2", Package(TEMPLATES)),
    ("joblib", Package(THREADS)),
    ("js", Module(BROWSER_PYTHON)),
    ("langchain", Package(LANGUAGE_MODEL)),
    ("langchain_mcp_adapters", Package(CONNECTED)),
    ("langgraph", Package(LANGUAGE_MODEL)),
    ("litellm", Package(LANGUAGE_MODEL)),
    ("llama_index", Package(LANGUAGE_MODEL)),
    ("loguru", Package(LOGS)),
    ("lxml", Package(MARKUP)),
    ("lzma", Module(COMPRESSION)),
    ("mako", Package(TEMPLATES)),
    ("markdownify", Package(PAGES)),
    ("marshmallow", Package(RECORDS)),
    ("matplotlib", Package(IMAGES)),
    ("mcp_use", Package(CONNECTED)),
    ("micropip", Module(BROWSER_PYTHON)),
    ("mistralai", Package(LANGUAGE_MODEL)),
    ("mmap", Module(MAPPING)),
    ("motor", Package(DATABASE)),
    ("mpmath", Package(EXACT_NUMBERS)),
    ("msgspec", Package(RECORDS)),
    ("msvcrt", Module(WINDOWS)),
    ("multiprocessing", Module(PROCESS)),
    ("nacl", Package(CRYPTOGRAPHY)),
    ("nest_asyncio", Package(EVENT_LOOPS)),
    ("networkx", Package(GRAPHS)),
    ("nt", Module(WINDOWS)),
    ("nturl2path", Module(WINDOWS)),
    ("numpy", Package(NUMBERS)),
    ("ollama", Package(LANGUAGE_MODEL)),
    ("openai", Package(SERVICE)),
    ("openpyxl", Package(DOCUMENTS)),
    ("orjson", Package(JSON)),
    ("oyaml", Package(YAML)),
    ("pandas", Package(TABLES)),
    ("paramiko", Package(NETWORK)),
    ("pendulum", Package(TIME_ZONES)),
    ("pip", Module(INSTALL)),
    ("playwright", Package(BROWSER)),
    ("plotly", Package(IMAGES)),
    ("polars", Package(TABLES)),
    ("pptx", Package(DOCUMENTS)),
    ("prettytable", Package(TERMINAL)),
    ("psutil", Package(ACCOUNTS)),
    ("psycopg", Package(DATABASE)),
    ("psycopg2", Package(DATABASE)),
    ("pty", Module(PROCESS)),
    ("pwd", Module(ACCOUNTS)),
    ("pyarrow", Package(TABLES)),
    ("pydantic", Package(RECORDS)),
    ("pydoc_data", Module(LEFT_OUT)),
    ("pymongo", Package(DATABASE)),
    ("pymysql", Package(DATABASE)),
    ("pyodide", Module(BROWSER_PYTHON)),
    ("pyodide_js", Module(BROWSER_PYTHON)),
    ("pypdf", Package(DOCUMENTS)),
    ("pyppeteer", Package(BROWSER)),
    ("pystache", Package(TEMPLATES)),
    ("pytest", Package(TESTS)),
    ("pytz", Package(TIME_ZONES)),
    ("rapidfuzz", Package(SIMILARITY)),
    ("rapidjson", Package(JSON)),
    ("ray", Package(THREADS)),
    ("re2", Package(PATTERNS)),
    ("readability", Package(PAGES)),
    ("readline", Module(TERMINAL)),
    ("redis", Package(DATABASE)),
    ("regex", Package(PATTERNS)),
    ("reportlab", Package(DOCUMENTS)),
    ("requests", Package(NETWORK)),
    ("resource", Module(ACCOUNTS)),
    ("retrying", Package(RETRIES)),
    ("rich", Package(TERMINAL)),
    ("ruamel", Package(YAML)),
    ("scipy", Package(NUMBERS)),
    ("scrapy", Package(BROWSER)),
    ("seaborn", Package(IMAGES)),
    ("selenium", Package(BROWSER)),
    ("simplejson", Package(JSON)),
    ("sklearn", Package(MODELS)),
    ("slack_sdk", Package(SERVICE)),
    ("smolagents", Package(CONNECTED)),
    ("socket", InUse("socket.socket", NETWORK)),
    ("sqlalchemy", Package(DATABASE)),
    ("ssl", Module(NETWORK)),
    ("starlette", Package(SERVING)),
    ("streamlit", Package(SERVING)),
    ("stripe", Package(SERVICE)),
    ("structlog", Package(LOGS)),
    ("subprocess", InUse("subprocess.Popen", PROCESS)),
    ("sympy", Package(EXACT_NUMBERS)),
    ("syslog", Module(ACCOUNTS)),
    ("tabulate2", Package(TERMINAL)),
    ("tenacity", Package(RETRIES)),
    ("tensorflow", Package(MODELS)),
    ("termios", Module(TERMINAL)),
    ("test", Module(LEFT_OUT)),
    ("thefuzz", Package(SIMILARITY)),
    ("tkinter", Module(TERMINAL)),
    ("toml", Package(TOML)),
    ("tomli", Package(TOML)),
    ("torch", Package(MODELS)),
    ("tqdm", Package(TERMINAL)),
    ("trafilatura", Package(PAGES)),
    ("transformers", Package(MODELS)),
    ("trio", Package(EVENT_LOOPS)),
    ("tty", Module(TERMINAL)),
    ("turtle", Module(TERMINAL)),
    ("turtledemo", Module(TERMINAL)),
    ("typer", Package(TERMINAL)),
    ("tzlocal", Package(TIME_ZONES)),
    ("ujson", Package(JSON)),
    ("unidecode", Package(ACCENTS)),
    ("urllib.request", InUse("urllib.request.urlopen", NETWORK)),
    ("urllib3", Package(NETWORK)),
    ("uvicorn", Package(SERVING)),
    ("uvloop", Package(EVENT_LOOPS)),
    ("venv", Module(INSTALL)),
    ("webbrowser", InUse("webbrowser.open", NO_BROWSER)),
    ("websocket", Package(NETWORK)),
    ("websockets", Package(NETWORK)),
    ("winreg", Module(WINDOWS)),
    ("winsound", Module(WINDOWS)),
    ("xgboost", Package(MODELS)),
    ("xlrd", Package(DOCUMENTS)),
    ("xlsxwriter", Package(DOCUMENTS)),
];

/// The entry of a module, or of the package that is imported before it, and the name of that one.
pub(super) fn find(module: &str) -> Option<(&'static str, Unavailable)> {
    let package = module.split('.').next().unwrap_or_default();
    [module, package].into_iter().find_map(|name| {
        let position = TABLE.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
        TABLE.get(position).copied()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found() {
        assert!(TABLE.is_sorted_by(|(name, _), (next, _)| name < next), "a search needs sorted names");
        for (name, _) in &TABLE {
            assert_eq!(find(name).map(|(found, _)| found), Some(*name));
        }
    }

    #[test]
    fn the_package_of_a_module_is_imported_first() {
        for (module, expected) in [
            ("google.cloud.storage", Some("google")),
            ("multiprocessing.pool", Some("multiprocessing")),
            ("urllib.request", Some("urllib.request")),
            ("urllib.parse", None),
            ("urllib", None),
            ("json", None),
            ("requests_", None),
            ("", None),
        ] {
            assert_eq!(find(module).map(|(found, _)| found), expected, "{module}");
        }
    }
}
