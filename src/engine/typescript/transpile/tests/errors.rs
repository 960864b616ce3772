//! Source to error.

use super::super::TranspileErrorKind::{self, Syntax, Transpile};
use super::super::{Location, transpile};
use super::run;

/// Asserts the kind, the location and a part of the message.
#[track_caller]
fn check(source: &str, kind: TranspileErrorKind, line: u32, column: u32, part: &str) {
    let error = run(source).err().unwrap_or_else(|| panic!("{source:?} must be refused"));
    assert_eq!((error.kind, error.location), (kind, Some(Location { line, column })), "{source}: {error:?}");
    assert!(error.message.contains(part), "{source}: {error:?}");
}

#[test]
fn mistakes_have_the_location_in_the_whole_text() {
    check("const x = ;", Syntax, 1, 11, "expression expected");
    check("const é = '😀', y = ;", Syntax, 1, 21, "expression expected");
    check("Some text\n```ts\nlet a = 1\nlet b = ]\n```", Syntax, 4, 9, "");
    check("```ts\nlet a = 1\nlet b = ]\n```", Syntax, 3, 9, "");
    check("\n\n  function f() { await 1 }", Syntax, 3, 18, "await");
    check("export abstract class A { m() { return a./b } }", Syntax, 1, 42, "expression expected");
}

#[test]
fn nothing_breaks_out_of_the_wrapper() {
    check("})(); globalThis.x = 1; (async () => {", Syntax, 1, 1, "");
    check("1 }; { 2", Syntax, 1, 3, "");
    assert!(run("1 /*").is_err());
    assert!(run("1 `").is_err());
    assert!(run("1 //").expect("a comment is fine").code.ends_with("return 1;\n})"));
}

#[test]
fn return_and_await_stand_at_the_top_level_and_in_functions_only() {
    assert!(run("if (await x) { for (;;) { return 1 } }").is_ok());
    check("class A { static { return 1 } }", Syntax, 1, 20, "`return` is not allowed");
    check("return 1; class A { static { return 2 } }", Syntax, 1, 30, "`return` is not allowed");
    check("namespace N { return 1 }", Syntax, 1, 15, "`return` is not allowed");
    // What is wrong is the rest.
    check("if (a) return 1;\nconst x = ;", Syntax, 2, 11, "expression expected");
    check("return 1;\n\n}", Syntax, 3, 1, "expression expected");
    check("function f() { await 1 }", Syntax, 1, 16, "await");
    check("let await = 1", Syntax, 1, 5, "await");
    check("async function f() { let await = 1 }", Syntax, 1, 26, "await");
    check("function f(await) {} function g() { await h() }", Syntax, 1, 12, "await");
    check("class A { constructor() {} constructor() {} }", Syntax, 1, 28, "constructor");
    check("class A { async constructor() {} }", Syntax, 1, 17, "");
    check("for (using;;) {} asserts is 1", Syntax, 1, 26, "");
}

/// Valid source that swc refuses is repaired at the error, which no `return` before it hides.
#[test]
fn what_swc_refuses_is_repaired_after_a_return_of_the_top_level() {
    for rest in [
        "class A { static declare x: number; }",
        "for (using y = null; false;) {}",
        "function f(asserts: any): asserts is string { return true }",
        "function f() { const await = 3; return await }",
        "class A { static constructor() { return 2 } }",
    ] {
        for source in [rest.to_owned(), format!("if (a) return 1; {rest} return 2")] {
            let transpiled = run(&source);
            assert!(transpiled.is_ok(), "{source}: {transpiled:?}");
        }
    }
}

/// Threat 678. What stands between a shift and a comparison below it is not taken for type arguments.
#[test]
fn v_678_a_mistake_below_a_shift_is_an_error() {
    check(
        "const mask = 1 << bits\nconst big = list.filter((x) => x > mask)\nconst y = = 3\nconst ok = y > 2",
        Syntax,
        3,
        11,
        "expression expected",
    );
    check("let a = b << c; f(() => d > 1); let e = ; let g = h > +3", Syntax, 1, 41, "expression expected");
    // They are type arguments only if TypeScript can read them as such.
    assert!(run("const f = g<<T>(value: T) => T, { a: string[]; b?: 1 }>\n2").is_ok());
}

