"""Data files and metadata of packages in memory, for `importlib.resources` and `importlib.metadata`."""

import importlib.metadata
import importlib.resources.abc
import io
import os
from collections.abc import Iterator

from .modules import HOME


class Reader(importlib.resources.abc.TraversableResources):
    def __init__(self, top: "Path") -> None:
        self._top = top

    def files(self) -> "Path":
        return self._top


class Path(importlib.resources.abc.Traversable):
    """A file or directory of the bundle, as `importlib.resources` wants it."""

    def __init__(self, loader, path: str) -> None:
        self._loader = loader
        self._path = path

    @property
    def name(self) -> str:
        return self._path.rpartition("/")[2]

    def __str__(self) -> str:
        return f"{HOME}/{self._path}"

    def iterdir(self) -> Iterator["Path"]:
        start = f"{self._path}/"
        bundle = self._loader.bundle
        inside = [path for path in bundle.files if path.startswith(start)]
        inside += [path for name in bundle.modules if (path := name.replace(".", "/")).startswith(start)]
        for name in sorted({path[len(start) :].partition("/")[0] for path in inside}):
            yield Path(self._loader, start + name)

    def is_file(self) -> bool:
        return self._path in self._loader.bundle.files

    def is_dir(self) -> bool:
        return next(self.iterdir(), None) is not None

    def joinpath(self, *descendants: str) -> "Path":
        names = "/".join([self._path, *map(os.fspath, descendants)])
        return Path(self._loader, os.path.normpath(names))

    def __truediv__(self, child: str) -> "Path":
        return self.joinpath(child)

    def open(self, mode: str = "r", *args, **kwargs):
        data = io.BytesIO(self._loader.get_data(self._path))
        return data if "b" in mode else io.TextIOWrapper(data, *args, **{"encoding": "utf-8", **kwargs})

    def read_bytes(self) -> bytes:
        return self._loader.get_data(self._path)

    def read_text(self, encoding: str | None = None, errors: str | None = None) -> str:
        return self.read_bytes().decode(encoding or "utf-8", errors or "strict")


class Distribution(importlib.metadata.Distribution):
    def __init__(self, head: str) -> None:
        self._head = head

    def read_text(self, filename: str) -> str | None:
        return self._head if filename == "METADATA" else None

    def locate_file(self, path):
        return f"{HOME}/{path}"
