"""Reads the library at build time: compiles every module and joins the code and the data files into one block of bytes.

Not compressed: the block is part of the component's memory image, which is mapped, not read. An import then costs no
inflating, and a component that is compressed as a whole comes out smaller than one full of small zlib streams.
"""

import marshal
import os
import sys

# Where the library seems to be at run time. Nothing is there: it only names code in tracebacks.
HOME = "/python"

# What is not taken: tests, programs with windows, tools that install or configure an interpreter, and the parts of
# other platforms.
SKIPPED = frozenset(
    "test idlelib tkinter turtledemo turtle ensurepip venv lib2to3 pydoc_data antigravity lib-dynload site-packages"
    " __pycache__ _pyrepl _ios_support _android_support _apple_support _osx_support _aix_support ctypes multiprocessing"
    " msilib curses tests nturl2path"
    # Of the packages: what needs something that is not here.
    " rebuild.py cyaml.py _html5lib.py _lxml.py tzwin.py win.py".split()
)
DATA_SKIPPED = (".so", ".pyi", ".typed", ".pyc", ".exe", ".bat", ".ps1", ".a", ".o", ".h", ".c")


class Bundle:
    """Modules and data files in one block: `modules` has name -> (offset, length, whether a package)."""

    def __init__(self) -> None:
        self.block = b""
        self.modules: dict[str, tuple[int, int, bool]] = {}
        # Path without HOME -> (offset, length).
        self.files: dict[str, tuple[int, int]] = {}
        # Normalized name of an installed package -> the head of its metadata.
        self.distributions: dict[str, str] = {}

    def read(self, offset: int, length: int) -> memoryview:
        return memoryview(self.block)[offset : offset + length]


def build() -> Bundle:
    """Reads the standard library and the `site-packages` of the build. Raises for a module that does not compile."""
    bundle = Bundle()
    parts: list[bytes] = []
    # Equal contents are stored once: half of the time zones are other names of a zone.
    places: dict[bytes, tuple[int, int]] = {}
    end = 0

    def place(data: bytes) -> tuple[int, int]:
        nonlocal end
        if data not in places:
            places[data] = (end, len(data))
            parts.append(data)
            end += len(data)
        return places[data]

    def walk(directory: str, prefix: str) -> None:
        # Sorted: the order in which a directory is read differs between machines.
        for entry in sorted(os.scandir(directory), key=lambda entry: entry.name):
            name = entry.name
            inner = f"{prefix}/{name}" if prefix else name
            if name in SKIPPED or name.startswith(("config-", ".")):
                continue
            if entry.is_dir():
                if name.endswith(".dist-info"):
                    _add_distribution(bundle, entry.path)
                elif prefix or os.path.exists(f"{entry.path}/__init__.py") or name in ("concurrent", "compression"):
                    walk(entry.path, inner)
            elif name.endswith(".py"):
                with open(entry.path, "rb") as file:
                    source = file.read()
                dotted = inner[: -len(".py")].replace("/", ".")
                is_package = dotted.endswith(".__init__")
                dotted = dotted.removesuffix(".__init__")
                # Code names its file, so each has its own; no two are equal.
                code = compile(source, f"{HOME}/{inner}", "exec", dont_inherit=True)
                bundle.modules[dotted] = (*place(marshal.dumps(code)), is_package)
            elif prefix and not name.endswith(DATA_SKIPPED):
                with open(entry.path, "rb") as file:
                    bundle.files[inner] = place(file.read())

    for root in _roots():
        walk(root, "")
    bundle.block = b"".join(parts)
    return bundle


def _roots() -> list[str]:
    """The directories to read: the standard library and installed packages; not the application or its bindings."""
    roots = [path for path in sys.path if os.path.exists(f"{path}/asyncio/__init__.py")]
    roots += [path for path in sys.path if os.path.isdir(path) and any(n.endswith(".dist-info") for n in os.listdir(path))]
    if len(roots) < 2:
        raise RuntimeError(f"the library was not found: expected the standard library and site-packages in {sys.path}")
    return roots


def _add_distribution(bundle: Bundle, path: str) -> None:
    with open(f"{path}/METADATA", encoding="utf-8") as file:
        # The description follows the first empty line: a README, which no program asks for.
        head = file.read().partition("\n\n")[0] + "\n"
    name = next(line for line in head.splitlines() if line.startswith("Name:"))[len("Name:") :].strip()
    bundle.distributions[name.lower().replace("_", "-").replace(".", "-")] = head
