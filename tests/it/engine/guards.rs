//! docs/threats.md, built-in functions, by number: functions that V8 does not interrupt, and their guards. The walker
//! (`tests/it/slow/walk.rs`) looks for new ones; these are the known ones, and each would block its thread without its
//! guard.

mod lists;
/// Loops of calls.
mod loops;
mod patterns;
mod replaced;

use cx::ErrorCode;
use serde_json::{Value, json};

use crate::slow::walk::Stage;
use crate::support::{failure, value};

/// More milliseconds than a script can need that ends before its time is over.
const ENOUGH: u64 = 60_000;

/// Runs each script on a stage, where it must end by itself or be stopped, release its thread and take no memory; and
/// returns how each ended: a code, or the value.
fn ends(mut stage: Stage, scripts: &[impl AsRef<str>]) -> Vec<Value> {
    let mut ended = Vec::new();
    for script in scripts.iter().map(AsRef::as_ref) {
        let (mut faults, mut answer) = stage.look(script, true);
        if !faults.is_empty() {
            // A second time, as the walker does: a result that does not repeat was caused by the machine.
            (faults, answer) = stage.look(script, true);
        }
        assert!(faults.is_empty(), "{script}: {faults:?} {answer:#}");
        let result = &answer["result"];
        ended.push(result["error"]["code"].as_str().map_or_else(|| result["value"].clone(), Value::from));
    }
    ended
}

/// Every script is refused at once. It has more time than it can need, so that its code does not depend on the machine.
fn refused(scripts: &[impl AsRef<str>]) {
    all_end_with("RUNTIME_ERROR", Stage::new(false).with_wall_ms(ENOUGH), scripts);
}

/// Every script is stopped at the memory limit, which it reaches within a second, with as much time.
fn out_of_memory(scripts: &[impl AsRef<str>]) {
    all_end_with("MEMORY_LIMIT", Stage::new(false).with_wall_ms(ENOUGH), scripts);
}

/// Every script is stopped at its time. It has no end, and takes little memory.
fn out_of_time(scripts: &[impl AsRef<str>]) {
    all_end_with("TIMEOUT", Stage::new(false), scripts);
}

fn all_end_with(code: &str, stage: Stage, scripts: &[impl AsRef<str>]) {
    for (script, ended) in scripts.iter().zip(ends(stage, scripts)) {
        assert_eq!(ended, code, "{}", script.as_ref());
    }
}

#[tokio::test]
async fn v_307_what_a_listener_throws_ends_the_run() {
    let listener = |body: &str| {
        format!(
            "const t = new EventTarget(); t.addEventListener('a', () => {{ {body} }}); t.dispatchEvent(new Event('a')); await new Promise(() => {{}})"
        )
    };
    let (code, message) = failure(&listener("throw new TypeError('from the listener')")).await;
    assert_eq!((code, &*message), (ErrorCode::RuntimeError, "from the listener"));
    for body in ["const f = () => f() + 1; f()", "t.dispatchEvent(new Event('a'))"] {
        let result = crate::support::run(&*listener(body)).await;
        let error = result.error().unwrap_or_else(|| panic!("{}", result.to_json()));
        assert_eq!(error.code, ErrorCode::RuntimeError, "{error:?}");
        assert_eq!(error.name.as_deref(), Some("RangeError"), "{error:?}");
    }
    let aborted = "const c = new AbortController(); c.signal.onabort = () => { throw new RangeError('aborted') }; c.abort(); await new Promise(() => {})";
    assert_eq!(failure(aborted).await.1, "aborted");
}

#[tokio::test]
async fn v_308_timers_of_abort_signals_count() {
    let (code, message) = failure("for (;;) AbortSignal.timeout(1e9)").await;
    assert_eq!(code, ErrorCode::RuntimeError);
    assert!(message.contains("10000 timers"), "{message}");
    // Timers are removed when they have fired.
    let source = "for (let i = 0; i < 3; i++) {
            const k = []; for (let j = 0; j < 9000; j++) k.push(AbortSignal.timeout(1));
            await new Promise((resolve) => k.at(-1).addEventListener('abort', resolve));
        }
        return AbortSignal.timeout(2 ** 40).aborted";
    assert_eq!(value(source).await, false);
}

