# Finds every function, class and method of builtins and of every module that can be imported. Returns, for each, an
# expression that reaches it again in another run (with corpus.py before it), one for a natural receiver, and a number of
# parameters.

import pkgutil, warnings

warnings.simplefilter("ignore")
names = {name for name in sys.stdlib_module_names} | {found.name for found in pkgutil.iter_modules()} | set(sys.modules)
# What only shows something, runs other programs' tests, or waits for a person.
skipped = ("test", "idlelib", "turtle", "this", "antigravity", "__main__", "lib2to3", "pydoc_data")
found = []
seen = set()


def parameters(value):
    try:
        return min(len(inspect.signature(value).parameters), 6)
    except Exception:
        return 2


def note(expression, value, receiver):
    if id(value) in seen or not callable(value):
        return
    seen.add(id(value))
    keep.append(value)
    found.append([expression, receiver, parameters(value)])


keep = []


def members(expression, value, level):
    try:
        names_of = list(vars(value))
    except TypeError:
        return
    for name in names_of:
        try:
            member = getattr(value, name)
        except BaseException:
            continue
        path = f"getattr({expression}, {name!r})"
        if isinstance(member, type):
            if id(member) not in seen:
                note(path, member, "None")
                if level < 2:
                    members(path, member, level + 1)
        elif not callable(member):
            continue
        elif not isinstance(value, type) or isinstance(vars(value).get(name), (staticmethod, classmethod)):
            note(path, member, "None")
        else:
            note(path, member, f"new({expression})")


for name in sorted(names):
    if name.split(".")[0] in skipped or name.startswith("test"):
        continue
    try:
        imported = importlib.import_module(name)
    except BaseException:
        continue
    members(f"module({name!r})", imported, 0)
# As one text: so many values would be too many for an answer.
return module("json").dumps(found)
