"""Makes a program of a syntax tree: allows a top-level `return`, and finds the script's value.

The rules are those of TypeScript (`src/engine/typescript/transpile/value.rs`). Code is moved by changing the syntax
tree, never by changing a line, so that lines and columns are those of the script as it was written.

The value is the first of these that the script has: what a top-level `return` returns; what the function `main`, or
else `run`, returns, if the script defines it and does not refer to it; what a function returns that is the script's
only statement; the last expression statement, also inside a final `if __name__ == "__main__":`.
"""

import __future__

import ast
import types

# No script can write this name.
VALUE_NAME = "<value>"

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DECLARATIONS = (*_FUNCTIONS, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Pass, ast.TypeAlias)


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


def compile_tree(tree: ast.Module, name: str) -> Program:
    """Compiles a script's syntax tree, which it changes. Raises what the compiler raises."""
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
