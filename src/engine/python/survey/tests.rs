use super::survey;
use crate::run::check::survey::{Literal, MAX_IMPORTS, MAX_VALUES, Mistake};

fn read(source: &str) -> Vec<String> {
    survey(source).render_uses()
}

#[test]
fn calls_are_found_in_every_form() {
    for (source, expected) in [
        ("await tools.a.b(x=1)", "a.b!"),
        ("await tools['a-b']['c d']()", "a-b.c d!"),
        ("await a.b()", "a?.b!"),
        ("await mcp_a.b()", "a?.b!"),
        ("await mcp_servers['a'].b()", "a.b!"),
        ("from mcp_tools import a as x\nawait x.b()", "a! a.b!"),
        ("from mcp_tools.a import b\nawait b()", "a! a.b!"),
        ("import mcp.servers.a as x\nawait x.b()", "a! a.b!"),
        ("import mcp.servers.a\nawait mcp.servers.a.b()", "a! a.b!"),
        ("import mcp_tools.a\nawait mcp_tools.a.b()", "a! a.b!"),
        ("from mcp.servers import a\nawait a.b()", "a! a.b!"),
        ("await call_mcp_tool('mcp__a__b', {'x': 1})", "mcp__a__b!"),
        ("call_mcp_tool_sync('mcp__a__b')", "mcp__a__b!"),
        ("await tools.mcp__a__b(x=1)", "mcp__a__b!"),
        ("x = await tools['mcp__a__b']({})", "mcp__a__b!"),
        ("await tools.mcp__a.b()", "mcp__a.b!"),
        ("tools.mcp__a__b.__name__()", ""),
        ("await mcp__a__b()", ""),
        ("call_tool('a', 'b', {'x': 1})", "a.b"),
        ("call_tools([{'server': 'a', 'tool': 'b'}, {'server': s, 'tool': 'b'}])", "a.b ?"),
        ("call_tools([{'server': 'a', 'tool': 'b', 'args': {'x': x}} for x in l])", "a.b"),
        ("call_tools([{'server': 'a', 'tool': 'b'}] + l)", "a.b ?"),
        ("l = [{'server': 'a', 'tool': 'b'}]\ncall_tools(l)", "a.b ?"),
        ("l = []\nfor x in y:\n    l.append({'server': 'a', 'tool': 'b'})\ncall_tools([*l])", "a.b ?"),
        ("l = []\nl += [{'server': 'a', 'tool': 'b'}]\ncall_tools(calls=l)", "a.b ?"),
        ("l = m = [{'server': 'a', 'tool': 'b'}]\ncall_tools(l + m)", "a.b ?"),
        ("l = [{'server': 'a', 'tool': 'b'}]\nprint(l)", ""),
        ("x = tools.a\nawait x.b()", "a.b!"),
        ("tools[name]['b']()\nx = 1", ""),
        ("await asyncio.gather(tools.a.b(), tools.a.c())", "a.b! a.c!"),
        ("await asyncio.gather(tools.a.b(), return_exceptions=True)", "a.b"),
        ("x = await asyncio.wait_for(tools.a.b(), 3)", "a.b!"),
    ] {
        assert_eq!(read(source).join(" "), expected, "{source}");
    }
}

