"""The keys of the dict in which a script has looked for another one."""

import inspect

from cx_guest.exceptions import frames_of, positions_of, source_line

# A dict with more keys has data for keys.
_MAX_KEYS = 20
# Nothing is looked up in a dict with more keys.
_MAX_LOOKED_AT = 1_000


def keys_near(error: BaseException, script: str) -> str:
    """The keys of the dict in which the script looked for another one.

    Only of a plain dict to which names and constants lead, so that no code of the script runs, and only of field names:
    keys that look like data are not repeated.
    """
    try:
        if type(error) is not KeyError or len(error.args) != 1 or not _is_key(error.args[0]):
            return ""
        found = _looked_in(error, script)
        if not _is_plain(found) or len(found) > _MAX_KEYS or error.args[0] in found:
            return ""
        if not found:
            return "; the dict is empty"
        return "; the keys are " + ", ".join(map(repr, found)) if all(map(_is_field, found)) else ""
    except Exception:
        return ""


def _is_key(value) -> bool:
    # Compared by `is`: a class of the script may have its own `==`.
    return type(value) is str or type(value) is int


def _is_plain(value) -> bool:
    """Whether this is a dict in which a key can be looked up and no code of the script runs: keys are compared."""
    if type(value) is not dict or len(value) > _MAX_LOOKED_AT:
        return False
    return all(_is_key(key) or key is None or type(key) is bool or type(key) is float for key in value)


def _is_field(key) -> bool:
    is_name = type(key) is str and key.isascii() and key.replace("-", "_").isidentifier()
    return is_name and len(key) <= 40 and sum(letter.isdigit() for letter in key) < 4


def _looked_in(error: BaseException, script: str):
    """The value of `d` where `d[key]` or `d.pop(key)` has failed; None if it is not known."""
    import ast

    entry = frames_of(error)[-1]
    if entry.tb_frame.f_code.co_filename != script:
        return None
    line, last, start, end = positions_of(entry)
    if line is None or line != last or start is None or end is None:
        return None
    text = source_line(script, line).encode("utf-8", "replace")[start:end].decode("utf-8", "replace")
    failed = ast.parse(text, mode="eval").body
    if isinstance(failed, ast.Call) and isinstance(failed.func, ast.Attribute) and failed.func.attr == "pop":
        failed = failed.func
    elif not isinstance(failed, ast.Subscript):
        return None
    return _plain_value(failed.value, entry.tb_frame)


def _variable(name: str, frame):
    """The value of a variable of a function or of the module; None if there is none.

    A class body is left out: its variables are in a mapping that a class of the script may have made.
    """
    variables = frame.f_globals
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        own = frame.f_locals
        if name in own:
            return own[name]
    elif frame.f_locals is not variables:
        return None
    return variables.get(name) if _is_plain(variables) else None


def _plain_value(node, frame):
    """The value of names, and of elements of plain dicts and lists by names and constants."""
    import ast

    if isinstance(node, ast.Name):
        return _variable(node.id, frame)
    if not isinstance(node, ast.Subscript):
        return None
    value = _plain_value(node.value, frame)
    key = node.slice.value if isinstance(node.slice, ast.Constant) else _plain_value(node.slice, frame)
    if _is_key(key) and _is_plain(value):
        return value.get(key)
    if type(value) is list and type(key) is int and -len(value) <= key < len(value):
        return value[key]
    return None
