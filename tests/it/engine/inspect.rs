//! Printed values look as in Deno. Printing neither runs a script's code unasked, nor ends the process, nor takes
//! memory beyond the script's limit. Numbers are those of docs/threats.md.

/// Options of `console`, and printing at the end of the stack.
mod options;

use std::fs;
use std::path::Path;

use cx::{ExecuteResult, Limits, Output, Script};
use serde_json::{Value, json};

use crate::support::canary::{ENOUGH, canary, survives};
use crate::support::run;

/// The output of a script, including the end of each line.
async fn printed(source: &str) -> String {
    let result = run(source).await;
    assert!(result.error().is_none(), "{source}: {}", result.to_json());
    text_of(&result)
}

fn text_of(result: &ExecuteResult) -> String {
    let lines = result.logs.iter().map(|entry| match entry {
        Output::Log { text, .. } => format!("{text}\n"),
        _ => String::new(),
    });
    lines.collect()
}

// --- How values look ----------------------------------------------------------------------------

fn data(name: &str) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inspect");
    fs::read_to_string(directory.join(name)).unwrap()
}

fn lines(name: &str) -> Vec<String> {
    let text = data(name);
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

/// `tests/inspect/reference.mjs` says how the reference was made.
#[tokio::test]
async fn values_look_as_in_deno() {
    let reference: Value = serde_json::from_str(&data("reference.json")).unwrap();
    let differences: Value = serde_json::from_str(&data("differences.json")).unwrap();
    let reference = reference["values"].as_array().unwrap();
    let (expressions, calls) = (lines("expressions.txt"), lines("calls.txt"));
    let all: Vec<&String> = expressions.iter().chain(&calls).collect();
    let known: Vec<&str> = reference.iter().map(|value| value["line"].as_str().unwrap()).collect();
    assert_eq!(known, all, "run tests/inspect/reference.mjs again");

    let end = "--- end of the line ---\n";
    let mut source = data("prelude.js");
    for (position, line) in all.iter().enumerate() {
        let statement =
            if position < expressions.len() { format!("console.log(({line}))") } else { (*line).clone() };
        source += &format!(
            "try {{ {statement}; }} catch (error) {{ console.log('threw: ' + error.message); }}\n\
             console.log({:?});\n",
            end.trim_end()
        );
    }
    let output = printed(&source).await;
    let output: Vec<&str> = output.split(end).collect();
    assert_eq!(output.len(), all.len() + 1);
    let mut wrong = Vec::new();
    for (value, ours) in reference.iter().zip(output) {
        let line = value["line"].as_str().unwrap();
        let ours = ours.strip_suffix('\n').unwrap_or(ours);
        let expected = differences[line]["cx"].as_str().or(value["deno"].as_str()).unwrap();
        if ours != expected {
            wrong.push(format!("{line}\n--- expected\n{expected}\n--- printed\n{ours}"));
        }
        assert!(value.get("node").is_none() || value["reason"].is_string(), "{line}");
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all.len(), wrong.join("\n\n"));
    for (line, difference) in differences.as_object().unwrap() {
        assert!(known.contains(&&**line), "{line} is in differences.json only");
        assert!(difference["reason"].is_string(), "{line}");
    }
}

#[tokio::test]
async fn arrays_with_holes() {
    let source = "
        const far = []; far[3e7] = 1; far[2_999_999] = 0; console.log(far);
        const sparse = []; for (const i of [7e6, 9, 4e9, 2e6]) sparse[i] = i; console.log(sparse);
        console.log(new Array(2e6));
        const many = []; for (let i = 0; i < 300; i++) many[i * 5_000] = i; console.log(many);
        const head = new Array(3).concat(Array.from({ length: 200 }, (_, i) => i)); console.log(head.length, head);";
    let output = printed(source).await;
    assert!(output.starts_with(
        "[ <2999999 empty items>, 0, <27000000 empty items>, 1 ]\n[\n  <9 empty items>,\n  9,\n  <1999990 empty items>,\n  \
         2000000,\n  <4999999 empty items>,\n  7000000,\n  <3992999999 empty items>,\n  4000000000\n]\n[ <2000000 empty items> ]\n"
    ), "{output}");
    assert!(output.contains("<4999 empty items>,") && output.contains("... 1245001 more items"), "{output}");
    assert!(output.contains("203 [") && output.contains("... 101 more items"), "{output}");
}

/// Only the time of a timer differs from run to run.
#[tokio::test]
async fn timers_and_traces() {
    let source = "
        console.time('a'); console.timeLog('a', { b: 1 }); console.timeEnd('a'); console.timeEnd('a');
        function work() { console.trace('at %s', 'work', [1]); } work();";
    let output = printed(source).await;
    let lines: Vec<&str> = output.lines().collect();
    let (time, rest) = lines[0].strip_prefix("a: ").unwrap().split_once("ms ").unwrap();
    assert!(time.parse::<f64>().unwrap() >= 0.0 && rest == "{ b: 1 }", "{output}");
    assert!(lines[1].starts_with("a: ") && lines[1].ends_with("ms"), "{output}");
    assert_eq!(lines[2], "Timer 'a' does not exist");
    assert_eq!(lines[3], "Trace: at work [ 1 ]");
    assert!(lines[4].starts_with("    at work (script.ts:"), "{output}");
}

// --- 249: what a custom inspector is given ------------------------------------------------------

#[test]
fn v_249_a_custom_inspector_changes_nothing_of_ours() {
    let inspector =
        r#"{[Symbol.for("Deno.customInspect")](i, o) { (o.seen ??= []).length = 2 ** 32 - 1; return {} }}"#;
    for source in [
        format!("throw {inspector}"),
        format!("await Promise.reject({inspector})"),
        format!(r#"throw new Error("x", {{ cause: {inspector} }})"#),
    ] {
        survives(&source, "RUNTIME_ERROR", 400);
    }
    for source in [
        &*format!("Promise.reject({inspector}); await null; console.log([{inspector}], {inspector})"),
        r#"console.dir({a: {[Symbol.for("Deno.customInspect")]() { return "a\nb" }}}, {indentationLvl: 1e15})"#,
        r#"console.log({[Symbol.for("Deno.customInspect")](inspect, o) {
            return inspect({ a: 1 }, { ...o, indentationLvl: 2 ** 40, breakLength: 1e308, maxArrayLength: 1e308,
                quotes: [], budget: 1, seen: Array(2 ** 31), circular: {}, compact: -1e308 }) }})"#,
    ] {
        survives(source, "none", 400);
    }
}