#[test]
fn v_309_a_length_is_read_once() {
    let mut scripts = Vec::new();
    for name in [
        "indexOf",
        "includes",
        "lastIndexOf",
        "some",
        "every",
        "find",
        "findLast",
        "forEach",
        "reverse",
        "fill",
        "copyWithin",
        "join",
        "slice",
        "splice",
        "unshift",
        "flat",
        "flatMap",
        "toReversed",
        "toSorted",
        "sort",
        "filter",
        "reduceRight",
    ] {
        scripts.push(format!(
            "let n = 0; try {{ Array.prototype.{name}.call({{get length() {{ return n++ ? 2 ** 53 - 1 : 1 }}}}, () => 0) }} catch {{}} return n"
        ));
    }
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    for (script, ended) in scripts.iter().zip(ends(Stage::new(false).with_wall_ms(ENOUGH), &scripts)) {
        assert_eq!(ended, 1, "{script}");
    }
    refused(&[
        "let n = 0; String.raw({raw: {get length() { return n++ ? 2 ** 53 - 1 : 2 ** 53 - 1 }}})",
        "Array.prototype.some.call(new Proxy(new Array(2 ** 32 - 1), {}), () => 0)",
    ]);
    out_of_time(&[
        "let n = 0; Array.prototype.some.call(new Proxy(new Array(2 ** 32 - 1), {get get() { return n++ ? undefined : () => 2 ** 20 }}), () => 0); for (;;);",
    ]);
}

#[test]
fn v_310_lists_in_lists_are_measured_as_well() {
    refused(&[
        "[].concat({length: 2 ** 53 - 1, [Symbol.isConcatSpreadable]: true})",
        "let n = 0; [].concat({get length() { return n++ ? 2 ** 53 - 1 : 2 ** 53 - 1 }, [Symbol.isConcatSpreadable]: true})",
        "[[new Array(2 ** 32 - 1)]].flat(Infinity)",
        "[1].flatMap(() => new Array(2 ** 32 - 1))",
    ]);
    out_of_time(&["JSON.stringify({}, new Array(2 ** 32 - 1))"]);
}

#[test]
fn v_311_long_texts_are_compared_step_by_step() {
    out_of_time(&[
        "const s = 'x'.repeat(2 ** 22), a = [s + 'a', s + 'b'], l = []; for (let i = 0; i < 1e5; i++) l.push(a[i % 2]); l.sort(); for (;;);",
        "const s = 'x'.repeat(2 ** 22); new Array(2 ** 18).fill(s + 'b').includes(s + 'a'); for (;;);",
        "const s = 2n ** 8000000n; new Array(2 ** 18).fill(s + 1n).indexOf(s + 2n); for (;;);",
    ]);
}

#[test]
fn v_312_iterators_without_an_end() {
    let endless = |script: &str| format!("const it = [].values.call({{length: 2 ** 53 - 1}}); {script}");
    let growing = [
        "Array.from(it)",
        "Uint8Array.from(it)",
        "Uint8Array.from((function* () { for (;;) yield 1 })())",
        "await Array.fromAsync(it)",
        "await Array.fromAsync({length: 2 ** 24}); for (;;);",
        "await Promise.all(it)",
        "await Promise.race(it)",
        "Object.groupBy(it, Object)",
        "it.toArray()",
        "Array.from(Object.assign([1], {[Symbol.iterator]: () => it}))",
    ]
    .map(endless);
    out_of_memory(&growing);
    let running = [
        "new Set([1]).union({size: 1, has: Object, keys: () => it})",
        "new Set([1]).union(Object.assign(new Set([2]), {keys: () => it}))",
        "it.drop(2 ** 53 - 1).next()",
        "it.map(Object).some(Number.isNaN)",
    ]
    .map(endless);
    out_of_time(&running);
}

