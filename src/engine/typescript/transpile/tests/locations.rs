//! Generated locations to the author's locations.

use super::run;

/// Asserts that the location of `needle` in the generated code maps to its location in `source`.
#[track_caller]
fn check(source: &str, needle: &str) {
    let transpiled = run(source).expect("transpiles");
    let (line, column) = location(&transpiled.code, needle);
    let found = transpiled.positions.original(line, column).map(|location| (location.line, location.column));
    assert_eq!(found, Some(location(source, needle)), "{needle} in {}", transpiled.code);
}

/// Line and column of the first `needle`, from 1, in UTF-16 units.
fn location(text: &str, needle: &str) -> (u32, u32) {
    let before = &text[..text.find(needle).unwrap_or_else(|| panic!("no {needle} in {text}"))];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |tail| tail.encode_utf16().count()) + 1;
    (u32::try_from(line).expect("small"), u32::try_from(column).expect("small"))
}

#[test]
fn locations_survive_what_comes_before_them() {
    check("enum E { A }\nnamespace N { export const a = 1 }\nthrow new Error('x')", "new Error");
    check(
        "function d(v, c) { return v }\n@d class A {}\nfunction f(): never {\n    throw  boom()\n}\nf()",
        "boom()",
    );
    check("const a: any = null;\nreturn  a.missing.deeper", "deeper");
    check("const s = '😀é'; const n: number = 1; call(n, other(2))", "other(2)");
    check("import { a } from 'mcp:s';\n\n\na(first,   second)", "second");
    check("class A { private m(x: string): void { x.trim().nothing() } }", "nothing");
    check("/* é */ const f = (x: number) => {\r\n  inner(x)\r\n}", "inner");
}

#[test]
fn fenced_code_counts_lines_of_the_whole_text() {
    check("Look:\n```ts\nlet x: T = 1\nfail(x)\n```", "fail(x)");
}

#[test]
fn the_wrapper_has_no_location() {
    let transpiled = run("main\nfunction d(v, c) { return v }\n@d class A {}").expect("transpiles");
    assert_eq!(transpiled.positions.original(1, 1), None);
    let helper = location(&transpiled.code, "Reflect.ownKeys");
    assert_eq!(transpiled.positions.original(helper.0, helper.1), None);
}
