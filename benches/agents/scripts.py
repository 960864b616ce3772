"""Calls of the benchmark as scripts of both languages."""

import ast
import json


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
    lines = [f"  await tools.{server}.{tool}({_object(arguments)})," for server, tool, arguments in calls]
    if len(lines) == 1:
        return f"return {lines[0].strip().rstrip(',')}"
    return "\n".join(["return [", *lines, "]"])


def python(calls):
    def call(server, tool, arguments):
        return f"await tools.{server}.{tool}({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"

    lines = [f"    {call(*parsed)}," for parsed in calls]
    if len(lines) == 1:
        return call(*calls[0])
    return "\n".join(["[", *lines, "]"])


def _object(arguments):
    if not arguments:
        return ""
    fields = (f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())
    return "{ " + ", ".join(fields) + " }"
