"""Calls of the benchmark as scripts of both languages."""

import ast
import json
import keyword


def parse(call, backends):
    """`cd(folder='document')` as server, tool and arguments."""
    node = ast.parse(call.strip(), mode="eval").body
    tool = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
    server = backends.by_tool[tool]
    names = backends.all[server].parameters(tool)
    arguments = {name: ast.literal_eval(value) for name, value in zip(names, node.args)}
    arguments |= {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords}
    return server, tool, arguments


def typescript(calls):
    """Makes the calls one after the other and returns what each returned."""
    lines = [f"  await tools{_member(server)}{_member(tool)}({_object(arguments)})," for server, tool, arguments in calls]
    if len(lines) == 1:
        return f"return {lines[0].strip().rstrip(',')}"
    return "\n".join(["return [", *lines, "]"])


def python(calls):
    def call(server, tool, arguments):
        if all(map(_is_name, arguments)):
            written = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
        else:
            written = repr(arguments)
        return f"await tools{_member(server)}{_member(tool)}({written})"

    lines = [f"    {call(*parsed)}," for parsed in calls]
    if len(lines) == 1:
        return call(*calls[0])
    return "\n".join(["[", *lines, "]"])


def _is_name(name):
    return name.isascii() and name.isidentifier() and not keyword.iskeyword(name)


def _member(name):
    return f".{name}" if _is_name(name) else f"[{json.dumps(name)}]"


def _object(arguments):
    if not arguments:
        return ""
    field = lambda name: name if _is_name(name) else json.dumps(name)
    fields = (f"{field(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
    return "{ " + ", ".join(fields) + " }"