#[test]
fn only_what_every_run_reaches_is_certain() {
    for (source, expected) in [
        ("if x:\n    await tools.a.b()\nawait tools.a.c()", "a.b a.c!"),
        ("if x:\n    return 1\nawait tools.a.b()", "a.b"),
        ("if x:\n    raise ValueError\nawait tools.a.b()", "a.b!"),
        ("try:\n    await tools.a.b()\nexcept Exception:\n    pass\nawait tools.a.c()", "a.b a.c!"),
        ("for x in await tools.a.b():\n    await tools.a.c()", "a.b! a.c"),
        ("while await tools.a.b():\n    await tools.a.c()", "a.b! a.c"),
        ("import contextlib\nwith contextlib.suppress(Exception):\n    await tools.a.b()", "a.b"),
        ("x = y and await tools.a.b()", "a.b"),
        ("x = await tools.a.b() if y else 1", "a.b"),
        ("x = [await tools.a.b() for y in z]", "a.b"),
        ("async def f():\n    await tools.a.b()\nawait f()", "a.b!"),
        ("async def f():\n    await tools.a.b()\ng(f)", "a.b"),
        ("async def main():\n    await tools.a.b()", "a.b!"),
        ("async def main():\n    await tools.a.b()\nasyncio.run(main())", "a.b!"),
        (
            "async def f():\n    if x:\n        return\n    await tools.a.b()\nawait f()\nawait tools.a.c()",
            "a.b a.c!",
        ),
        ("def f():\n    return tools.a.b()\nawait f()", "a.b!"),
        ("def f():\n    yield tools.a.b()\nf()", "a.b"),
        ("if __name__ == '__main__':\n    await tools.a.b()", "a.b!"),
        ("p = tools.a.b()\nx = p", "a.b"),
        ("import sys\nsys.exit()\nawait tools.a.b()", "a.b"),
        ("from sys import exit as bye\nbye()\nawait tools.a.b()", "a.b"),
        ("globals()['tools'] = 1\nawait tools.a.b()", "a.b"),
    ] {
        assert_eq!(read(source).join(" "), expected, "{source}");
    }
}

#[test]
fn loops_over_lists_that_are_written_out_are_certain() {
    for (source, expected) in [
        ("for x in [1, 2]:\n    await tools.a.b(x=x)\nawait tools.a.c()", "a.b! a.c!"),
        ("for x in [1]:\n    if x:\n        break\n    await tools.a.b()\nawait tools.a.c()", "a.b a.c!"),
        ("for x in [1]:\n    if x:\n        return\n    await tools.a.b()\nawait tools.a.c()", "a.b a.c"),
        ("for x in [1]:\n    while x:\n        break\n    await tools.a.b()\nx = 1", "a.b!"),
        ("for x in [1]:\n    pass\nelse:\n    await tools.a.b()\nx = 1", "a.b"),
        ("for x in [*y]:\n    await tools.a.b()\nx = 1", "a.b"),
        ("for x in range(2):\n    await tools.a.b()\nx = 1", "a.b!"),
        ("for x in range(n):\n    await tools.a.b()\nx = 1", "a.b"),
        ("x = [await tools.a.b(x) for x in (1, 2) for y in {3}]", "a.b!"),
        ("x = [await tools.a.b(x) for x in (1, 2) for y in z]", "a.b"),
        ("x = [await tools.a.b(x) for x in (1, 2) if x]", "a.b"),
        ("x = (await tools.a.b(x) for x in (1, 2))", "a.b"),
        ("await asyncio.gather(*[tools.a.b(x) for x in [1]])", "a.b!"),
        ("await asyncio.gather(*(tools.a.b(x) for x in [1]))", "a.b!"),
        ("await asyncio.gather(*[tools.a.b(x) for x in y])", "a.b"),
        ("await asyncio.gather(*[tools.a.b(x) for x in [1]], return_exceptions=True)", "a.b"),
        ("l = [1]\nprint(len(l), l[0])\nfor x in l:\n    await tools.a.b()\nx = 1", "a.b!"),
        ("for x in range(1, 3):\n    await tools.a.b()\nx = 1", "a.b!"),
        ("for x in range(3, 1):\n    await tools.a.b()\nx = 1", "a.b"),
        ("for x in enumerate([1]):\n    await tools.a.b()\nx = 1", "a.b!"),
        ("for x in sorted(y):\n    await tools.a.b()\nx = 1", "a.b"),
        ("for x in 'a b'.split():\n    await tools.a.b()\nx = 1", "a.b!"),
        ("for x in ' '.split():\n    await tools.a.b()\nx = 1", "a.b"),
        ("for x in {'a': 1}.items():\n    await tools.a.b()\nx = 1", "a.b!"),
        ("for x in {**y}:\n    await tools.a.b()\nx = 1", "a.b"),
        ("for x in zip([1], [2]):\n    await tools.a.b()\nx = 1", "a.b!"),
        ("for x in zip([1], y):\n    await tools.a.b()\nx = 1", "a.b"),
        ("for x in [y for y in [1]]:\n    await tools.a.b()\nx = 1", "a.b!"),
        ("for x in [y for y in [1] if y]:\n    await tools.a.b()\nx = 1", "a.b"),
        ("def list(x):\n    return []\nfor x in list([1]):\n    await tools.a.b()\nx = 1", "a.b"),
        ("l = [1]\nfor x in list(l):\n    await tools.a.b()\nx = 1", "a.b!"),
        ("l = [1]\nl.pop()\nfor x in l:\n    await tools.a.b()\nx = 1", "a.b"),
        ("l = [1]\nl[:] = []\nfor x in l:\n    await tools.a.b()\nx = 1", "a.b"),
        ("l = [1]\nk = l\nfor x in l:\n    await tools.a.b()\nx = 1", "a.b"),
        ("l = [1]\nl = []\nfor x in l:\n    await tools.a.b()\nx = 1", "a.b"),
    ] {
        assert_eq!(read(source).join(" "), expected, "{source}");
    }
}

