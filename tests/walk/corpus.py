# What every script of the walker begins with: how functions are reached, and the values that they are called with. Each
# value is made anew, when it is used.

import asyncio, builtins, importlib, inspect, io, itertools, sys, types


say = print


def module(name):
    return importlib.import_module(name)


class Loud:
    """Answers everything, with something large."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args, **kwargs): return self
    def __len__(self): return sys.maxsize
    def __getitem__(self, key): return self
    def __index__(self): return 2**62
    def __int__(self): return 2**70
    def __float__(self): return float("inf")
    def __iter__(self): return itertools.repeat(self)
    def __contains__(self, item): return True
    def __bool__(self): raise RuntimeError("bool")
    def __hash__(self): return 1
    def __eq__(self, other): return True
    def __lt__(self, other): return True
    def __str__(self): return "x" * 2**20
    def __repr__(self): return "x" * 2**20
    def __fspath__(self): return "/etc/passwd"
    def __length_hint__(self): return 2**62
    def read(self, *args): return "x" * 2**20
    def readline(self, *args): return "x\n"
    def fileno(self): return 3


class Rude:
    """Fails at everything."""

    def __getattribute__(self, name): raise RuntimeError("attribute")
    def __len__(self): raise RuntimeError("len")
    def __iter__(self): raise RuntimeError("iter")
    def __hash__(self): raise RuntimeError("hash")
    def __eq__(self, other): raise RuntimeError("eq")
    def __repr__(self): raise RuntimeError("repr")


class LaterLength:
    def __init__(self): self.count = 0
    def __getitem__(self, index): return index
    def __len__(self):
        self.count += 1
        return 1 if self.count == 1 else 2**31


def _recursive_list():
    value = [1]
    value.append(value)
    return value


def _recursive_dict():
    value = {}
    value["self"] = value
    return value


def _deep(levels, wrap):
    value = wrap(None)
    for _ in range(levels):
        value = wrap(value)
    return value


def _released():
    value = memoryview(bytearray(16))
    value.release()
    return value


def _endless():
    while True:
        yield 1


async def _endless_async():
    while True:
        yield 1


async def _coroutine():
    return 1


class hostile:
    none = lambda: None
    yes = lambda: True
    zero = lambda: 0
    one = lambda: 1
    minus_one = lambda: -1
    int31 = lambda: 2**31
    int32 = lambda: 2**32 - 1
    int63 = lambda: 2**63 - 1
    int64 = lambda: 2**64
    minus63 = lambda: -(2**63)
    huge = lambda: 10**4000
    larger = lambda: 1 << 2**20
    largest_descriptor = lambda: 2**31 - 1
    descriptor = lambda: 3
    million = lambda: 10**6
    infinity = lambda: float("inf")
    not_a_number = lambda: float("nan")
    small = lambda: 5e-324
    complex_number = lambda: complex(float("inf"), float("nan"))
    empty_text = lambda: ""
    letter = lambda: "a"
    lone = lambda: "a\ud800b\udc00"
    nul = lambda: "a\0b"
    long = lambda: "x" * 2**24
    wide = lambda: "\U0001f600" * 2**20
    marks = lambda: "a" + "\u0301\u0316" * 2**14
    digits = lambda: "9" * 4000
    expression = lambda: "(a+)+$"
    letters = lambda: "a" * 40 + "!"
    parentheses = lambda: "(" * 10**5
    format = lambda: "{:1000000000}"
    percent = lambda: "%1000000000d"
    path = lambda: "../../../etc/passwd"
    name = lambda: "__class__"
    source = lambda: "1+" * 10**4 + "1"
    json = lambda: "[" * 10**5
    xml = lambda: '<!DOCTYPE a [<!ENTITY a "' + "x" * 10**4 + '">]><a>' + "&a;" * 1000 + "</a>"
    data = lambda: b"\x00\xff\x80" * 100
    long_data = lambda: b"x" * 2**24
    buffer = lambda: bytearray(2**16)
    view = lambda: memoryview(bytearray(2**16))
    released = _released
    strided = lambda: memoryview(bytearray(2**16))[::-3]
    numbers = lambda: module("array").array("d", [1.0] * 1000)
    items = lambda: [3, 1, 2]
    long_list = lambda: [1] * 2**20
    recursive_list = _recursive_list
    recursive_dict = _recursive_dict
    deep_list = lambda: _deep(10**5, lambda inner: [inner])
    deep_dict = lambda: _deep(10**4, lambda inner: {"inner": inner})
    deep_tuple = lambda: _deep(10**5, lambda inner: (inner,))
    mixed = lambda: [None, 1, "a", b"b", [], {}, object()]
    pairs = lambda: {"a": 1, "b": [2]}
    numbers_set = lambda: {1, 2, 3}
    endless = _endless
    endless_count = lambda: itertools.count()
    endless_repeat = lambda: itertools.repeat("x" * 2**16)
    endless_cycle = lambda: itertools.cycle([1])
    huge_range = lambda: range(2**62)
    endless_async = _endless_async
    coroutine = _coroutine
    callback = lambda: (lambda *args, **kwargs: len(args))
    raising = lambda: (lambda *args, **kwargs: 1 // 0)
    class_itself = lambda: int
    meta = lambda: type
    new_class = lambda: type("A", (), {})
    loud = lambda: Loud()
    rude = lambda: Rude()
    later_length = lambda: LaterLength()
    module_itself = lambda: sys
    code = lambda: (lambda: 1).__code__
    frame = lambda: sys._getframe()
    traceback = lambda: _traceback()
    file = lambda: io.StringIO("a\nb\n")
    bytes_file = lambda: io.BytesIO(b"a\nb\n")
    loud_file = lambda: Loud()
    stdout = lambda: sys.stdout
    error = lambda: ValueError("a")
    group = lambda: ExceptionGroup("a", [ValueError("b")])
    slice_huge = lambda: slice(-(2**70), 2**70, 2**40)
    ellipsis = lambda: ...
    not_implemented = lambda: NotImplemented
    decimal = lambda: module("decimal").Decimal("1e999999")
    fraction = lambda: module("fractions").Fraction(1, 10**1000)
    moment = lambda: module("datetime").datetime.max
    tools_proxy = lambda: tools
    server = lambda: tools.mock


# Values that often break loops are chosen more often.
likely = (
    "int63 int64 huge larger million endless endless_count endless_repeat endless_cycle huge_range loud later_length "
    "recursive_list recursive_dict deep_list long long_data format percent slice_huge"
).split()


def _traceback():
    try:
        1 // 0
    except ZeroDivisionError as error:
        return error.__traceback__


def use(result):
    if inspect.iscoroutine(result):
        result.close()
    elif isinstance(result, types.GeneratorType) or hasattr(type(result), "__next__"):
        for _ in range(3):
            next(result, None)


def new(kind):
    """An instance, if one can be made of nothing."""
    try:
        return kind()
    except BaseException:
        return Loud()


# Some exceptions end a script; that is no finding, and would end the other calls of the run.
def call(function, receiver, arguments):
    try:
        holder = receiver()
        found = function()
        values = arguments()
        if holder is not None:
            values = [holder, *values]
        use(found(*values))
    except BaseException:
        pass
