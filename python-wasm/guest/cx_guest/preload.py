"""Imports at build time what scripts use most: such an import costs nothing at run time.

A module earns its place by use and by its price: the memory image grows, but an instance maps it and only touches the
pages that it uses. The rest of the library comes from the bundle when it is first imported.
"""

import gc
import importlib

MODULES = (
    # Language and types.
    "__future__ abc ast builtins contextlib contextvars copy copyreg dataclasses dis enum functools gc importlib.util"
    " inspect keyword linecache operator reprlib string.templatelib token tokenize traceback types typing warnings"
    " weakref"
    # Data.
    " array bisect calendar collections collections.abc datetime decimal fractions graphlib heapq itertools math cmath"
    " numbers queue random sched statistics struct time zoneinfo"
    # Text.
    " codecs difflib fnmatch locale pprint re shlex string stringprep textwrap unicodedata encodings.idna"
    " encodings.latin_1 encodings.ascii encodings.utf_16 encodings.punycode encodings.cp1252 encodings.utf_8_sig"
    # Formats.
    " base64 binascii configparser csv gzip hashlib hmac html html.entities html.parser ipaddress json"
    " pickle quopri secrets tomllib urllib.parse uuid xml.etree.ElementTree xml.sax.saxutils zlib"
    # Programs.
    " argparse asyncio asyncio.taskgroups asyncio.timeouts concurrent.futures concurrent.futures.thread errno glob io"
    " logging ntpath os pathlib platform posixpath shutil signal stat tempfile threading timeit unittest.mock"
    # Packages. Not sqlite3, which takes random bytes when it starts: they would be the same in every run.
    " bs4 dateutil.parser dateutil.relativedelta dateutil.rrule dateutil.tz jsonschema tabulate yaml"
).split()


def run() -> None:
    """Imports MODULES. Raises if one is missing: a build without it is not the build that was measured."""
    for name in MODULES:
        importlib.import_module(name)


def settle() -> None:
    """Computes what the first use would compute, and takes what is alive out of the collector's view."""
    import platform
    import zoneinfo

    platform.uname()
    zoneinfo.reset_tzpath(())
    gc.collect()
    # A collection writes to every object that it looks at, and so would copy the image page by page.
    gc.freeze()
