"""Writes the library: compiles every module and joins the code and the data files into one block of bytes.

The first of two steps of the build. Runs in the interpreter of the component, for no other compiles the same code, and
leaves `library.index` and `library.block` beside itself for the second step. Were it done there, what compiling leaves
behind in the memory would become a part of the component.

The block is not compressed: it is part of the component's memory image, which is mapped, not read. An import then costs
no inflating, and a component that is compressed as a whole comes out smaller than one full of small zlib streams.
"""

import marshal
import os
import sys

# Where the library seems to be at run time. Nothing is there: it only names code in tracebacks.
HOME = "/python"

# What is not taken, by name without ".py": tests, programs with windows or a terminal, tools that install or configure
# an interpreter, other platforms, what only C modules that are not here would use.
SKIPPED = frozenset(
    "test tests idlelib tkinter turtledemo turtle ensurepip venv lib2to3 pydoc_data antigravity lib-dynload"
    " site-packages __pycache__ _pyrepl _ios_support _android_support _apple_support _osx_support _aix_support ctypes"
    " multiprocessing msilib curses nturl2path ssl bz2 lzma pty tty __hello__ __phello__ architecture.rst mypy.ini"
    " benchmarks"
    # What only stands in for a C module that is here.
    " _pydecimal _pydatetime _pyio"
    # Of the packages: what needs something that is not here, and a list of licenses of 300 KB.
    " rebuild cyaml _html5lib _lxml tzwin win licenses".split()
)
# `pydoc`, for `help`, imports these of what is skipped.
KEPT = frozenset(("_pyrepl", *(f"_pyrepl/{name}.py" for name in "__init__ pager trace types utils".split())))
DATA_SKIPPED = (".so", ".pyi", ".typed", ".pyc", ".exe", ".bat", ".ps1", ".a", ".o", ".h", ".c")


def build(roots: list[str]) -> tuple[dict, bytes]:
    """Returns the index and the block of everything under `roots`. Raises for a module that does not compile.

    The index has `modules`: name -> (offset, length, whether a package); `files`: path -> (offset, length); and
    `distributions`: normalized name of an installed package -> the head of its metadata.
    """
    modules: dict[str, tuple[int, int, bool]] = {}
    files: dict[str, tuple[int, int]] = {}
    distributions: dict[str, str] = {}
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

    def read(path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def walk(directory: str, prefix: str) -> None:
        # Sorted: the order in which a directory is read differs between machines.
        for name in sorted(os.listdir(directory)):
            path = f"{directory}/{name}"
            inner = prefix + name
            skipped = name.removesuffix(".py") in SKIPPED or name.startswith(("config-", "."))
            if skipped and inner not in KEPT or prefix == "_pyrepl/" and inner not in KEPT:
                continue
            if os.path.isdir(path):
                if name.endswith(".dist-info"):
                    # The description follows the first empty line: a README, which no program asks for.
                    head = read(f"{path}/METADATA").decode().partition("\n\n")[0] + "\n"
                    wheel = name.partition("-")[0]
                    distributions[wheel.lower().replace("_", "-")] = head
                elif prefix or os.path.exists(f"{path}/__init__.py"):
                    walk(path, f"{inner}/")
            elif name.endswith(".py"):
                dotted = inner.removesuffix(".py").replace("/", ".")
                is_package = name == "__init__.py"
                code = compile(read(path), f"{HOME}/{inner}", "exec", dont_inherit=True)
                modules[dotted.removesuffix(".__init__")] = (*place(marshal.dumps(code)), is_package)
            elif prefix and not name.endswith(DATA_SKIPPED):
                files[inner] = place(read(path))

    for root in roots:
        walk(root, "")
    return {"modules": modules, "files": files, "distributions": distributions}, b"".join(parts)


def find_roots() -> list[str]:
    """The directories to read: the standard library, then the installed packages."""
    directories = [path for path in sys.path if os.path.isdir(path)]
    standard = [path for path in directories if os.path.exists(f"{path}/asyncio/__init__.py")]
    packages = [path for path in directories if any(name.endswith(".dist-info") for name in os.listdir(path))]
    if len(standard) != 1 or len(packages) != 1:
        raise RuntimeError(f"expected one standard library and one directory of packages: found {standard}, {packages}")
    return standard + packages


index, block = build(find_roots())
here = os.path.dirname(__file__)
for end, data in (("block", block), ("index", marshal.dumps(index))):
    with open(f"{here}/library.{end}", "wb") as file:
        file.write(data)
