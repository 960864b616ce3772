"""Compiles a script: finds the code in a Markdown fence, allows top-level `await` and `return`, and finds the value.

The rules are those of TypeScript (`src/engine/fence.rs` and `src/engine/typescript/transpile/value.rs`). Lines and
columns are those of the script as it was written: code is moved by adding empty lines before it or by changing the
syntax tree, never by changing a line.

The value is the first of these that the script has: what a top-level `return` returns; what the function `main`, or
else `run`, returns, if the script defines it and does not refer to it; what a function returns that is the script's
only statement; the last expression statement, also inside a final `if __name__ == "__main__":`.
"""

import __future__

import ast
import re
import types

# No script can write this name.
VALUE_NAME = "<value>"

_PARSE = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_PYTHON = frozenset({"python", "py", "python3", "py3"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DECLARATIONS = (*_FUNCTIONS, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Pass, ast.TypeAlias)


class SourceError(Exception):
    """The script is not valid Python. `report` has the message, line and column (UTF-16 units, from 1)."""

    def __init__(self, report: dict):
        super().__init__(report["message"])
        self.report = report


class Program:
    """A compiled script.

    `entry` is the name of the function to call for the value. With `has_value`, running `code` stores the value as
    VALUE_NAME. With `returns`, `code` is the body of a function whose result is the value, and `doc` is the script's
    docstring. `notes` are to be printed before it runs.
    """

    __slots__ = ("code", "entry", "has_value", "returns", "doc", "notes")

    def __init__(
        self, code: types.CodeType, entry: str | None, has_value: bool, returns: bool, doc: str | None = None
    ):
        self.notes: list[str] = []
        self.code = code
        self.entry = entry
        self.has_value = has_value
        self.returns = returns
        self.doc = doc


def compile_script(source: str, name: str) -> Program:
    """Compiles `source`. Raises SourceError."""
    if source.startswith("\ufeff"):
        source = source[1:]
    # A text that begins with a fence is not Python as a whole, so that is not tried.
    if source.lstrip()[:3] in ("```", "~~~"):
        parts = _fenced(source)
        if parts:
            return _compile_part(parts[0], name)
    try:
        return _compile_part((source, 0), name)
    except SourceError as error:
        if "```" not in source and "~~~" not in source:
            raise
        whole = error
    parts = _fenced(source)
    reported = whole
    for index, part in enumerate(parts):
        try:
            return _compile_part(part, name)
        except SourceError as error:
            # If the whole text failed in the prose before the code, the error in the code is more useful.
            if index == 0 and whole.report.get("line", 0) <= part[1]:
                reported = error
    raise reported


# --- fences -------------------------------------------------------------------------------------------------------


def _marker(line: str) -> tuple[str, str] | None:
    """Returns the fence and the language of a line that opens or closes one."""
    line = line.strip()
    sign = line[:1]
    if sign not in ("`", "~") or not sign:
        return None
    language = line.lstrip(sign)
    length = len(line) - len(language)
    language = language.strip()
    return (line[:length], language) if length >= 3 and "`" not in language else None


def _fenced(source: str) -> list[tuple[str, int]]:
    """Returns the fenced parts, each with the number of lines before it, in the order in which they should be tried.

    Python first, then fences that name no language. A fence that opens where a string of three quotes may be open is
    part of that string.
    """
    named: list[tuple[str, int]] = []
    unnamed: list[tuple[str, int]] = []

    def collect(language: str, first: int, last: int) -> None:
        word = re.split(r"\W", language, maxsplit=1)[0].lower()
        if word in _PYTHON:
            named.append(("".join(lines[first:last]), first))
        elif not word:
            unnamed.append(("".join(lines[first:last]), first))

    lines = re.split(r"(?<=\n)", source)
    opened: tuple[str, str, int] | None = None
    in_string = False
    for number, line in enumerate(lines):
        marker = _marker(line)
        if opened is None:
            if marker is not None and not in_string:
                opened = (*marker, number + 1)
            elif (line.count('"""') + line.count("'''")) % 2:
                in_string = not in_string
        elif marker is not None and marker[1] == "" and marker[0].startswith(opened[0]):
            collect(opened[1], opened[2], number)
            opened = None
    if opened is not None:
        collect(opened[1], opened[2], len(lines))
    return named + unnamed


# --- parsing ------------------------------------------------------------------------------------------------------


def _compile_part(part: tuple[str, int], name: str) -> Program:
    text, lines_before = part
    text = "\n" * lines_before + text
    parsed = False
    try:
        tree = _parse(text, name)
        parsed = True
        # Before `_emit`, which changes the tree.
        notes = _notes(tree) if "maxsize" in text else []
        program = _emit(tree, name)
        program.notes = notes
        return program
    except SyntaxError as error:
        raise SourceError(_report(error, text, parsed)) from None
    except RecursionError:
        report = {"name": "SyntaxError", "message": "nested too deeply"}
        report["hint"] = "split it into functions or statements"
        raise SourceError(report) from None
    except (ValueError, OverflowError, MemoryError) as error:
        report = {"name": "SyntaxError", "message": f"the source cannot be compiled: {error or type(error).__name__}"}
        raise SourceError(report) from None


def _parse(text: str, name: str) -> ast.Module:
    try:
        return compile(text, name, "exec", _PARSE, dont_inherit=True)
    except IndentationError:
        tree = _parse_indented(text, name) if _FIRST_LINE_INDENTED.match(text) else None
        if tree is None:
            raise
        return tree


# After blank lines and comments.
_FIRST_LINE_INDENTED = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]+[^\s#]")


def _parse_indented(text: str, name: str) -> ast.Module | None:
    """Parses a text that is indented as a whole, as the body of an `if`; its lines and columns stay.

    Returns None if that is not what is wrong with it.
    """
    try:
        outer = compile("if 1:\n" + text, name, "exec", _PARSE, dont_inherit=True)
    except SyntaxError as error:
        if error.lineno is not None:
            error.lineno -= 1
        if error.end_lineno:
            error.end_lineno -= 1
        raise
    statement = outer.body[0]
    if len(outer.body) != 1 or not isinstance(statement, ast.If) or statement.orelse:
        return None
    tree = ast.Module(body=statement.body, type_ignores=[])
    ast.increment_lineno(tree, -1)
    return tree


# --- notes --------------------------------------------------------------------------------------------------------


def _notes(tree: ast.Module) -> list[str]:
    """Returns what the author should know about the first use of `sys.maxsize`, if there is one.

    Most scripts use it as a bound that no number exceeds. Here many do, and nothing would say so.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            used = node.attr == "maxsize" and isinstance(node.value, ast.Name) and node.value.id == "sys"
        else:
            used = isinstance(node, ast.ImportFrom) and node.module == "sys"
            used = used and any(alias.name == "maxsize" for alias in node.names)
        if used:
            note = "sys.maxsize is 2147483647 here, as indexes have 32 bits: as a bound of numbers use math.inf"
            return [f"line {node.lineno}: {note}"]
    return []


# --- what the value is --------------------------------------------------------------------------------------------


def _emit(tree: ast.Module, name: str) -> Program:
    body = tree.body
    if _returns(body):
        doc = ast.get_docstring(tree, clean=False)
        return Program(_wrap(tree, _top_level(body), name), None, False, True, doc)
    entry = _entry_point(body)
    has_value = False
    if entry is None:
        running = [node for node in body if not _is_idle(node)]
        if len(running) == 1 and (function := _function_name(running[0])) is not None:
            entry = function
        else:
            has_value = _store_value(body, len(running) == 1)
            if has_value is None:
                entry, has_value = VALUE_NAME, False
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    return Program(compile(tree, name, "exec", flags, dont_inherit=True), entry, has_value, False)


def _store_value(body: list[ast.stmt], only: bool) -> bool | None:
    """Makes the last expression statement an assignment to VALUE_NAME.

    Returns whether there is one, or None if it is a function written out that is the whole script: it is to be called.
    """
    at = len(body) - 1
    while at >= 0 and isinstance(body[at], _DECLARATIONS):
        at -= 1
    if at < 0:
        return False
    last = body[at]
    if isinstance(last, ast.If) and _is_main_guard(last.test) and last.body is not body:
        return _store_value(last.body, False) is True
    if not isinstance(last, ast.Expr):
        return False
    target = ast.Name(id=VALUE_NAME, ctx=ast.Store())
    assignment = ast.Assign(targets=[target], value=last.value)
    ast.copy_location(assignment, last)
    ast.copy_location(target, last)
    # A docstring stays one, beside being the value.
    keep = at == 0 and isinstance(last.value, ast.Constant) and isinstance(last.value.value, str)
    body[at : at + 1] = [last, assignment] if keep else [assignment]
    return None if only and isinstance(last.value, ast.Lambda) else True


def _is_main_guard(test: ast.expr) -> bool:
    """Returns whether `test` is `__name__ == "__main__"`."""
    return (
        isinstance(test, ast.Compare)
        and isinstance(test.left, ast.Name)
        and test.left.id == "__name__"
        and len(test.ops) == 1
        and isinstance(test.ops[0], ast.Eq)
        and isinstance(test.comparators[0], ast.Constant)
        and test.comparators[0].value == "__main__"
    )


def _is_idle(node: ast.stmt) -> bool:
    """Returns whether the statement has no effect that a value could come from: an import, `pass`, a string."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return isinstance(node, (ast.Import, ast.ImportFrom, ast.Pass))


def _function_name(node: ast.stmt) -> str | None:
    """Returns the name of a function that the statement defines and that may be called for the script's value.

    Generator functions are left out: their result is an iterator, which JSON does not have.
    """
    if isinstance(node, _FUNCTIONS):
        return None if _top_level(node.body).yields is not None else node.name
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda) and len(node.targets) == 1:
        target = node.targets[0]
        return target.id if isinstance(target, ast.Name) else None
    return None


def _entry_point(body: list[ast.stmt]) -> str | None:
    """Returns the function `main`, or else `run`, if nothing but itself refers to it."""
    for wanted in ("main", "run"):
        for node in body:
            named = (isinstance(node, _FUNCTIONS) and node.name == wanted) or (
                isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == wanted
            )
            if named and _function_name(node) == wanted:
                if not any(_uses(other, wanted) for other in body if other is not node):
                    return wanted
                break
    return None


def _uses(statement: ast.stmt, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(statement))


# --- a top-level `return` -----------------------------------------------------------------------------------------


def _inner_bodies(node: ast.stmt):
    """The statement lists of a compound statement."""
    for field in ("body", "orelse", "finalbody"):
        if inner := getattr(node, field, None):
            yield inner
    for field in ("handlers", "cases"):
        for inner in getattr(node, field, ()):
            yield inner.body


def _returns(body: list[ast.stmt]) -> bool:
    stack = [body]
    while stack:
        for node in stack.pop():
            if node.__class__ not in _SIMPLE:
                if isinstance(node, ast.Return):
                    return True
                stack.extend(_inner_bodies(node))
    return False


# Statements that contain no statements of the script's own level.
_SIMPLE = frozenset({*_DECLARATIONS, ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Raise, ast.Assert})


class _Scope:
    """Which expressions a body has, not counting the functions and classes that it defines."""

    __slots__ = ("awaits", "star", "yields")

    def __init__(self) -> None:
        self.awaits = False
        self.yields: ast.AST | None = None
        self.star: ast.AST | None = None


_PLAIN = (ast.Name, ast.Constant, ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop, ast.alias)


def _top_level(body: list[ast.stmt]) -> _Scope:
    found = _Scope()
    stack: list[ast.AST] = list(body)
    # Not recursive: a chain of a thousand additions is a tree a thousand levels deep.
    while stack:
        node = stack.pop()
        if isinstance(node, _PLAIN):
            continue
        if isinstance(node, _FUNCTIONS):
            stack += node.decorator_list + node.args.defaults + [value for value in node.args.kw_defaults if value]
            continue
        if isinstance(node, ast.Lambda):
            stack += node.args.defaults + [value for value in node.args.kw_defaults if value]
            continue
        if isinstance(node, ast.ClassDef):
            stack += node.decorator_list + node.bases + node.keywords
            continue
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            found.yields = node
        elif isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith)):
            found.awaits = True
        elif isinstance(node, ast.comprehension) and node.is_async:
            found.awaits = True
        elif isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            found.star = node
        stack.extend(ast.iter_child_nodes(node))
    return found


