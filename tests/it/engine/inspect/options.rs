//! Options of `console`, and printing at the end of the stack.

use super::*;

#[test]
fn v_258_options_are_read_as_they_are() {
    let cases = [
        ("{ get depth() { for (;;) {} } }", "TIMEOUT"),
        ("{ get depth() { throw 1 }, get compact() { throw 1 }, get sorted() { throw 1 } }", "none"),
        (
            "new Proxy({}, { get() { throw 1 }, has() { throw 1 }, getOwnPropertyDescriptor() { throw 1 }, ownKeys() { throw 1 } })",
            "none",
        ),
        (
            "{ depth: { valueOf() { throw 1 } }, breakLength: '1e9', compact: {}, maxArrayLength: NaN, maxStringLength: -1 }",
            "none",
        ),
        (
            "{ depth: 1e308, breakLength: 1e308, maxArrayLength: 1e308, maxStringLength: 1e308, indentationLvl: 1e308, compact: 1e308 }",
            "none",
        ),
        (
            "{ depth: -1e308, breakLength: -1e308, maxArrayLength: -1e308, maxStringLength: -1e308, indentationLvl: -1, compact: -1 }",
            "none",
        ),
        ("{ sorted() { for (;;) {} } }", "TIMEOUT"),
        ("{ sorted() { throw 1 }, getters: true, showHidden: true, showProxy: true }", "none"),
        ("{ getters: true, depth: null }", "none"),
        (
            "{ quotes: { length: 2 ** 32 }, seen: Array(2 ** 32 - 1), stylize() { for (;;) {} }, budget: {}, colors: true }",
            "none",
        ),
    ];
    for (options, code) in cases {
        let value = "{ b: [1, 'two', [3]], a: 'x\\ny'.repeat(20), get c() { return { d: 1 } }, m: new Map([[1, { e: 2 }]]) }";
        survives(
            &format!("console.dir({value}, {options}); console.dir(Array(20).fill(1e3), {options})"),
            code,
            400,
        );
    }
}

// --- 259: near the end of the stack -------------------------------------------------------------

#[test]
fn v_259_printing_where_the_stack_ends() {
    let report = canary(
        "let printed = 0, failed = 0; const value = { a: [{ b: new Map([[1, { c: 1 }]]) }] };
         const f = () => {
             try { f() } catch {}
             if (printed > 20) return;
             try { console.log(value); printed++ } catch (error) { failed++; if (!(error instanceof RangeError)) throw error }
         };
         f(); console.log(value); return [printed > 20, failed > 0]",
        ENOUGH,
        64,
    );
    assert_eq!(report["hostile"]["value"], json!([true, true]), "{report:#}");
    let output = report["hostile"]["output"].as_str().unwrap();
    let lines: Vec<&str> = output.lines().collect();
    let expected = ["{", "  a: [", "    { b: Map(1) { 1 => { c: 1 } } }", "  ]", "}"];
    assert!(lines.chunks(expected.len()).all(|chunk| chunk == expected), "{report:#}");
}
