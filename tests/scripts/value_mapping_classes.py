import ipaddress
import pathlib
import uuid
from dataclasses import dataclass, field
from enum import Enum, Flag, auto


class Color(Enum):
    RED = "red"
    NESTED = (1, 2)


class Permission(Flag):
    READ = auto()
    WRITE = auto()


@dataclass
class Inner:
    when: uuid.UUID


@dataclass(slots=True)
class Outer:
    name: str
    inner: Inner
    tags: set = field(default_factory=set)


return {
    "enum": [Color.RED, Color.NESTED, Permission.READ | Permission.WRITE],
    "dataclass": Outer("a", Inner(uuid.UUID(int=1))),
    "path": pathlib.PurePosixPath("/a/b"),
    "address": ipaddress.ip_address("::1"),
    "exception": ValueError("wrong"),
}