#[test]
fn imports_of_anything_but_servers_are_refused() {
    check("import _ from \"lodash\"; _.x", Syntax, 1, 15, "cannot import `lodash`");
    check("import 'file:///etc/passwd'", Syntax, 1, 8, "cannot import `file:///etc/passwd`");
    check("export * from \"https://x/\"", Syntax, 1, 15, "cannot import");
    let long = run(&format!("import '{}'", "x".repeat(5_000))).expect_err("there is no such module");
    assert!(long.message.len() < 200, "{}", long.message);
    check("export { a } from \"mcp:s\"", Transpile, 1, 1, "export from a server");
    check("export { default } from \"mcp:s\"", Transpile, 1, 1, "export from a server");
    check("import x from \"mcp:s\" with { type: \"json\" }; x", Transpile, 1, 28, "attributes");
    check("import source w from \"mcp:s\"; w", Transpile, 1, 1, "import source");
    check("import defer * as w from \"mcp:s\"; w", Transpile, 1, 1, "import source");
    check("import x = require(\"fs\"); x", Transpile, 1, 1, "require");
    check("export = 1", Transpile, 1, 1, "export =");
    check("import.meta.url", Transpile, 1, 1, "import.meta");
    check("export default 1; export default 2", Syntax, 1, 19, "second");
    check("export { nothing }", Syntax, 1, 10, "not declared");
    let error = run("import path from 'node:path'; path.x").expect_err("refused");
    assert!(error.message.contains("cannot import `node:path`"), "{}", error.message);
    assert!(run("import fs from 'node:fs/promises'; fs.x").is_ok(), "files can be imported as in Node");
}

#[test]
fn legacy_decorators_and_python_are_named() {
    check("class A { m(@d x) {} }", Transpile, 1, 13, "parameters");
    check("class A { constructor(@d private x) {} }", Transpile, 1, 23, "parameters");
    for jsx in
        ["const a = <Foo />;", "return (\n  <div className=\"x\">a</div>\n)", "const a = <><b>x</b></>"]
    {
        let error = run(jsx).expect_err("refused");
        assert!(error.hint.is_some_and(|hint| hint.contains("JSX")), "{jsx}");
    }
    // HTML in a text is no JSX.
    for html in [
        "const html = '<b>x</b>' 'y'",
        "const row = `<tr><td>${x}</td></tr>`; ((",
        "const list = `\n<ul>\n</ul>`; ((",
        "const list = `a \\` b\n<ul>\n</ul>`; ((",
    ] {
        let error = run(html).expect_err("refused");
        assert!(error.hint.is_none_or(|hint| !hint.contains("JSX")), "{html}");
    }
    // What the parser knows comes first.
    for source in [
        "const h = `\n<ul>\n</ul>`;\nfunction f() { await g(); }",
        "const h = <string>g; // </b>\nfunction f() { await g(); }",
    ] {
        let error = run(source).expect_err("refused");
        assert!(error.hint.is_some_and(|hint| hint.contains("async")), "{source}");
    }
    for (source, is_python) in [
        ("def f(x):\n    return x\n", true),
        ("import os\nprint(1)", true),
        ("import os.path as p, json\nprint(1)", true),
        ("import a,\n{ b } from 'c'; ((", false),
        ("import 'os'; ((", false),
        ("const text = `\nimport data from the file\n`; ((", false),
        ("import a,\nb from 'c'; ((", false),
        ("import a from\n'c'; ((", false),
    ] {
        let error = run(source).expect_err("refused");
        assert_eq!(error.hint.is_some_and(|hint| hint.contains("Python")), is_python, "{source}");
    }
}

#[test]
fn size_is_checked_first() {
    assert!(transpile("1;", 2, &|| false).is_ok());
    let error = transpile("((;", 2, &|| false).expect_err("refused").error;
    assert_eq!((error.kind, error.location), (Syntax, None));
    assert_eq!(error.message, "the source has 3 bytes, more than the limit of 2");
}