/// The modules of the imports that cannot succeed, `!` after those of which no run can succeed.
fn imports(source: &str) -> String {
    let shown = survey(source).imports.into_iter().map(|import| {
        let certain = if import.is_certain { "!" } else { "" };
        format!("{}{certain}", &source[import.at])
    });
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn imports_that_every_run_makes_are_certain_to_fail() {
    for (source, expected) in [
        ("import requests", "requests!"),
        ("import json, numpy as np, ssl", "numpy! ssl!"),
        ("from google.cloud import storage", "google.cloud!"),
        ("import multiprocessing.pool as pool", "multiprocessing.pool!"),
        ("'''Text'''\nfrom __future__ import annotations\nimport requests\nimport numpy", "requests! numpy!"),
        ("x = 1\nimport requests", "requests!"),
        ("def f():\n    import requests\nf()", "requests!"),
        ("async def main():\n    import requests\n    return 1", "requests!"),
        ("Text of prose.\n```python\nimport requests\n```\n", "requests!"),
        // What is not certain.
        ("if x:\n    import requests", "requests"),
        ("def f():\n    import requests\nx = 1\ny = 2", "requests"),
        ("class A:\n    import requests\nx = 1", "requests"),
        ("for x in y:\n    import requests", "requests"),
        ("if x:\n    return 1\nimport requests", "requests"),
        ("def f():\n    import requests\ntry:\n    f()\nexcept ImportError:\n    pass", "requests"),
        // Names that nothing has.
        ("import nupmy, json", "nupmy!"),
        ("from my.helpers import x\nimport other_helpers as y", "my.helpers! other_helpers!"),
        ("if x:\n    import nupmy", "nupmy"),
        // The error of the import itself names the run's servers.
        ("from servers.github import x\nimport fastmcp", "servers.github fastmcp"),
        // They can be imported.
        ("import subprocess, socket", "subprocess socket"),
        ("import urllib.request\nfrom urllib import parse, request", "urllib.request request"),
        ("from http.client import HTTPConnection", "http.client"),
        // Nothing is wrong.
        ("import json, urllib.parse, yaml\nfrom http import HTTPStatus", ""),
        ("from . import requests\nfrom .requests import get", ""),
        ("from mcp_tools import requests\nimport mcp.servers.redis", ""),
        ("import _nothing, xml.parsers.expat.errors, mcp.runtime", ""),
    ] {
        assert_eq!(imports(source), expected, "{source}");
    }
}

#[test]
fn imports_that_may_fail_are_no_mistakes() {
    for source in [
        "try:\n    import requests\nexcept ImportError:\n    requests = None",
        "try:\n    import orjson as json\nexcept Exception:\n    import json",
        "import contextlib\nwith contextlib.suppress(ImportError):\n    import requests",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas as pd\nelse:\n    pd = None",
        "import typing as t\nif t.TYPE_CHECKING:\n    import pandas as pd",
    ] {
        assert_eq!(imports(source), "", "{source}");
    }
}

#[test]
fn a_script_that_changes_what_imports_find_is_not_refused() {
    for source in [
        "import sys\nsys.modules['requests'] = sys\nimport requests",
        "from sys import modules as known\nknown['requests'] = known\nimport requests",
        "import builtins\nbuiltins.__import__ = print\nimport requests",
        "import sys\nsys.meta_path.append(x)\nimport requests",
        "import sys\ngetattr(sys, 'mod' + 'ules')['requests'] = sys\nimport requests",
        "import sys\nvars(sys)['mod' + 'ules']['requests'] = sys\nimport requests",
        "from unittest import mock\nmock.patch.dict('sys.modules', requests=1).start()\nimport requests",
        "import sys\nif x:\n    sys.exit()\nimport requests",
        "import zipimport\nzipimport.zipimporter('/tmp/a.zip').load_module('requests')\nimport requests",
    ] {
        assert_eq!(imports(source), "requests", "{source}");
    }
    // Nothing has run before the imports at its head.
    for source in [
        "import sys, requests\nsys.modules['requests'] = sys\nsys.exit()",
        "import requests\nimport sys\nsys.exit(globals())",
    ] {
        assert_eq!(imports(source), "requests!", "{source}");
    }
}

#[test]
fn the_packages_that_there_are_are_named_once() {
    let survey = survey("import ssl\nimport requests\nimport numpy\nimport pandas");
    let named: Vec<bool> = survey
        .imports
        .iter()
        .map(|import| import.message.ends_with("a script cannot install more"))
        .collect();
    assert_eq!(named, [false, true, false, false], "{survey:?}");
}

#[test]
fn a_module_that_nothing_has_is_said_as_the_interpreter_says_it() {
    let messages: Vec<String> = survey("import jsn\nimport left_pad.x\nimport json5")
        .imports
        .into_iter()
        .map(|one| one.message)
        .collect();
    let packages = messages[0].strip_prefix("No module named 'jsn': did you mean 'json'? ");
    assert!(
        packages.is_some_and(|packages| packages.starts_with("besides the standard library")),
        "{messages:?}"
    );
    assert_eq!(messages[1], "No module named 'left_pad'");
    assert_eq!(messages[2], "No module named 'json5': did you mean 'json'?");
}

/// A script chooses the names, and how many there are.
#[test]
fn v_625_names_of_modules_cost_a_bounded_amount_of_work_and_text() {
    let long = "x".repeat(100 << 10);
    let survey = survey(&format!("import {long}\n{}", "import colections_\n".repeat(MAX_IMPORTS)));
    assert_eq!(survey.imports.len(), MAX_IMPORTS);
    let longest = survey.imports.iter().map(|import| import.message.len()).max();
    assert!(longest.is_some_and(|bytes| bytes < 500), "{longest:?}");
}

#[test]
fn a_survey_has_a_bounded_number_of_imports() {
    let survey = survey(&"import requests\n".repeat(MAX_IMPORTS + 100));
    assert_eq!(survey.imports.len(), MAX_IMPORTS);
}

#[test]
fn what_is_no_python_is_read_as_far_as_possible() {
    for (source, lines, uses) in [
        ("x = 1 +\nawait tools.a.b()\ny = = 2", "1 3", "a.b!"),
        ("x = (1,\nawait tools.a.b()\n", "1", "a.b!"),
        ("x = f(\n    a=1,\n    b=[2\n)\nawait tools.a.b()\n", "3", "a.b!"),
        ("if f(x:\n    await tools.a.b()\nawait tools.a.c()\n", "1", "a.b a.c!"),
        ("if x:\n    y = g(1))\nawait tools.a.c()\n", "2", "a.c!"),
        ("await tools.a.b()\nx = 'a\nawait tools.a.c()", "2", "a.b! a.c!"),
        ("Text of prose.\n```python\nx = 1 +\nawait tools.a.b()\n```\n", "3", "a.b!"),
        ("p = tools.a.b()\nawait p p\n", "2", "a.b"),
        ("const a = 1;\nconst b = 2;\nconst c = 3;\nconst d = 4;\n", "1", ""),
    ] {
        let survey = survey(source);
        let line = |mistake: &Mistake| (source[..mistake.at.start].matches('\n').count() + 1).to_string();
        let found: Vec<String> = survey.mistakes.iter().map(line).collect();
        assert_eq!(
            (found.join(" ").as_str(), survey.render_uses().join(" ").as_str()),
            (lines, uses),
            "{source}"
        );
    }
}

#[test]
fn names_that_the_script_binds_are_not_ours() {
    for source in [
        "tools = x\nawait tools.a.b()",
        "def f(tools):\n    tools.a.b()",
        "for a in x:\n    a.b()",
        "import json\njson.loads('1')",
        "text = ''\ntext.split()",
        "print(len([1]))",
        "try:\n    pass\nexcept E as a:\n    a.b()",
        "match x:\n    case a:\n        a.b()",
        "with open('x') as a:\n    a.read()",
        "Path('x').exists()",
        "def call_mcp_tool(x):\n    pass\ncall_mcp_tool('mcp__a__b')",
    ] {
        assert_eq!(read(source), Vec::<String>::new(), "{source}");
    }
}

#[test]
fn calls_that_are_not_awaited_are_reported() {
    assert_eq!(read("tools.a.b()\nx = 1"), ["a.b~"]);
    assert_eq!(read("p = tools.a.b()\nx = 1"), ["a.b~"]);
    assert_eq!(read("p = tools.a.b()\nx = locals()"), ["a.b"]);
    assert_eq!(read("p = call_mcp_tool_sync('a')\nx = 1"), ["a!"]);
    // Nothing awaits a list of coroutines, or a future of several.
    for source in [
        "asyncio.gather(tools.a.b())\nx = 1",
        "x = asyncio.gather(*[tools.a.b() for y in z])\ny = 1",
        "x, y = asyncio.gather(tools.a.b(), y)\nprint(x)",
        "asyncio.wait_for(tools.a.b(), 3)\nx = 1",
        "[tools.a.b() for x in y]\nx = 1",
        "l = [tools.a.b() for x in y]\nx = 1",
        "x and tools.a.b()\nx = 1",
        "p = None\np = tools.a.b()\nx = 1",
        "p = {'q': tools.a.b()}\nx = 1",
        "if tools.a.b():\n    x = 1\nx = 1",
        "x = not tools.a.b()\nreturn x",
        "x = tools.a.b() == 1\nreturn x",
        "x = f'{tools.a.b()}'\nreturn x",
        // What coroutines do not have is read.
        "x = await tools.a.b()['items']\ny = x",
        "x = tools.a.b().items\ny = x",
        "for x in tools.a.b():\n    print(x)\nx = 1",
        "x = [y for y in tools.a.b()]\nreturn x",
        "p = tools.a.b()\nreturn p['items']",
        "p = tools.a.b()\nreturn len(p)",
        "p = tools.a.b()\nfor x in p:\n    print(x)\nx = 1",
        "x, y = tools.a.b()\nreturn x",
    ] {
        assert_eq!(read(source).join(" "), "a.b~", "{source}");
    }
    // Each of these waits, or may.
    for source in [
        "p = tools.a.b()\nreturn (await p)['items']",
        "p = tools.a.b()\nprint(p)\nreturn await p",
        "p = tools.a.b()\np = await p\nreturn p['items']",
        "l = [tools.a.b() for x in y]\nprint(len(l))\nfor p in l:\n    await p\nx = 1",
        "l = [tools.a.b()]\nreturn await l[0]",
        "x, y = [tools.a.b(), 1]\nreturn await x",
        "p = asyncio.gather(tools.a.b())\nwhile not p.done():\n    await asyncio.sleep(1)\nreturn p.result()",
        "p = asyncio.create_task(tools.a.b())\nreturn p.result()",
        "asyncio.create_task(tools.a.b())\nx = 1",
        "asyncio = 1\nasyncio.gather(tools.a.b())\nx = 1",
        "p = call_tool('a', 'b')\nreturn p['value']",
        "return call_mcp_tool_sync('a')['items']",
        "tools.a.b().close()\nx = 1",
    ] {
        assert!(!read(source).join(" ").contains('~'), "{source}: {:?}", read(source));
    }
    // The last expression is awaited.
    assert_eq!(read("tools.a.b()"), ["a.b!"]);
    assert_eq!(read("if __name__ == '__main__':\n    tools.a.b()"), ["a.b!"]);
    assert_eq!(read("call_tool('a', 'b')\nx = 1"), ["a.b"]);
}

#[test]
fn sources_that_would_take_too_much_stack_are_not_read() {
    let many = 200_000;
    for source in [
        format!("x = {}1{}", "(".repeat(many), ")".repeat(many)),
        format!("x = {}1", "-".repeat(many)),
        format!("x = {}1", "not ".repeat(many / 4)),
        format!("x = 1{}", "+1".repeat(many / 2)),
        format!("x = a{}", ".b".repeat(many / 2)),
        format!("x = a{}", "()".repeat(many / 2)),
        format!("x = a{}", "[0]".repeat(many / 3)),
        format!("x = {}1", "lambda: ".repeat(many / 8)),
        format!("x = {}1", "1 if x else ".repeat(many / 12)),
        format!("x = 1{}", " if x else 1".repeat(many / 12)),
        format!("x = {}1", "await ".repeat(many / 6)),
        format!("x = {}", "f'{".repeat(many / 3)),
        format!("x = 1{}", " < 1".repeat(many / 4)),
        format!("x = 1{}", " and 1".repeat(many / 6)),
        format!("x = 1{}", " ** 1".repeat(many / 5)),
        format!("x = {}1{}", "[".repeat(many), "]".repeat(many)),
        format!("x = {}1", "{1:".repeat(many / 3)),
        format!("{}x", "a = ".repeat(many / 4)),
        (0..300).map(|level| format!("{}if x:\n", " ".repeat(level))).collect(),
        format!("{}x", "if x: ".repeat(many / 6)),
        format!("match x:\n case {}1", "1 | ".repeat(many / 4)),
        format!("x = {}", "'a' ".repeat(many / 4)),
        format!("x: {}int", "a[".repeat(many / 2)),
        format!("def f({}): pass", "a, ".repeat(many / 3)),
        format!("x = {}1", "lambda a, b: ".repeat(many / 13)),
        format!("x = ({}1)", "yield a, ".repeat(many / 9)),
        format!("x = {}", "[), ".repeat(many / 4)),
        "\"".repeat(many),
        "(".repeat(many),
        ")".repeat(many),
    ] {
        let source = format!("await tools.a.b()\n{source}\n");
        // On as little stack as the threads of interpreters have.
        let read = std::thread::Builder::new().stack_size(2 << 20).spawn(move || survey(&source));
        read.unwrap().join().unwrap();
    }
}

/// Whatever the values are: those that are not written out count too.
#[test]
fn options_of_a_call_are_no_arguments() {
    for written in ["{'x': 1}, {'timeout': 5}", "{'x': 1}, None", "{}, {'timeout': 5}, x=1"] {
        let found = survey(&format!("await tools.a.b({written})\n")).uses.into_iter().next();
        assert!(matches!(found.and_then(|one| one.arguments), Some(Literal::Object(_))), "{written}");
    }
}

#[test]
fn v_482_arguments_of_too_many_values_are_unknown() {
    let arguments = |written: &str| {
        let source = format!("await tools.a.b({written})\n");
        survey(&source).uses.into_iter().next().and_then(|one| one.arguments).unwrap()
    };
    for (before, item, after) in [
        ("n=1, o=[", "1,", "]"),
        ("n=1, o=[", "x,", "]"),
        ("n=1, o=[", "[x],", "]"),
        ("n=1, o={", "**x,", "}"),
        ("n=1, o={", "'a': x,", "}"),
        ("n=1, o={", "x: 1,", "}"),
        ("{'o': [", "1,", "]}, n=1"),
    ] {
        let of = |count| arguments(&format!("{before}{}{after}", item.repeat(count)));
        assert!(matches!(of(MAX_VALUES / 2 - 10), Literal::Object(_)), "{item}");
        assert_eq!(of(MAX_VALUES), Literal::Unknown { may_be_absent: false }, "{item}");
    }
    // One argument and the keywords are read together.
    let half = "1,".repeat(MAX_VALUES / 2);
    let both = arguments(&format!("{{'o': [{half}]}}, n=[{half}]"));
    assert_eq!(both, Literal::Unknown { may_be_absent: false });
}