#[test]
fn v_250_text_that_is_too_long_for_v8() {
    survives(r#"const s = "x".repeat(2 ** 26); console.log(s, s, s, s, s, s, s, s, s)"#, "MEMORY_LIMIT", 400);
    survives(r#"const s = "x".repeat(2 ** 28); console.log("%s%s%s", s, s, s)"#, "MEMORY_LIMIT", 500);
    survives(
        r#"const s = "\n".repeat(2 ** 20); for (let i = 0; i < 1e5; i++) console.group(); console.log(s)"#,
        "none",
        400,
    );
}

#[tokio::test]
async fn v_250_a_call_prints_no_more_than_four_million_characters() {
    let report = run(r#"console.log("x".repeat(2 ** 24)); console.log("y")"#).await.to_json();
    let kept = report["output"].as_str().unwrap().len();
    let dropped = report["outputBytesDropped"].as_u64().unwrap();
    assert!(kept <= 1 << 20 && dropped > 3 << 20 && dropped < 5 << 20, "{kept} {dropped}");
}

// --- 251: tables and labels ---------------------------------------------------------------------

#[test]
fn v_251_tables_and_labels_are_in_the_heap_that_is_counted() {
    survives("console.table(Array.from({length: 6000}, (_, i) => ({['k' + i]: 1})))", "none", 400);
    for source in [
        "for (let i = 0;; i++) console.time('x'.repeat(1e4) + i + Math.random().toString(36).repeat(1e3))",
        "for (let i = 0;; i++) console.count('x'.repeat(1e4) + i)",
        "const s = 'x'.repeat(1e6); for (let i = 0;; i++) console.time(i + s + i)",
        "for (let i = 0;; i++) performance.mark('x'.repeat(1e4) + i, { detail: 'y'.repeat(1e4) })",
    ] {
        survives(source, "MEMORY_LIMIT", 400);
    }
    // The indentation is bounded.
    survives("for (;;) console.group('x'.repeat(100))", "TIMEOUT", 400);
}

#[tokio::test]
async fn v_251_tables_are_cut() {
    let output = printed("console.table(Array.from({length: 200}, (_, i) => ({['k' + i]: 1})))").await;
    assert!(output.len() < 1 << 20 && output.ends_with("... more than 100 columns\n"), "{}", output.len());
    let output = printed("console.table(Array.from({length: 12_000}, (_, i) => i))").await;
    assert!(output.ends_with("... 2000 more rows\n"), "{}", &output[output.len() - 200..]);
}

// --- 252: inspectors that do not end ------------------------------------------------------------

#[test]
fn v_252_custom_inspectors_end_with_the_run() {
    let cases = [
        ("for (;;) {}", "TIMEOUT", None),
        ("for (;;) try { for (;;) {} } catch {}", "TIMEOUT", None),
        ("let s = 'x'; for (;;) s += s + s.at(-1)", "MEMORY_LIMIT", Some("MEMORY_LIMIT")),
        ("const a = []; for (;;) a.push({})", "MEMORY_LIMIT", None),
        ("return 'x'.repeat(2 ** 28)", "MEMORY_LIMIT", Some("MEMORY_LIMIT")),
        ("return '\\n'.repeat(2 ** 24)", "RUNTIME_ERROR", Some("RUNTIME_ERROR")),
        (
            "return arguments.length === 2 ? arguments[0](this) : arguments[2](this)",
            "RUNTIME_ERROR",
            Some("RUNTIME_ERROR"),
        ),
        (
            "const i = arguments.length === 2 ? arguments[0] : arguments[2]; return i(this) + i(this)",
            "RUNTIME_ERROR",
            Some("RUNTIME_ERROR"),
        ),
        ("return { a: this, b: { c: this } }", "RUNTIME_ERROR", Some("RUNTIME_ERROR")),
        ("console.log(this); return 'x'", "RUNTIME_ERROR", Some("RUNTIME_ERROR")),
        ("throw this", "RUNTIME_ERROR", Some("RUNTIME_ERROR")),
        ("throw { toString() { throw 1 } }", "RUNTIME_ERROR", Some("RUNTIME_ERROR")),
        // Only for Deno's symbol is a thrown value formatted by its own function.
        ("return { toString() { for (;;) {} } }", "TIMEOUT", Some("RUNTIME_ERROR")),
    ];
    for (body, deno, node) in cases {
        let symbols = [("Deno.customInspect", Some(deno)), ("nodejs.util.inspect.custom", node)];
        for (name, code) in symbols {
            // A script that only waits for the limit is run once.
            let Some(code) = code else { continue };
            let source = format!(
                "const o = {{ [Symbol.for('{name}')]() {{ {body} }} }}; console.dir([o, {{ a: o }}], {{ depth: null }}); throw o"
            );
            survives(&source, code, 400);
        }
    }
}

// --- 253: what runs no code ---------------------------------------------------------------------

#[tokio::test]
async fn v_253_printing_runs_no_trap_and_no_getter() {
    let source = "
        let ran = 0;
        const handler = new Proxy({}, { get(_, name) { ran++; throw new Error('trap ' + String(name)); } });
        const proxies = [
            new Proxy({ a: 1 }, handler), new Proxy([1], handler), new Proxy(() => 1, handler),
            new Proxy(new Map([[1, 2]]), handler), new Proxy(new Error('e').message.split(''), handler),
            new Proxy(new Proxy({ b: 1 }, handler), handler), Object.create(new Proxy({}, handler)),
            Object.setPrototypeOf([1], new Proxy([], handler)), Object.setPrototypeOf(() => 1, new Proxy(() => 1, handler)),
            new (class { get a() { ran++; return 1; } static get name() { ran++; return 'x'; } })(),
            { get a() { ran++; return 1; }, get [Symbol.iterator]() { ran++; return 1; } },
            Object.defineProperty([1], 0, { get() { ran++; return 1; }, enumerable: true }),
            Object.setPrototypeOf(new Error('x'), new Proxy(Error.prototype, handler)),
        ];
        for (const value of proxies) {
            console.log(value, [value], { value }, new Map([[value, value]]));
            console.log('%o %O', value, value);
            // It asks for the value's own text, which may include a getter; a proxy has none.
            if (proxies.indexOf(value) < 8) console.log('%s', value);
            console.dir(value, { showProxy: true, showHidden: true, depth: null, sorted: true });
            console.table(value); console.table([value]);
        }
        return ran";
    let result = run(source).await;
    assert_eq!(result.value(), Some(&json!(0)), "{}", result.to_json());
}

// --- 254: size ----------------------------------------------------------------------------------

#[tokio::test]
async fn v_254_large_values_are_cut() {
    let megabyte = 1 << 20;
    for (source, end) in [
        ("let d = {}; for (let i = 0; i < 1e5; i++) d = { d }; console.dir(d, { depth: null })", "}\n"),
        (
            "let d = []; for (let i = 0; i < 1e5; i++) d = [d]; console.dir(d, { depth: 1e9, compact: false })",
            "]\n",
        ),
        (
            "const o = {}; for (let i = 0; i < 3e5; i++) o['k' + i] = i; console.log(o)",
            "more properties\n}\n",
        ),
        ("const o = {}; for (let i = 0; i < 1e6; i++) o[i] = i; console.log(o)", "more properties\n}\n"),
        ("console.dir(Array(1e6).fill(1), { maxArrayLength: null })", "more items\n]\n"),
        (
            "console.dir(new Set(Array(3e5).fill(1).map((x, i) => i)), { iterableLimit: null })",
            "more items\n}\n",
        ),
        ("console.dir(['x'.repeat(5e6)], { maxStringLength: null })", "more characters\n]\n"),
        ("console.dir(['\\n'.repeat(5e6)], { maxStringLength: Infinity })", "more characters\n]\n"),
        (
            "console.log(new Map(Array(3e5).fill(1).map((x, i) => [i, i])).entries())",
            "... 299900 more items\n}\n",
        ),
        ("console.log({ ['k'.repeat(1e6)]: 1 })", "...\": 1\n}\n"),
        ("console.log(Object('x'.repeat(1e6)))", "more characters]\n"),
    ] {
        // More than one call prints: whatever is missing, that call has left out.
        let limits = Limits { output_bytes: 16 << 20, ..Limits::default() };
        let result = run(Script::typescript(source).limits(limits)).await;
        assert!(result.error().is_none(), "{source}: {}", result.to_json());
        assert_eq!(result.usage.output_bytes_dropped, 0, "{source}");
        let output = text_of(&result);
        assert!(output.ends_with(end), "{source}: {}", &output[output.len().saturating_sub(200)..]);
        assert!(output.len() <= 2 * megabyte, "{source}: {}", output.len());
    }
}

#[test]
fn v_254_large_values_take_no_memory_of_the_host() {
    for (source, code) in [
        (
            "let d = {}; for (let i = 0; i < 1e6; i++) d = { d }; console.dir(d, { depth: null }); throw d",
            "RUNTIME_ERROR",
        ),
        (
            "const o = {}; for (let i = 0; i < 1e6; i++) o['k' + i] = i; console.log(o); throw o",
            "MEMORY_LIMIT",
        ),
        (
            "const a = []; for (let i = 0; i < 2e6; i++) a.push(i); for (;;) console.dir(a, { maxArrayLength: null })",
            "TIMEOUT",
        ),
        (
            "const m = new Map(); for (let i = 0; i < 5e5; i++) m.set(i, i); for (;;) console.log(m.entries())",
            "TIMEOUT",
        ),
        ("console.log(Object('x'.repeat(2 ** 25)))", "none"),
        ("for (;;) console.log({ ['k'.repeat(1e6)]: Symbol('s'.repeat(1e6)) })", "TIMEOUT"),
    ] {
        survives(source, code, 400);
    }
}

// --- 255: names that scripts choose -------------------------------------------------------------

#[test]
fn v_255_names_and_tags_are_not_copied() {
    for source in [
        "const t = { [Symbol.toStringTag]: 't'.repeat(2 ** 26) }; for (let i = 0; i < 50; i++) { console.log(t); \
         console.log(Object.setPrototypeOf({ [Symbol.toStringTag]: t[Symbol.toStringTag] }, null)); }",
        "class X {}; Object.defineProperty(X, 'name', { value: 'n'.repeat(2 ** 26) }); console.log(new X(), X); throw new X()",
        "class X extends Error {}; Object.defineProperty(X, 'name', { value: 'n'.repeat(2 ** 26) }); \
         console.log(new X('q')); throw new X('q')",
    ] {
        survives(source, "MEMORY_LIMIT", 400);
    }
}

// --- 256: built-ins that scripts replace --------------------------------------------------------

#[tokio::test]
async fn v_256_replaced_built_ins_are_not_called() {
    let values = "
        const values = [1, \"it's\", 'a\\nb'.repeat(30), { a: new Map([['k', new Set([1])]]), d: new Date(0), r: /x/g },
            [1, 2, 3, 4, 5, 6, 7, 8], Symbol('s'), class A {}, new Uint8Array(3), Promise.resolve(1), () => 1, [, 1],
            new Map([[1, 2]]).entries(), Object(1n), new ArrayBuffer(2), 'ünï', null, undefined];
        const table = [{ a: 1 }, { b: 'x' }];";
    let patch = "
        let calls = 0;
        const { ownKeys, getOwnPropertyDescriptor, defineProperty } = Reflect;
        const iterators = [[].values(), new Map().values(), new Set().values(), ''.matchAll(/x/g)].map(Object.getPrototypeOf);
        const holders = [Array.prototype, String.prototype, RegExp.prototype, Map.prototype, Set.prototype, Number.prototype,
            Date.prototype, Error.prototype, Symbol.prototype, Promise.prototype, Object.prototype, Function.prototype,
            BigInt.prototype, Uint8Array.prototype, Object.getPrototypeOf(Uint8Array.prototype), ArrayBuffer.prototype,
            WeakMap.prototype, Object, Reflect, JSON, Math, Number, String, Symbol, Array, ...iterators];
        for (let h = 0; h < holders.length; h++) {
            const keys = ownKeys(holders[h]);
            for (let k = 0; k < keys.length; k++) {
                const key = keys[k];
                const descriptor = getOwnPropertyDescriptor(holders[h], key);
                if (key === 'constructor' || key === '__proto__' || !descriptor.configurable) continue;
                const replaced = () => { calls++; throw new Error('replaced'); };
                if (typeof descriptor.value === 'function') descriptor.value = replaced;
                else if (descriptor.get !== undefined) descriptor.get = replaced;
                else continue;
                defineProperty(holders[h], key, descriptor);
            }
        }
        const accessor = { get() { calls++; return 1; }, set() { calls++; }, configurable: true, __proto__: null };
        defineProperty(Array.prototype, 0, accessor);
        const polluted = ['value', 'get', 'set', 'enumerable', 'length', 'depth', 'name', 'done'];
        for (let i = 1; i < polluted.length; i++) defineProperty(Object.prototype, polluted[i], accessor);";
    let print = "
        console.log(values); console.log('%s %d %o', 'a', 1, values[3], values[4]); console.dir(values, { depth: 1 });
        console.table(table); console.count('x'); console.group('g'); console.log('in\\nside'); console.groupEnd();
        console.log('calls', calls);";
    let plain = printed(&format!("{values} let calls = 0; {print}")).await;
    let patched = printed(&format!("{values} {patch} {print}")).await;
    assert_eq!(patched, plain);
}

// --- 257: errors --------------------------------------------------------------------------------

#[test]
fn v_257_errors_of_every_kind_are_reported() {
    // The outcome of the thrown error, and of an object that contains it.
    let cases = [
        ("Object.defineProperty(new Error('x'), 'stack', { get() { for (;;) {} } })", "TIMEOUT", "TIMEOUT"),
        (
            "Object.defineProperty(new Error('x'), 'cause', { get() { for (;;) {} } })",
            "TIMEOUT",
            "RUNTIME_ERROR",
        ),
        (
            "Object.defineProperty(new Error('x'), 'name', { get() { throw 1 } })",
            "RUNTIME_ERROR",
            "RUNTIME_ERROR",
        ),
        (
            "Object.defineProperties(new Error('x'), { stack: { get() { throw 1 } }, message: { get() { throw 1 } }, \
          name: { get() { throw 1 } }, cause: { get() { throw 1 } }, errors: { get() { throw 1 } } })",
            "RUNTIME_ERROR",
            "RUNTIME_ERROR",
        ),
        ("new Error('x'.repeat(2 ** 24))", "RUNTIME_ERROR", "RUNTIME_ERROR"),
        (
            "Object.assign(new Error('a'.repeat(5e5) + 'b'), { stack: 'a'.repeat(1e6), name: 'a'.repeat(4e5) + 'c' })",
            "RUNTIME_ERROR",
            "RUNTIME_ERROR",
        ),
        (
            "Object.assign(new Error('x'), { stack: 'Error: x\\n    at' + '\\n    at x'.repeat(1e6) })",
            "RUNTIME_ERROR",
            "RUNTIME_ERROR",
        ),
        (
            "(() => { const a = new Error('a'), b = new Error('b', { cause: a }); a.cause = b; return a })()",
            "RUNTIME_ERROR",
            "RUNTIME_ERROR",
        ),
        (
            "(() => { let e = new Error('0'); for (let i = 0; i < 1e4; i++) e = new Error('e', { cause: e }); return e })()",
            "RUNTIME_ERROR",
            "RUNTIME_ERROR",
        ),
        (
            "(() => { const e = new AggregateError([], 'x'); e.errors.push(e, [e]); return e })()",
            "RUNTIME_ERROR",
            "RUNTIME_ERROR",
        ),
        (
            "(Error.prepareStackTrace = () => ({ toString() { for (;;) {} } }), new Error('x'))",
            "RUNTIME_ERROR",
            "RUNTIME_ERROR",
        ),
        ("(Error.prepareStackTrace = () => { for (;;) {} }, new Error('x'))", "TIMEOUT", "TIMEOUT"),
        (
            "(Error.stackTraceLimit = Infinity, (function f(n) { return n ? f(n - 1) : new Error('deep') })(3_000))",
            "RUNTIME_ERROR",
            "RUNTIME_ERROR",
        ),
    ];
    for (error, thrown, inside) in cases {
        survives(
            &format!("const error = {error}; console.log(error, [[error]], {{ error }}); throw error"),
            thrown,
            400,
        );
        survives(&format!("const error = {error}; throw {{ error }}"), inside, 400);
    }
}