def _wrap(tree: ast.Module, scope: _Scope, name: str) -> types.CodeType:
    """Returns the code of a function with the script as its body and all its names global, as they are in a module."""
    if scope.yields is not None:
        raise _refusal("'yield' outside function", scope.yields, name)
    if scope.star is not None:
        message = "`from … import *` cannot stand beside a top-level `return`; import the names"
        raise _refusal(message, scope.star, name)
    future = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    body = [node for node in tree.body if node not in future]
    flags = 0
    for node in future:
        for alias in node.names:
            flags |= getattr(getattr(__future__, alias.name, None), "compiler_flag", 0)
    _make_global(body)
    make = ast.AsyncFunctionDef if scope.awaits else ast.FunctionDef
    # Compiled twice, because the compiler finds the names that the body binds.
    names = ast.Global(names=[], lineno=1, col_offset=0)
    arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    function = make(
        name=VALUE_NAME, args=arguments, body=body, decorator_list=[], type_params=[], lineno=1, col_offset=0
    )
    module = ast.Module(body=[*future, function], type_ignores=[])
    ast.fix_missing_locations(module)
    code = _function_code(compile(module, name, "exec", flags, dont_inherit=True))
    bound = sorted({*code.co_varnames, *code.co_cellvars})
    if bound:
        names.names = bound
        ast.fix_missing_locations(names)
        function.body = [names, *body]
        code = _function_code(compile(module, name, "exec", flags, dont_inherit=True))
    return code.replace(co_name="<module>", co_qualname="<module>")


