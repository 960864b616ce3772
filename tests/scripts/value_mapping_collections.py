from array import array
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque, namedtuple
from types import MappingProxyType, SimpleNamespace

Point = namedtuple("Point", "x y")
return {
    "set": {3},
    "frozenset": frozenset({4}),
    "tuple": (1, (2,)),
    "named": Point(1, 2),
    "deque": deque([1, 2]),
    "range": range(3),
    "array": array("d", [1.5]),
    "counter": Counter("aab"),
    "ordered": OrderedDict(a=1),
    "default": defaultdict(list, a=[1]),
    "chain": ChainMap({"a": 1}, {"b": 2}),
    "user": [UserDict(a=1), UserList([1])],
    "views": [{"a": 1}.keys(), {"a": 1}.values(), {"a": 1}.items()],
    "proxy": MappingProxyType({"a": 1}),
    "namespace": SimpleNamespace(a=1),
}