#[test]
fn v_313_keys_that_were_not_stored() {
    let mut scripts = Vec::new();
    for name in ["keys", "values", "entries", "freeze", "getOwnPropertyNames", "getOwnPropertyDescriptors"] {
        scripts.push(format!("Object.{name}(Object('x'.repeat(2 ** 25)))"));
        scripts.push(format!("Object.{name}(new Proxy(Object('x'.repeat(2 ** 25)), {{}}))"));
    }
    scripts.push("Object.assign({}, 'x'.repeat(2 ** 25))".to_owned());
    scripts.push("Reflect.ownKeys(Object.setPrototypeOf(new Uint8Array(2 ** 24), null))".to_owned());
    scripts
        .push("Object.keys(Object.setPrototypeOf(Object('x'.repeat(2 ** 25)), Object.prototype))".to_owned());
    refused(&scripts.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn v_314_expressions_that_match_for_ever() {
    out_of_memory(&[
        "'aaaa'.match(Object.assign(/a/g, {exec: Object}))",
        "'aaaa'.replace(Object.assign(/a/g, {exec: Object}), 'b')",
        "'aaaa'.match(Object.defineProperty(/x|a/, 'flags', {value: 'g'}))",
        "'aaaa'.match(Object.defineProperty(/x|a/, 'global', {value: true}))",
        "RegExp.prototype.exec = Object; 'aaaa'.match(/a/g)",
        "Object.defineProperty(RegExp.prototype, 'flags', {get: () => 'g'}); const r = /a/; r.lastIndex = {}; 'a'.match(r)",
        "'a'.repeat(2 ** 25).replace(/a/g, 'bb'); for (;;);",
    ]);
}

#[test]
fn v_315_searching_a_long_text_for_a_long_one() {
    let text = "const t = 'x'.repeat(2 ** 25), p = 'x'.repeat(2 ** 14);";
    let scripts = [
        "t.indexOf(p + 'y')",
        "t.lastIndexOf('y' + p)",
        "t.includes(p + 'y')",
        "t.split(p + 'y')",
        "t.replace(p + 'y', '')",
        "t.replaceAll(p + 'y', '')",
    ]
    .map(|script| format!("{text} {script}; for (;;);"));
    out_of_time(&scripts);
}

#[test]
fn v_316_marks_and_locales() {
    refused(&[
        "('a' + '\\u0301\\u0316'.repeat(2 ** 18)).normalize()",
        "Intl.getCanonicalLocales(new Array(1e6).fill(0).map((_, i) => 'en-x-a' + i))",
        "new Intl.NumberFormat({length: 2 ** 53 - 1, 0: 'en'})",
        "(5).toLocaleString(new Array(1e5).fill('en-x-a'))",
        "new Intl.Locale('en' + '-abcde'.repeat(1e5))",
    ]);
}

#[test]
fn v_365_more_arguments_than_the_stack_has_room_for() {
    let scripts = [
        "Math.max.apply(null, {length: 2 ** 26})",
        "Math.max.apply(null, new Array(2 ** 21))",
        "Reflect.apply(Math.max, null, {length: 2 ** 26})",
        "Reflect.construct(Array, {length: 2 ** 26})",
        "let n = 0; Math.max.apply(null, {get length() { return n++ ? 2 ** 26 : 3 }}); throw 1",
        "String.fromCharCode.apply(null, new Uint8Array(2 ** 24))",
    ];
    refused(&scripts);
}

#[test]
fn v_366_typed_arrays_are_made_step_by_step() {
    refused(&["new Uint8Array({length: 2 ** 25})"]);
    out_of_memory(&[
        "new Uint8Array({length: 2 ** 24, __proto__: new Proxy({}, {get: (_, key) => typeof key === 'symbol' ? undefined : 1})})",
        "new Float16Array({[Symbol.iterator]: () => ({next: Object})})",
        "new (class extends Int32Array {})({[Symbol.iterator]: () => ({next: Object})})",
    ]);
}

#[test]
fn v_367_copies_of_texts_that_are_short_to_describe() {
    let text = "const t = '\u{2603}'.repeat(2 ** 28);";
    let scripts =
        ["t.toUpperCase()", "t.toLocaleLowerCase()", "t.toWellFormed()", "t.localeCompare(t + 'a')"]
            .map(|script| format!("{text} {script}"));
    refused(&scripts);
}

#[test]
fn v_370_patterns_that_are_longer_than_any_that_compiles() {
    let text = "const t = 'x'.repeat(2 ** 26);";
    let scripts = [
        "new RegExp(t)",
        "RegExp(t)",
        "/a/.compile(t)",
        "'a'.match(t)",
        "'a'.matchAll(t)",
        "'a'.search({toString: () => t})",
        "new RegExp({[Symbol.match]: true, source: t, flags: ''})",
        "new RegExp({toString: () => t})",
    ]
    .map(|script| format!("{text} {script}"));
    refused(&scripts);
}

#[test]
fn v_750_patterns_with_many_classes_or_names() {
    let scripts = [
        r"new RegExp('[' + '\\p{L}'.repeat(1e5) + ']', 'u')",
        r"new RegExp('[' + '\\w'.repeat(40_000) + ']', 'ui')",
        r"new RegExp('[' + '[\\p{L}--\\p{Lu}]'.repeat(30_000) + ']', 'v')",
        r"new RegExp('[' + '[^a]'.repeat(10_000) + ']', 'v')",
        r"const r = new RegExp('[' + '\\w'.repeat(40_000) + ']'); new RegExp(r, { toString: () => 'ui' })",
        "'a'.match('(?<a>x)|'.repeat(60_000))",
        "/a/.compile('(?<a>x)|'.repeat(60_000))",
    ];
    refused(&scripts);
    let literals = [format!("/[{}]/u", r"\p{L}".repeat(1_000)), format!("/{}/", "(?<a>x)|".repeat(10_000))];
    all_end_with("TRANSPILE_ERROR", Stage::new(false).with_wall_ms(ENOUGH), &literals);
}

#[test]
fn v_371_words_that_the_host_would_copy() {
    let text = "const t = '\u{2603}'.repeat(2 ** 25);";
    let scripts = [
        "help(t)",
        "await searchTools(t)",
        "await getToolSchema('mcp__a__' + t)",
        "'a'.localeCompare('a\u{301}\u{316}'.repeat(1) + '\u{301}'.repeat(2 ** 17))",
    ]
    .map(|script| format!("{text} {script}"));
    refused(&scripts);
}

/// Every script gets an error at once whose message has this part. For some of them V8 has one of its own, much later.
fn refused_because(part: &str, scripts: &[impl AsRef<str>]) {
    let caught = |script: &str| format!("try {{ {script} }} catch (error) {{ return error.message }}");
    let scripts: Vec<String> = scripts.iter().map(|script| caught(script.as_ref())).collect();
    for (script, ended) in scripts.iter().zip(ends(Stage::new(false).with_wall_ms(ENOUGH), &scripts)) {
        assert!(ended.as_str().is_some_and(|message| message.contains(part)), "{script}: {ended}");
    }
}

#[test]
fn v_645_collators_compare_in_linear_time() {
    let marks =
        "const n = 2 ** 18, a = 'a' + '\\u0316\\u0300'.repeat(n), b = 'a' + '\\u0300\\u0316'.repeat(n);";
    let scripts = [
        "new Intl.Collator('en').compare(a, b)",
        "[a, b].sort(new Intl.Collator('vi').compare)",
        "new Intl.Collator().compare({toString: () => a}, {toString: () => b})",
        "Object.getOwnPropertyDescriptor(Intl.Collator.prototype, 'compare').get.call(new Intl.Collator())(a, b)",
    ]
    .map(|script| format!("{marks} {script}"));
    refused_because("64 combining marks", &scripts);
}

#[test]
fn v_646_locales_and_options_in_any_form() {
    let variants =
        "const v = Array.from({length: 2 ** 19}, (_, i) => 'a' + (1e6 + i).toString(36)).join('-');
         const fake = (locale) => Object.setPrototypeOf(locale, Intl.Locale.prototype);";
    let scripts = [
        "new Intl.Locale('en', {variants: v})",
        "new Intl.Locale('en', {variants: {toString: () => v}})",
        "new Intl.Locale({toString: () => 'en-' + v})",
        "new Intl.Locale(fake({toString: () => 'en-' + v}))",
        "new Intl.NumberFormat([{toString: () => 'en-' + v}])",
        "(5).toLocaleString([fake({toString: () => 'en-' + v})])",
        "'a'.localeCompare('b', [Object('en-' + v)])",
        "'a'.localeCompare('b', undefined, {collation: v})",
        "new Intl.DateTimeFormat('en', {timeZone: v})",
        "new Date(0).toLocaleString('en', {calendar: v})",
        "new Intl.DisplayNames('en', {type: 'calendar'}).of(v)",
    ]
    .map(|script| format!("{variants} {script}"));
    refused_because("at most 1000 here", &scripts);
    let lists = [
        "new Intl.NumberFormat(fake({length: 2 ** 32 - 2}))",
        "'a'.toLocaleUpperCase(fake({length: 2 ** 32 - 2}))",
        "[1].toLocaleString(fake({length: 2 ** 32 - 2}))",
        "Intl.getCanonicalLocales(fake({length: 2 ** 32 - 2}))",
    ]
    .map(|script| format!("{variants} {script}"));
    refused_because("4294967294 locales", &lists);
}

/// V8's own class, which is in no standard, takes texts of any length.
#[tokio::test]
async fn v_647_only_one_class_divides_texts() {
    let source = "return [typeof Intl.v8BreakIterator, typeof Intl.Segmenter]";
    assert_eq!(value(source).await, json!(["undefined", "function"]));
}

/// Each takes half a gigabyte, or more, and ends with `MEMORY_LIMIT` if V8 reads it.
#[test]
fn v_647_more_copies_of_texts_that_are_short_to_describe() {
    let text = "const t = '\u{2603}'.repeat(2 ** 28), b = 'ab'.repeat(2 ** 26);";
    let scripts = [
        "new Intl.Segmenter('th', {granularity: 'word'}).segment(t).containing(0)",
        "new Intl.Collator().compare(t, t + 'a')",
        "RegExp.escape(t)",
        "JSON.rawJSON(t)",
        "JSON.stringify(new Uint8Array(2 ** 24))",
        "Uint8Array.fromBase64(b)",
        "Uint8Array.fromHex(b)",
        "new Uint8Array(8).setFromBase64(b)",
        "new Uint8Array(8).setFromHex(b)",
    ]
    .map(|script| format!("{text} {script}"));
    refused_because(" here", &scripts);
}

/// V8 makes two lists of all elements for each, 400 to 900 MB, and is not interrupted meanwhile.
#[test]
fn v_661_typed_arrays_that_are_sorted_with_a_function() {
    let scripts = [
        "new Uint8Array(2 ** 25).sort(() => 1)",
        "new Uint8Array(2 ** 24).toSorted(() => 1)",
        "new Float16Array(2 ** 24).fill(1.5).sort(() => 1)",
        "new Float64Array(2 ** 22 + 1).fill(1.5).sort(() => 1)",
        "class A extends BigInt64Array {} new A(2 ** 22 + 1).sort(() => 1)",
        "Uint8Array.prototype.sort.call(new Int8Array(2 ** 25), () => 1)",
    ];
    refused_because("with a function on", &scripts);
}

#[tokio::test]
async fn v_661_typed_arrays_that_are_sorted_as_ever() {
    let source = "const late = []; for (const wrong of [[1], 5]) try { Uint8Array.prototype.sort.call(wrong, () => 1) } catch (error) { late.push(error.name) }
        try { new Uint8Array(1).sort(5) } catch (error) { late.push(error.name) }
        return [[...new Uint8Array([3, 1, 2]).sort()], [...new Float64Array([1, 3, 2]).sort((a, b) => b - a)], [...new Int8Array([1, 3]).toSorted((a, b) => b - a)],
            new Uint8Array(2 ** 24).sort().length, late, Uint8Array.prototype.sort.name, Uint8Array.prototype.sort.length]";
    let expected =
        json!([[1, 2, 3], [3, 2, 1], [3, 1], 16_777_216, ["TypeError", "TypeError", "TypeError"], "sort", 1]);
    assert_eq!(value(source).await, expected);
}

/// Each takes two gigabytes and ends with `MEMORY_LIMIT` if V8 writes it.
#[test]
fn v_639_typed_arrays_where_json_is_written() {
    refused(&[
        "return new Uint8Array(2 ** 24)",
        "return {rows: [new Uint8ClampedArray(2 ** 24)]}",
        "return new Int8Array(2 ** 24)",
        "emit(new Int8Array(2 ** 24))",
        "state.set('a', new Int8Array(2 ** 24))",
        "await tools.mock.echo({a: new Int8Array(2 ** 24)})",
        "await tools.mock.echo(new Uint8Array(2 ** 24))",
    ]);
}

#[test]
fn v_411_lists_that_a_language_joins() {
    refused(&[
        "new Intl.ListFormat('de').format(Array(1e5).fill('x'.repeat(1000)))",
        "new Intl.ListFormat('de').formatToParts(Array(2 ** 20).fill('x'))",
        "new Intl.ListFormat('de').format({[Symbol.iterator]: () => ({next: Object})})",
        "let n = 0; new Intl.ListFormat('de').format({[Symbol.iterator]: () => ({next: () => ({done: n > 1e5, get value() { return n++ ? 'x'.repeat(1000) : '' }})})})",
    ]);
}

#[test]
fn v_412_brackets_that_json_opens() {
    refused(&[
        "JSON.parse('['.repeat(2 ** 24))",
        "JSON.parse('{\"a\":'.repeat(2 ** 21))",
        "JSON.parse({toString: () => '['.repeat(2 ** 24) + ']'.repeat(2 ** 24)})",
        r#"JSON.parse('["\\\\",' + '['.repeat(2 ** 24))"#,
    ]);
}

/// Ordinary scripts get V8's results. The expected ones were made with V8's own functions in another program.
#[tokio::test]
async fn v_317_honest_scripts_do_not_notice() {
    let expected: Value = serde_json::from_str(include_str!("../../walk/honest.json")).unwrap();
    let found = value(include_str!("../../walk/honest.js")).await;
    for (function, expected) in expected.as_object().unwrap() {
        assert_eq!(*expected, found[function], "{function}: see honest.js for how to look at its results");
    }
}

/// A replacement looks like the function that it replaces.
#[tokio::test]
async fn v_317_stand_ins_look_like_what_they_stand_for() {
    let source = "const seen = [];
        for (const [holder, names] of [[Array.prototype, ['map', 'indexOf', 'concat', 'flat']], [Array, ['from', 'fromAsync']],
            [String.prototype, ['replace', 'normalize', 'indexOf']], [Object, ['keys', 'assign']], [JSON, ['stringify']],
            [RegExp.prototype, [Symbol.replace]], [Promise, ['all']], [Iterator.prototype, ['drop']], [Function.prototype, ['toString']]]) {
            for (const key of names) {
                const d = Object.getOwnPropertyDescriptor(holder, key);
                const { name, length } = d.value, text = `function ${name}() { [native code] }`;
                seen.push([name, length, 'prototype' in d.value, d.writable, d.enumerable, d.configurable, `${d.value}` === text]);
            }
        }
        seen.push([Proxy.name, Proxy.length, 'prototype' in Proxy, new Intl.Collator() instanceof Intl.Collator,
            Intl.Collator.prototype.constructor === Intl.Collator, new Proxy([], {}).length, `${(a) => a}, ${Uint8Array}`]);
        seen.push([Proxy, RegExp, ArrayBuffer, Intl.Collator].every((f) => `${f}`.includes(`function ${f.name}() {`)));
        return seen";
    let function = |name: &str, length: u64| json!([name, length, false, true, false, true, true]);
    let expected = json!([
        function("map", 1),
        function("indexOf", 1),
        function("concat", 1),
        function("flat", 0),
        function("from", 1),
        function("fromAsync", 1),
        function("replace", 2),
        function("normalize", 0),
        function("indexOf", 1),
        function("keys", 1),
        function("assign", 2),
        function("stringify", 3),
        function("[Symbol.replace]", 2),
        function("all", 1),
        function("drop", 1),
        function("toString", 0),
        ["Proxy", 2, false, true, true, 0, "(a)=>a, function Uint8Array() { [native code] }"],
        true,
    ]);
    assert_eq!(value(source).await, expected);
}