def _function_code(module: types.CodeType) -> types.CodeType:
    return next(
        constant
        for constant in module.co_consts
        if isinstance(constant, types.CodeType) and constant.co_name == VALUE_NAME
    )


def _make_global(body: list[ast.stmt]) -> None:
    """Removes `global` statements and annotations of names, which the added `global` statement does not allow."""
    stack: list[list[ast.stmt]] = [body]
    while stack:
        statements = stack.pop()
        for index, node in enumerate(statements):
            if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
                continue
            if isinstance(node, ast.Global):
                statements[index] = ast.copy_location(ast.Pass(), node)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                plain = ast.Pass() if node.value is None else ast.Assign(targets=[node.target], value=node.value)
                statements[index] = ast.copy_location(plain, node)
            else:
                stack.extend(_inner_bodies(node))


def _refusal(message: str, node: ast.AST, name: str) -> SyntaxError:
    return SyntaxError(message, (name, node.lineno, node.col_offset + 1, None))


# --- errors -------------------------------------------------------------------------------------------------------


def _report(error: SyntaxError, text: str, parsed: bool) -> dict:
    report = {"name": type(error).__name__, "message": str(error.msg)}
    line = error.lineno
    if not line or line < 1:
        if "\0" not in text:
            return report
        line = text.count("\n", 0, text.index("\0")) + 1
    report["line"] = line
    lines = text.split("\n", line)
    shown = lines[line - 1] if line <= len(lines) else ""
    offset = max((error.offset or 1) - 1, 0)
    # The parser counts characters, the compiler bytes.
    before = shown.encode("utf-8", "replace")[:offset].decode("utf-8", "ignore") if parsed else shown[:offset]
    report["column"] = utf16_units(before) + max(offset - len(shown), 0) * (not parsed) + 1
    if hint := _hint(text, report["message"], shown):
        report["hint"] = hint
    return report


def utf16_units(text: str) -> int:
    """Returns the length of `text` as TypeScript's columns count it."""
    return len(text) + sum(character > "\uffff" for character in text)


_TYPESCRIPT = re.compile(r"^\s*(?:(?:const|let|var|export|interface|async function|function)\s.*|.*[{;]|\}.*|//.*)$")


# `!pip install pandas`, `%timeit f()`.
_NOTEBOOK = re.compile(r"\s*[!%]+[A-Za-z]")


def _hint(text: str, message: str, line: str) -> str | None:
    if message in ("'await' outside async function", "asynchronous comprehension outside of an asynchronous function"):
        return "make the function `async def`"
    if message == "invalid syntax" and _NOTEBOOK.match(line):
        return "lines with `!` or `%` are of notebooks: a script starts no processes and installs no packages"
    lines = [line for line in text.splitlines() if line.strip()][:200]
    if sum(1 for line in lines if _TYPESCRIPT.match(line)) * 2 > len(lines):
        return "this looks like TypeScript: run it as TypeScript, or write Python"
    return None
