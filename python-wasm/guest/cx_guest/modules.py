"""Imports modules from memory: when a script runs there is no file system.

`install` is called once, while the component is built. After it `import` finds built-in and frozen modules, then the
bundle, then a refusal that says what there is instead. Nothing looks at paths.
"""

import importlib
import importlib.abc
import importlib.machinery
import marshal
import os
import sys

# Little is imported up here: what comes before the loader is compiled from its source, which leaves traces in the
# memory image.
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
        found = self.bundle.files.get(_inner(path))
        if found is None:
            raise FileNotFoundError(2, "no such data file in the library", path)
        return bytes(self.bundle.read(*found))

    def get_resource_reader(self, fullname: str):
        return resources.Reader(resources.Path(self, fullname.replace(".", "/")))

    def find_distributions(self, context=None):
        name = getattr(context, "name", None)
        heads = self.bundle.distributions
        wanted = heads if name is None else [name.lower().replace("_", "-").replace(".", "-")]
        return (resources.Distribution(heads[one]) for one in wanted if one in heads)

    def _entry(self, name: str) -> tuple[int, int, bool]:
        found = self.bundle.modules.get(name)
        if found is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return found


def _inner(path: str) -> str:
    return os.fspath(path).removeprefix(HOME).strip("/")


def install() -> None:
    """Takes in the library, imports what scripts use most, and closes the paths.

    Build time only, once, and before the application imports anything else.
    """
    global resources
    bundle = Bundle(os.path.dirname(os.path.dirname(__file__)))
    loader = Loader(bundle)
    keep = [importlib.machinery.BuiltinImporter, importlib.machinery.FrozenImporter]
    sys.meta_path[:] = [*keep, loader, importlib.machinery.PathFinder]
    from . import resources

    preload.run()
    _import_own()
    sys.meta_path[:] = [*keep, loader, refused.Finder(bundle)]
    sys.path[:] = [HOME]
    sys.path_hooks.clear()
    sys.path_importer_cache.clear()
    _adopt(loader)
    refused.install()
    preload.settle()


def _import_own() -> None:
    """Imports the rest of this package and the bindings while there still are paths: they are not in the bundle."""
    files = os.listdir(os.path.dirname(__file__))
    names = [f"{__package__}.{name.removesuffix('.py')}" for name in files if name.endswith(".py")]
    # Not componentize_py_async_support: to import it sets a running event loop.
    names += ["componentize_py_types", "wit_world"]
    # A fixed order: what is imported first lies first in memory.
    for name in sorted(names):
        importlib.import_module(name)


def _adopt(loader: Loader) -> None:
    """Gives the bundle's loader to modules that came from files, so that `reload` and their data files work."""
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        from_file = isinstance(getattr(spec, "loader", None), importlib.machinery.SourceFileLoader)
        if from_file and name in loader.bundle.modules:
            fresh = loader.find_spec(name)
            module.__spec__ = fresh
            module.__loader__ = loader
            module.__file__ = fresh.origin
            module.__cached__ = None
            if fresh.submodule_search_locations is not None:
                module.__path__ = fresh.submodule_search_locations
