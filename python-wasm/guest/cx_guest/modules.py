"""Imports modules from memory: when a script runs there is no file system.

`install` is called once, while the component is built. After it `import` finds built-in and frozen modules, then the
bundle, then a refusal that says what there is instead. Nothing looks at paths.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.resources.abc
import io
import marshal
import os
import sys
from collections.abc import Iterator

from . import preload, refused

# Where the library seems to be. Nothing is there: it only names code in tracebacks.
HOME = "/python"


class Bundle:
    """The modules and data files that `bundle/bundle.py` wrote, in one block of bytes."""

    def __init__(self, directory: str) -> None:
        with open(f"{directory}/library.index", "rb") as file:
            index = marshal.loads(file.read())
        # Name -> (offset, length, whether a package); path without HOME -> (offset, length); name -> metadata.
        self.modules: dict[str, tuple[int, int, bool]] = index["modules"]
        self.files: dict[str, tuple[int, int]] = index["files"]
        self.distributions: dict[str, str] = index["distributions"]
        # Of a known size, so read into its place: no copies stay behind in the memory image.
        with open(f"{directory}/library.block", "rb") as file:
            size = os.fstat(file.fileno()).st_size
            self.block = file.read(size)
        if len(self.block) != size:
            raise RuntimeError(f"library.block was read short: {len(self.block)} of {size} bytes")

    def read(self, offset: int, length: int) -> memoryview:
        return memoryview(self.block)[offset : offset + length]


class Loader(importlib.abc.InspectLoader):
    """Finds and loads modules of the bundle. `exec_module` is importlib's own, whose frames tracebacks leave out."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        found = self.bundle.modules.get(name)
        if found is None:
            return None
        spec = importlib.machinery.ModuleSpec(name, self, origin=self.get_filename(name), is_package=found[2])
        spec.has_location = True
        if found[2]:
            spec.submodule_search_locations = [f"{HOME}/{name.replace('.', '/')}"]
        return spec

    def is_package(self, fullname: str) -> bool:
        return self._entry(fullname)[2]

    def get_code(self, fullname: str) -> object:
        offset, length, _ = self._entry(fullname)
        return marshal.loads(self.bundle.read(offset, length))

    def get_source(self, fullname: str) -> None:
        """None: sources are not in the component."""

    def exec_module(self, module) -> None:
        super().exec_module(module)
        refused.after_import(module)

    def get_filename(self, fullname: str) -> str:
        end = "/__init__.py" if self._entry(fullname)[2] else ".py"
        return f"{HOME}/{fullname.replace('.', '/')}{end}"

    def get_data(self, path: str) -> bytes:
        place = self.bundle.files.get(_inner(path))
        if place is None:
            raise FileNotFoundError(2, "no such data file in the library", path)
        return bytes(self.bundle.read(*place))

    def get_resource_reader(self, fullname: str) -> importlib.resources.abc.TraversableResources:
        return _Resources(_Path(self, fullname.replace(".", "/")))

    def find_distributions(self, context=None) -> Iterator[importlib.metadata.Distribution]:
        name = getattr(context, "name", None)
        heads = self.bundle.distributions
        wanted = heads if name is None else [name.lower().replace("_", "-").replace(".", "-")]
        return (_Distribution(heads[one]) for one in wanted if one in heads)

    def _entry(self, name: str) -> tuple[int, int, bool]:
        found = self.bundle.modules.get(name)
        if found is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return found


def _inner(path: str) -> str:
    return os.fspath(path).removeprefix(HOME).strip("/")


class _Resources(importlib.resources.abc.TraversableResources):
    def __init__(self, top: "_Path") -> None:
        self._top = top

    def files(self) -> "_Path":
        return self._top


class _Path(importlib.resources.abc.Traversable):
    """A file or directory of the bundle, as `importlib.resources` wants it."""

    def __init__(self, loader: Loader, path: str) -> None:
        self._loader = loader
        self._path = path

    @property
    def name(self) -> str:
        return self._path.rpartition("/")[2]

    def __str__(self) -> str:
        return f"{HOME}/{self._path}"

    def iterdir(self) -> Iterator["_Path"]:
        start = f"{self._path}/"
        bundle = self._loader.bundle
        inside = [path for path in bundle.files if path.startswith(start)]
        inside += [path for name in bundle.modules if (path := name.replace(".", "/")).startswith(start)]
        for name in sorted({path[len(start) :].partition("/")[0] for path in inside}):
            yield _Path(self._loader, start + name)

    def is_file(self) -> bool:
        return self._path in self._loader.bundle.files

    def is_dir(self) -> bool:
        return next(self.iterdir(), None) is not None

    def joinpath(self, *descendants: str) -> "_Path":
        names = "/".join([self._path, *map(os.fspath, descendants)])
        return _Path(self._loader, os.path.normpath(names))

    def __truediv__(self, child: str) -> "_Path":
        return self.joinpath(child)

    def open(self, mode: str = "r", *args, **kwargs):
        data = io.BytesIO(self._loader.get_data(self._path))
        return data if "b" in mode else io.TextIOWrapper(data, *args, **{"encoding": "utf-8", **kwargs})

    def read_bytes(self) -> bytes:
        return self._loader.get_data(self._path)

    def read_text(self, encoding: str | None = None, errors: str | None = None) -> str:
        return self.read_bytes().decode(encoding or "utf-8", errors or "strict")


class _Distribution(importlib.metadata.Distribution):
    def __init__(self, head: str) -> None:
        self._head = head

    def read_text(self, filename: str) -> str | None:
        return self._head if filename == "METADATA" else None

    def locate_file(self, path):
        return f"{HOME}/{path}"


def install() -> None:
    """Takes in the library, imports what scripts use most, and closes the paths. Build time only, once."""
    _import_own()
    bundle = Bundle(os.path.dirname(os.path.dirname(__file__)))
    loader = Loader(bundle)
    keep = [importlib.machinery.BuiltinImporter, importlib.machinery.FrozenImporter]
    sys.meta_path[:] = [*keep, loader, refused.Finder(bundle)]
    sys.path[:] = [HOME]
    sys.path_hooks.clear()
    sys.path_importer_cache.clear()
    _adopt(loader)
    preload.run()
    refused.install()


def _import_own() -> None:
    """Imports the rest of this package and the bindings while there still are paths: they are not in the bundle."""
    names = [f"{__package__}.{path.name[:-3]}" for path in os.scandir(os.path.dirname(__file__)) if path.name.endswith(".py")]
    for directory in sys.path:
        if os.path.isdir(directory) and not os.path.exists(f"{directory}/asyncio"):
            for name in os.listdir(directory):
                if name.startswith(("wit_world", "componentize_py_")) and not name.endswith(".pyi"):
                    names.append(name.removesuffix(".py"))
    # A fixed order: what is imported first lies first in memory.
    for name in sorted(names):
        importlib.import_module(name)


def _adopt(loader: Loader) -> None:
    """Gives the bundle's loader to modules that came from files, so that `reload` and their data files work."""
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        if name in loader.bundle.modules and spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            fresh = loader.find_spec(name)
            module.__spec__ = fresh
            module.__loader__ = loader
            module.__file__ = fresh.origin
            module.__cached__ = None
            if fresh.submodule_search_locations is not None:
                module.__path__ = fresh.submodule_search_locations
