//! Attacks of docs/threats.md, groups JC, JM, JE and BV. Each test is named by its number there. Those that
//! may take a process down (`CP` there) run in a child, with an honest run beside and one after them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cx::{ErrorCode, ExecuteResult, Language, Limits, Script};
use serde_json::{Value, json};

use crate::support::canary::{canary, survives};
use crate::support::stopwatch::{LATE, Stopwatch};
use crate::support::{WEDGE, executor, failure, value, wait_until};

const ONE_SECOND: Limits = Limits { wall_time: Duration::from_secs(1), ..DEFAULT };
const DEFAULT: Limits = Limits {
    wall_time: Duration::from_secs(20),
    cpu_time: Duration::from_secs(10),
    fuel: None,
    memory_bytes: 64 << 20,
    tool_calls: 1_000,
    calls_in_flight: 64,
    source_bytes: 1 << 20,
    argument_bytes: 8 << 20,
    result_bytes: 16 << 20,
    output_bytes: 1 << 20,
    answer_time: Duration::from_secs(20),
    paused_time: Duration::from_secs(20),
    questions: 100,
    written_bytes: 1 << 20,
    created_files: 100,
    file_bytes: 1 << 20,
};

/// Runs an attack, and then a script that must find nothing of it.
async fn attack(source: &str, limits: Limits) -> (ExecuteResult, crate::support::mock::Mock) {
    let (executor, mock) = executor();
    let result = executor.run(Script::typescript(source).limits(limits)).await.unwrap();
    let clean = executor
        .run_ts("return [typeof leaked, ({}).leaked === undefined, [1].map((x) => x + 1), JSON.stringify({a: 1})]")
        .await
        .unwrap();
    assert_eq!(clean.value(), Some(&json!(["undefined", true, [2], "{\"a\":1}"])), "after {source}");
    (result, mock)
}

/// The attack ends with this code, and not much later than its deadline.
async fn ends(source: &str, limits: Limits, code: ErrorCode) -> crate::support::mock::Mock {
    let stopwatch = Stopwatch::start();
    let (result, mock) = attack(source, limits).await;
    assert_eq!(result.error().map(|error| error.code), Some(code), "{source}: {}", result.to_json());
    stopwatch.promise(limits.wall_time + LATE, source);
    mock
}

// --- JC: CPU ------------------------------------------------------------------------------------

#[tokio::test]
async fn jc_001_plain_loop() {
    ends("for (;;) {}", ONE_SECOND, ErrorCode::Timeout).await;
}

#[tokio::test]
async fn jc_002_loop_that_catches() {
    ends("for (;;) { try { for (;;) {} } catch {} finally { for (;;) {} } }", ONE_SECOND, ErrorCode::Timeout)
        .await;
}

#[tokio::test]
async fn jc_003_tool_call_in_finally() {
    let mock =
        ends("try { for (;;) {} } finally { await mock.count() }", ONE_SECOND, ErrorCode::Timeout).await;
    assert_eq!(mock.calls.load(Ordering::SeqCst), 0);
    // V8 does not run that block. It does run what describes an error, again after the termination.
    let source = "let times = 0;
        Error.prepareStackTrace = () => {
            if (times++ === 0) for (;;) {}
            console.log(call_tool('mock', 'count', {}).error?.code);
            return '';
        };
        null.x";
    let (result, mock) = attack(source, ONE_SECOND).await;
    assert_eq!(result.error().map(|error| error.code), Some(ErrorCode::Timeout), "{}", result.to_json());
    assert_eq!((&*result.printed(), mock.calls.load(Ordering::SeqCst)), ("CANCELLED", 0));
    assert_eq!(result.usage.tool_calls, 0, "{}", result.to_json());
}

#[tokio::test]
async fn jc_004_microtask_flood() {
    // Each turn leaves nothing behind, or a promise that waits for the next turn.
    let source = "const f = () => { Promise.resolve().then(f) }; f(); await new Promise(() => {})";
    ends(source, ONE_SECOND, ErrorCode::Timeout).await;
    let source = "const f = () => Promise.resolve().then(f); f(); await new Promise(() => {})";
    ends(source, DEFAULT, ErrorCode::MemoryLimit).await;
}

#[tokio::test]
async fn jc_005_async_generator_for_ever() {
    ends(
        "async function* g() { for (;;) yield 1 } for await (const _ of g());",
        ONE_SECOND,
        ErrorCode::Timeout,
    )
    .await;
}

#[tokio::test]
async fn jc_006_promise_that_never_settles() {
    let (code, message) = failure("await new Promise(() => {})").await;
    assert_eq!(code, ErrorCode::RuntimeError);
    assert!(message.contains("never settle"));
}

#[tokio::test]
async fn jc_007_catastrophic_regex() {
    ends("/^(a+)+$/.test('a'.repeat(40) + '!')", ONE_SECOND, ErrorCode::Timeout).await;
}

#[tokio::test]
async fn jc_008_bigint_work() {
    let source =
        "const x = 3n ** (2n ** 20n); let digits = 0; for (;;) digits += x.toString().length + (x * x > x)";
    ends(source, ONE_SECOND, ErrorCode::Timeout).await;
}

/// The guards refuse these; `jc_009_without_guards` gets past the guards.
#[test]
fn jc_009_uninterruptible_generic_builtins() {
    let names = "['indexOf', 'includes', 'lastIndexOf', 'join', 'reverse', 'some', 'flat', 'splice', 'copyWithin', 'unshift', 'fill']";
    let source = format!(
        "const names = [];
         for (const name of {names}) {{
             try {{ Array.prototype[name].call({{length: 2 ** 53 - 1}}, 1) }} catch (error) {{ names.push(error.name) }}
         }}
         return names.length"
    );
    let report = canary(&source, 5_000, 64);
    assert_eq!(report["hostile"]["value"], 11, "{report:#}");
    assert_eq!(report["lost"], 0);
}

#[test]
fn jc_009_without_guards() {
    for source in [WEDGE, &WEDGE.replace("indexOf", "fill")] {
        let stopwatch = Stopwatch::start();
        let report = canary(source, 1_000, 64);
        assert_eq!(report["hostile"]["error"]["code"], "TIMEOUT", "{source}: {report:#}");
        let took = Duration::from_millis(report["hostileMs"].as_u64().unwrap());
        stopwatch.promise_of(took, Duration::from_secs(1) + LATE, source);
        assert_eq!(report["lost"], 1, "{source}: {report:#}");
    }
}

#[test]
fn jc_010_the_same_with_huge_arrays() {
    let source = "
        const attempts = [
            () => new Array(2 ** 32 - 1).indexOf(1),
            () => new Array(2 ** 32 - 1).some((x) => 0),
            () => new Array(2 ** 32 - 1).fill(0),
            () => Array.from({length: 2 ** 32 - 1}),
            () => Uint8Array.from({length: 2 ** 31}),
            () => String.raw({raw: {length: 2 ** 53 - 1}}),
            () => 'a'.repeat(2 ** 28).replace(/a/g, 'bb'),
        ];
        return attempts.map((attempt) => { try { attempt(); return 'done' } catch (error) { return error.name } })
    ";
    let report = canary(source, 5_000, 64);
    assert_eq!(report["hostile"]["value"], Value::from(vec!["RangeError"; 7]), "{report:#}");
}

/// More hung workers than an engine may have: it refuses further runs and says so.
#[tokio::test]
async fn jc_011_several_hung_workers_at_once() {
    let (executor, _) = executor();
    let limits = Limits { wall_time: Duration::from_millis(300), ..DEFAULT };
    let runs = (0..3).map(|_| executor.run(Script::typescript(WEDGE).limits(limits)));
    for result in futures::future::join_all(runs).await {
        assert_eq!(result.unwrap().error().unwrap().code, ErrorCode::Timeout);
    }
    assert_eq!(executor.pool_stats(Language::TypeScript).hung, 3);
    let refused = executor.run_ts("return 1").await.unwrap();
    assert_eq!(refused.error().unwrap().code, ErrorCode::EngineUnavailable);
}

#[test]
fn jc_012_error_that_hangs_while_it_is_formatted() {
    survives(
        "throw { get message() { for (;;) {} }, get stack() { for (;;) {} }, toString() { for (;;) {} } }",
        "RUNTIME_ERROR",
        400,
    );
    survives(
        "throw Object.defineProperty(new Error('x'), 'message', { get() { for (;;) {} } })",
        "TIMEOUT",
        400,
    );
}

#[test]
fn jc_013_prepare_stack_trace_loops() {
    survives("Error.prepareStackTrace = () => { for (;;) {} }; null.x", "TIMEOUT", 400);
}

#[test]
fn jc_014_deep_recursion() {
    for source in [
        "const f = () => f() + 1; f()",
        "const a = { toJSON() { return JSON.stringify(this) } }; JSON.stringify(a)",
        "const a = { get b() { return this.b } }; a.b",
        "const p = new Proxy({}, { get(t, k, r) { return r[k] } }); p.x",
        "const r = (k, v) => JSON.parse('[1]', r); JSON.parse('[1]', r)",
    ] {
        let report = canary(source, 5_000, 64);
        assert_eq!(report["hostile"]["error"]["name"], "RangeError", "{source}: {report:#}");
    }
}

#[test]
fn jc_015_parser_overflow_in_the_transpiler() {
    let repeated = |text: &str, count: usize| text.repeat(count);
    // Nesting with type arguments exceeds the bound on work before the bound on depth.
    let types = format!("type T={}", repeated("A<", 100_000));
    assert_eq!(canary(&types, 5_000, 64)["hostile"]["error"]["code"], "TRANSPILE_ERROR");
    for source in [
        repeated("(", 200_000),
        repeated("[", 200_000),
        format!("1{}", repeated("+1", 400_000)),
        repeated("a?", 100_000),
        repeated("`${", 100_000),
        repeated("!", 500_000),
        repeated("a=>", 200_000),
        repeated("if(a){}else ", 50_000),
        repeated("{", 500_000),
    ] {
        let report = canary(&source, 5_000, 64);
        assert_eq!(report["hostile"]["error"]["code"], "SYNTAX_ERROR", "{}…: {report:#}", &source[..20]);
    }
}

#[tokio::test]
async fn jc_016_parser_overflow_in_v8() {
    for source in ["eval('('.repeat(1e6))", "new Function('1' + '+1'.repeat(1e6))"] {
        assert_eq!(failure(source).await.0, ErrorCode::RuntimeError, "{source}");
    }
}

#[tokio::test]
async fn jc_017_eval_of_huge_source() {
    let (_, message) = failure("Function('x=1;'.repeat(2 ** 22))").await;
    assert!(message.contains("Code generation from strings disallowed"), "{message}");
}

#[tokio::test]
async fn jc_018_atomics_wait() {
    let source = "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)";
    assert_eq!(failure(source).await, (ErrorCode::RuntimeError, "Atomics is not defined".to_owned()));
}

#[tokio::test]
async fn jc_020_timer_overflow() {
    let source = "
        let fired = 0;
        for (const delay of [2 ** 31, 2 ** 53, Infinity]) setTimeout(() => fired++, delay);
        await new Promise((resolve) => setTimeout(resolve, 20));
        return fired";
    assert_eq!(value(source).await, json!(0));
}

#[tokio::test]
async fn jc_021_slow_result_serialization() {
    ends("return { toJSON() { for (;;) {} } }", ONE_SECOND, ErrorCode::Timeout).await;
    ends("return new Proxy({}, { ownKeys() { for (;;) {} } })", ONE_SECOND, ErrorCode::Timeout).await;
}

#[tokio::test]
async fn jc_022_webassembly() {
    let (_, message) = failure("new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]))").await;
    assert_eq!(message, "WebAssembly is not defined");
}

/// Many runs that end just before their deadline: the deadline of one never stops the next.
#[tokio::test]
async fn jc_023_late_terminate_hits_no_other_run() {
    let (executor, _) = executor();
    let limits = Limits { wall_time: Duration::from_millis(20), ..DEFAULT };
    for _ in 0..30 {
        let edge = "const end = Date.now() + 19; while (Date.now() < end); return 1";
        let _ = executor.run(Script::typescript(edge).limits(limits)).await.unwrap();
        let next = executor.run_ts("return 1").await.unwrap();
        assert_eq!(next.value(), Some(&json!(1)), "{}", next.to_json());
    }
}

/// The deadline reaches the call that the script waits for.
#[tokio::test]
async fn jc_025_idle_isolate_at_the_deadline() {
    let mock = ends("await mock.hang()", ONE_SECOND, ErrorCode::Timeout).await;
    wait_until(|| mock.cancelled.load(Ordering::SeqCst) == 1).await;
}

#[tokio::test]
async fn jc_026_endless_loops_do_not_starve_an_honest_run() {
    let (executor, _) = executor();
    let limits = Limits { wall_time: Duration::from_secs(3), ..DEFAULT };
    let loops: Vec<_> = (0..6)
        .map(|_| {
            let executor = executor.clone();
            tokio::spawn(async move { executor.run(Script::typescript("for (;;);").limits(limits)).await })
        })
        .collect();
    let honest = executor.run_ts("return (await mock.sleep({ms: 5})).ms").await.unwrap();
    assert_eq!(honest.value(), Some(&json!(5)));
    assert!(
        !loops.iter().all(tokio::task::JoinHandle::is_finished),
        "the endless loops ran at the same time"
    );
    for endless in loops {
        let result = endless.await.unwrap().unwrap();
        assert_eq!(result.error().unwrap().code, ErrorCode::Timeout);
    }
}

// --- JM: memory ---------------------------------------------------------------------------------

#[test]
fn jm_027_string_doubling() {
    survives("let s = 'x'; for (;;) s += s", "RUNTIME_ERROR", 800);
}

#[test]
fn jm_028_growth_of_every_kind() {
    for source in [
        "const a = []; for (;;) a.push({})",
        "const m = new Map(); for (let i = 0; ; i++) m.set(i, {})",
        "const s = new Set(); for (let i = 0; ; i++) s.add({})",
        "const a = []; for (let i = 0; ; i++) a.push(() => i)",
        "const a = []; for (;;) a.push(new Promise(() => {}))",
        "const a = []; for (;;) a.push(new Error('x'))",
    ] {
        let report = canary(source, 10_000, 64);
        assert_eq!(report["hostile"]["error"]["code"], "MEMORY_LIMIT", "{source}: {report:#}");
        assert!(report["peakMegabytes"].as_u64().unwrap() < 500, "{source}: {report:#}");
    }
}

#[test]
fn jm_029_survive_by_catching() {
    let source = "const a = []; for (;;) try { for (;;) a.push(new Array(1e5).fill(1)) } catch {}";
    let report = canary(source, 10_000, 64);
    assert_eq!(report["hostile"]["error"]["code"], "MEMORY_LIMIT", "{report:#}");
}

/// Single allocations far beyond the limit, each of which aborts a process that is not prepared.
#[test]
fn jm_030_to_036_large_single_allocations() {
    for source in [
        "new Array(32 * 2 ** 20).fill(0)",
        r#"/x$/.test("x".repeat(2 ** 29 - 24))"#,
        r#"/x$/.test("\u0100".repeat(2 ** 29 - 24))"#,
        r#""a".repeat(2 ** 25).split("")"#,
        r#"JSON.parse("[" + "1,".repeat(2 ** 24) + "1]")"#,
        "let a = [1]; for (;;) a = a.concat(a)",
        "const o = {}; for (let i = 0; ; i++) o['k' + i] = i",
    ] {
        survives(source, "MEMORY_LIMIT", 1_500);
    }
    survives(r#"eval("[" + "1,".repeat(2 ** 25) + "1]")"#, "RUNTIME_ERROR", 1_500);
}

#[test]
fn jm_037_fill_on_an_array_like() {
    let source = "Array.prototype.fill.call({length: 2 ** 24}, 0)";
    survives(source, "MEMORY_LIMIT", 2_600);
}

#[test]
fn jm_038_spread_of_something_huge() {
    for source in ["[...Array(2 ** 32 - 1)]", "[...new Intl.Segmenter().segment('a'.repeat(2 ** 22))]"] {
        survives(source, "MEMORY_LIMIT", 1_500);
    }
}

#[test]
fn jm_039_array_buffers() {
    survives("const k = []; for (;;) k.push(new ArrayBuffer(2 ** 24).slice(0))", "MEMORY_LIMIT", 320);
    let report = canary("const k = []; for (;;) k.push(new Uint8Array(8))", 20_000, 64);
    assert_eq!(report["hostile"]["error"]["code"], "MEMORY_LIMIT", "{report:#}");
    assert!(report["peakMegabytes"].as_u64().unwrap() < 500, "{report:#}");
}

#[tokio::test]
async fn jm_040_resizable_buffers() {
    for source in [
        "new ArrayBuffer(0, { maxByteLength: 2 ** 32 })",
        "new (new Uint8Array(1).buffer.constructor)(0, { maxByteLength: 2 ** 32 })",
        "class B extends ArrayBuffer {} new B(0, { maxByteLength: 2 ** 32 })",
        "let n = 0; new ArrayBuffer(0, { get maxByteLength() { return n++ ? 2 ** 32 : 1 } })",
        "Reflect.construct(ArrayBuffer, [0, { maxByteLength: 8 }], Object)",
    ] {
        let (code, message) = failure(source).await;
        assert_eq!(code, ErrorCode::RuntimeError);
        assert!(message.contains("resizable"), "{source}: {message}");
    }
    let source = "const b = new ArrayBuffer(8); return [b instanceof ArrayBuffer, b.constructor === ArrayBuffer, ArrayBuffer.name, b.resize === undefined, ArrayBuffer.isView(new DataView(b)), new (class extends ArrayBuffer {})(4).byteLength]";
    assert_eq!(value(source).await, json!([true, true, "ArrayBuffer", true, true, 4]));
}

#[tokio::test]
async fn jm_041_webassembly_memory() {
    assert_eq!(failure("new WebAssembly.Memory({ initial: 16384 })").await.1, "WebAssembly is not defined");
}

#[tokio::test]
async fn jm_042_untouched_buffers() {
    let source = "const k = []; try { for (;;) k.push(new ArrayBuffer(2 ** 30)) } catch (e) { return [k.length, e.name] }";
    assert_eq!(value(source).await, json!([0, "RangeError"]));
}

#[test]
fn jm_043_clone_and_transfer() {
    let source = "
        const keep = [];
        let buffer = new ArrayBuffer(2 ** 20);
        for (let i = 0; i < 200; i++) {
            buffer = structuredClone(buffer, { transfer: [buffer] }).transfer(2 ** 20);
            structuredClone({ buffer });
        }
        try { for (;;) keep.push(structuredClone(buffer)) } catch (error) { return [buffer.byteLength, error.name] }
    ";
    let report = canary(source, 10_000, 64);
    assert_eq!(report["hostile"]["value"], json!([1 << 20, "RangeError"]), "{report:#}");
}

#[test]
fn jm_044_console_flood() {
    let report = canary("for (;;) console.log('x'.repeat(1e6))", 1_000, 64);
    assert_eq!(report["hostile"]["error"]["code"], "TIMEOUT", "{report:#}");
    assert!(report["hostile"]["outputBytesDropped"].as_u64().unwrap() > 1_000_000, "{report:#}");
    assert!(report["hostile"]["output"].as_str().unwrap().len() <= 1 << 20);
    assert!(report["peakMegabytes"].as_u64().unwrap() < 400, "{report:#}");
}

#[test]
fn jm_045_intern_tables() {
    survives("for (let i = 0; ; i++) Symbol.for('k' + i)", "MEMORY_LIMIT", 500);
    // Expressions that nothing refers to are collected.
    survives("for (let i = 0; ; i++) new RegExp('a' + i).test('a')", "TIMEOUT", 500);
}

#[tokio::test]
async fn jm_046_huge_tool_result() {
    let source = "try { await mock.big({ bytes: 100e6 }) } catch (e) { return e.code }";
    assert_eq!(value(source).await, json!("RESULT_TOO_LARGE"));
}

#[test]
fn jm_047_many_medium_results() {
    let source = "const all = await Promise.allSettled(Array.from({length: 200}, () => mock.big({ bytes: 7e6 }))); return all.length";
    let report = canary(source, 10_000, 64);
    assert_eq!(report["hostile"]["error"]["code"], "MEMORY_LIMIT", "{report:#}");
    assert!(report["peakMegabytes"].as_u64().unwrap() < 2_000, "{report:#}");
}

#[test]
fn jm_048_huge_argument() {
    let source = "try { await mock.echo({ s: 'x'.repeat(2 ** 24) }) } catch (e) { return e.code }";
    let report = canary(source, 10_000, 128);
    assert_eq!(report["hostile"]["value"], "INVALID_ARGUMENTS", "{report:#}");
}

#[test]
fn jm_049_huge_return() {
    let report = canary("return 'x'.repeat(2 ** 25)", 10_000, 256);
    assert_eq!(report["hostile"]["error"]["code"], "RESULT_TOO_LARGE", "{report:#}");
    assert!(report["peakMegabytes"].as_u64().unwrap() < 500, "{report:#}");
    let report = canary("return Array(256).fill('x'.repeat(2 ** 20))", 30_000, 512);
    assert_eq!(report["hostile"]["error"]["code"], "RESULT_TOO_LARGE", "{report:#}");
    assert!(report["peakMegabytes"].as_u64().unwrap() < 1_000, "{report:#}");
}

#[test]
fn jm_051_host_works_under_an_exhausted_budget() {
    let source = "
        const keep = []; try { for (;;) keep.push(new ArrayBuffer(2 ** 20)) } catch {}
        const result = await mock.echo({ a: [1, 2, 3] });
        let encoded; try { encoded = new TextEncoder().encode('x'.repeat(100_000)).length } catch (e) { encoded = e.name }
        return [result, encoded, crypto.randomUUID().length]";
    let report = canary(source, 10_000, 64);
    let value = &report["hostile"]["value"];
    assert_eq!(value[0], json!({ "a": [1, 2, 3] }), "{report:#}");
    assert_eq!(value[2], 36, "{report:#}");
}

#[tokio::test]
async fn jm_052_memory_returns() {
    let (executor, _) = executor();
    let limits = Limits { memory_bytes: 16 << 20, ..DEFAULT };
    let resident = || {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap()
    };
    let mut after_warm_up = 0.0;
    for round in 0..60 {
        let script = Script::typescript("const a = []; for (;;) a.push({})").limits(limits);
        let result = executor.run(script).await.unwrap();
        assert_eq!(result.error().unwrap().code, ErrorCode::MemoryLimit);
        if round == 20 {
            after_warm_up = resident();
        }
    }
    let grown = resident() / after_warm_up;
    assert!(grown < 1.5, "resident memory grew by {grown}");
}

// --- JE: escape ---------------------------------------------------------------------------------

#[tokio::test]
async fn je_053_globals_are_the_checked_in_list() {
    let (executor, _) = (cx::Executor::builder().build().unwrap(), ());
    let result = executor.run_ts("return Object.getOwnPropertyNames(globalThis).sort()").await.unwrap();
    let names = result.value().unwrap().as_array().unwrap().iter().map(|name| name.as_str().unwrap());
    let expected: Vec<&str> = include_str!("../../../js/globals.txt").lines().collect();
    assert_eq!(names.collect::<Vec<_>>(), expected);
    let source = "return [Deno, process, require, __bootstrap, __cx, WebAssembly, SharedArrayBuffer, fetch, gc].map(String)";
    assert_eq!(failure(source).await.1, "Deno is not defined");
}

#[tokio::test]
async fn je_054_constructor_chain() {
    let source = "
        const attempts = [
            () => callMCPTool.constructor('return this')(),
            () => callMCPTool.constructor.constructor('return this')(),
            () => (async () => {}).constructor('return import(\"fs\")')(),
            () => Reflect.getPrototypeOf(function* () {}).constructor('yield 1')(),
            () => console.log.constructor('return 1')(),
            () => tools.mock.echo.constructor('return 1')(),
            () => setTimeout.constructor('return 1')(),
            () => ArrayBuffer.constructor('return 1')(),
            () => eval('1'),
            () => (0, eval)('globalThis.leaked = 1'),
            () => setTimeout('globalThis.leaked = 1', 0),
        ];
        return attempts.map((attempt) => { try { attempt(); return 'ran' } catch (e) { return e.name } })";
    let (result, _) = attack(source, DEFAULT).await;
    // The last one asks the timer for a string, and the timer takes none.
    let expected = [vec!["EvalError"; 10], vec!["TypeError"]].concat();
    assert_eq!(result.value(), Some(&json!(expected)));
}

#[tokio::test]
async fn je_055_dynamic_import_of_every_scheme() {
    let source = r#"
        const names = [];
        for (const u of ["file:///etc/passwd", "https://x/", "data:text/javascript,1", "blob:x", "node:path", "npm:x",
                         "jsr:x", "ext:core/mod.js", "ext:core/ops", "ext:cx/50_tools.js", "ext:deno_web/00_url.js",
                         "./x.js", "", "\0", "mcp:nope", "mcp:", "mcp:../mock", "mcp:mock?x"]) {
            try { await import(u); names.push("imported " + u) } catch (error) { names.push(error.name) }
        }
        return [...new Set(names)]"#;
    assert_eq!(value(source).await, json!(["TypeError"]));
}

#[tokio::test]
async fn je_056_static_import_and_export() {
    for source in [
        "import x from 'file:///etc/passwd'; return x",
        "export * from 'https://x/'",
        "import 'node:child_process'",
        "console.log('ran'); import y from './y.js'; return y",
    ] {
        let (result, _) = attack(source, DEFAULT).await;
        assert_eq!(result.error().unwrap().code, ErrorCode::SyntaxError, "{source}");
        assert_eq!(result.printed(), "", "{source}: nothing runs before");
    }
}

#[tokio::test]
async fn je_057_import_attributes_and_phases() {
    for source in [
        "await import('mcp:mock', { with: { type: 'json' } })",
        "await import('mcp:mock', { with: { type: 'text' } })",
        "await import('mcp:mock', { with: { type: 'bytes' } })",
        "await import.source('x.wasm')",
        "await import.source('mcp:mock')",
        "import source w from 'x.wasm'; w",
        "import defer * as n from 'x'; n",
    ] {
        let (result, _) = attack(source, DEFAULT).await;
        let error = result.error().unwrap_or_else(|| panic!("{source}: {}", result.to_json()));
        assert_eq!(error.code, ErrorCode::TranspileError, "{source}: {error}");
        assert!(error.message.ends_with("are not available"), "{source}: {error}");
    }
}

#[tokio::test]
async fn je_058_source_map_pull() {
    let (result, _) = attack("//# sourceMappingURL=file:///etc/passwd\nthrow new Error('x')", DEFAULT).await;
    let error = result.error().unwrap();
    assert_eq!(error.stack.as_deref(), Some("Error: x\n    at script.ts:2:7"));
}

#[tokio::test]
async fn je_059_console_has_no_other_way_out() {
    let source = "
        const found = new Set();
        for (let object = console; object; object = Object.getPrototypeOf(object)) {
            for (const key of Reflect.ownKeys(object)) found.add(String(key));
        }
        return [typeof console.constructor, [...found].filter((key) => /print|core|op_/i.test(key))]";
    assert_eq!(value(source).await, json!(["function", []]));
}

#[tokio::test]
async fn je_062_poisoned_primordials() {
    let source = "
        let call = 'replaced';
        try { Function.prototype.call = () => 'pwn' } catch (error) { call = error.name }
        try { Object.defineProperty(Function.prototype, 'call', { value: () => 'pwn' }) } catch (error) { call += error.name }
        const own: any = () => {}; own.call = () => 'own';
        Array.prototype.push = Map.prototype.get = Promise.prototype.then = JSON.stringify = JSON.parse =
            Function.prototype.apply = Object.keys = Reflect.apply = () => 'pwn';
        Array.prototype[Symbol.iterator] = function* () { yield 'pwn' };
        const result = await mock.echo({ a: 1 });
        let denied; try { await callMCPTool('mcp__nope__x') } catch (e) { denied = e.code }
        return { result, denied, blocking: call_tool('mock', 'echo', { b: 2 }), call, own: own.call() }";
    let (result, _) = attack(source, DEFAULT).await;
    assert_eq!(
        result.value(),
        Some(&json!({
            "result": { "a": 1 },
            "denied": "TOOL_NOT_FOUND",
            "blocking": { "ok": true, "result": { "b": 2 } },
            "call": "TypeErrorTypeError",
            "own": "own",
        })),
        "{}",
        result.to_json()
    );
}

#[tokio::test]
async fn je_063_thenable_hijack() {
    let source = "Object.prototype.then = function (resolve) { resolve({ server: 'denied' }) }; return await mock.echo({ a: 1 })";
    let (_, mock) = attack(source, ONE_SECOND).await;
    assert!(mock.calls.load(Ordering::SeqCst) <= 1);
}

#[tokio::test]
async fn je_064_065_prototype_setters() {
    let source = "
        let seen = 0;
        for (const name of ['name', 'server', 'tool', 'kind', 'value', 'arguments', 'message', 'code', '0']) {
            Object.defineProperty(Object.prototype, name, { __proto__: null, set(v) { seen++ }, get() {}, configurable: true });
        }
        Object.defineProperty(Array.prototype, '0', { __proto__: null, set(v) { seen++ }, configurable: true });
        const result = await callMCPTool('mcp__mock__echo', { a: 1 });
        const blocking = call_tool('mock', 'echo', { b: 2 });
        return { __proto__: null, a: result.a, ok: blocking.ok, seen }";
    let (result, _) = attack(source, DEFAULT).await;
    let value = result.value().unwrap_or_else(|| panic!("{}", result.to_json()));
    assert_eq!(*value, json!({ "a": 1, "ok": true, "seen": 0 }));
}

#[tokio::test]
async fn je_066_call_sites() {
    let source = "
        Error.prepareStackTrace = (error, sites) => sites.map((site) => [String(site.getThis?.()), typeof site.getFunction?.(), site.getFileName()]);
        return await new Promise((resolve) => setTimeout(() => resolve(new Error().stack), 1))";
    let (result, _) = attack(source, DEFAULT).await;
    let text = result.to_json().to_string();
    assert!(!text.contains("/root") && !text.contains("/home") && !text.contains("CallSite"), "{text}");
}

#[tokio::test]
async fn je_067_stack_text() {
    let (result, _) = attack("function f() { throw new Error('x') }\nf()", DEFAULT).await;
    let stack = result.error().unwrap().stack.clone().unwrap();
    assert_eq!(stack, "Error: x\n    at f (script.ts:1:22)\n    at script.ts:2:1");
    // A stack that the script wrote is shown, and names no line that does not exist.
    let written = "throw Object.assign(new Error('x'), { stack: 'Error: x\\n    at script.ts:9:1' })";
    let (result, _) = attack(written, DEFAULT).await;
    let error = result.error().unwrap();
    assert_eq!((error.line, error.stack.as_deref()), (None, Some("Error: x\n    at script.ts:9:1")));
}

#[tokio::test]
async fn je_068_pollution_across_runs() {
    let (executor, _) = executor();
    for _ in 0..6 {
        let source = "globalThis.x = 1; Object.prototype.y = 2; Array.prototype.map = null; Object.prototype.toJSON = () => 'z'";
        executor.run_ts(source).await.unwrap();
        let next =
            executor.run_ts("return [typeof x, ({}).y === undefined, [1].map((v) => v), {}]").await.unwrap();
        assert_eq!(next.value(), Some(&json!(["undefined", true, [1], {}])));
    }
}

#[tokio::test]
async fn je_069_070_work_after_the_end() {
    let source = "
        setTimeout(() => mock.count(), 20);
        new FinalizationRegistry(() => mock.count()).register({}, 0);
        return 1";
    let (executor, mock) = executor();
    assert_eq!(executor.run_ts(source).await.unwrap().value(), Some(&json!(1)));
    for _ in 0..10 {
        executor.run_ts("await new Promise((r) => setTimeout(r, 10))").await.unwrap();
    }
    assert_eq!(mock.calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn je_071_wrapper_break_out() {
    for source in
        ["})(); globalThis.leaked = 1; (async () => {", "}; leaked = 1; {", "/*", "`", "return 1 }", "*/ 1"]
    {
        let (result, _) = attack(source, DEFAULT).await;
        assert_eq!(
            result.error().map(|error| error.code),
            Some(ErrorCode::SyntaxError),
            "{source}: {}",
            result.to_json()
        );
    }
    for (source, expected) in
        [("1 //", 1), ("'use strict'; 2", 2), ("3 /* x */", 3), ("4;;;", 4), ("5\n//# x", 5)]
    {
        assert_eq!(value(source).await, json!(expected), "{source}");
    }
}

#[tokio::test]
async fn je_072_nothing_runs_during_transpilation() {
    for (source, code, message) in [
        ("enum E { A = require('fs') }", ErrorCode::RuntimeError, "require is not defined"),
        (
            "import x = require('fs'); x",
            ErrorCode::TranspileError,
            "`import … = require(…)` is not available",
        ),
        (
            "function f(@require('fs') x) {}",
            ErrorCode::TranspileError,
            "decorators of parameters are not available",
        ),
    ] {
        assert_eq!(failure(source).await, (code, message.to_owned()), "{source}");
    }
    let source = "/// <reference path='/etc/passwd' />\nthrow new Error('ran')";
    assert_eq!(failure(source).await, (ErrorCode::RuntimeError, "ran".to_owned()));
}

#[tokio::test]
async fn je_073_074_debugger_and_realms() {
    let source = "debugger; return [typeof ShadowRealm, typeof Worker, typeof importScripts]";
    assert_eq!(value(source).await, json!(["undefined", "undefined", "undefined"]));
}

/// Threat 76: every string that can be reached from the global object, walked.
#[tokio::test]
async fn je_076_no_secret_is_in_reach() {
    let source = r#"
        const seen = new Set(); const texts = []; const open = [globalThis];
        while (open.length) {
            const object = open.pop();
            if ((typeof object !== "object" && typeof object !== "function") || object === null || seen.has(object)) continue;
            seen.add(object);
            if (typeof object === "function") texts.push(Function.prototype.toString.call(object));
            try { open.push(Object.getPrototypeOf(object)) } catch {}
            let keys = []; try { keys = Reflect.ownKeys(object) } catch {}
            for (const key of keys) {
                let descriptor; try { descriptor = Object.getOwnPropertyDescriptor(object, key) } catch {}
                if (!descriptor) continue;
                if (typeof descriptor.value === "string") texts.push(descriptor.value);
                open.push(descriptor.value, descriptor.get, descriptor.set);
            }
        }
        const all = texts.join("\n");
        return [seen.size > 500, ["HOME", "PATH=", "/root", "/home/", "/usr/", "Bearer", "op_panic"].filter((word) => all.includes(word))]"#;
    assert_eq!(value(source).await, json!([true, []]));
}

#[test]
fn je_077_unhandled_rejections() {
    let source = "Promise.reject(new Error('x')); Promise.reject(null); new Promise(() => { throw Symbol() }); await null; await mock.echo(); return 1";
    let report = canary(source, 5_000, 64);
    assert_eq!(report["hostile"]["value"], 1, "{report:#}");
    let output = report["hostile"]["output"].as_str().unwrap();
    assert_eq!(output.matches("was rejected").count(), 3, "{output}");
}

#[tokio::test]
async fn je_078_tool_handle_forgery() {
    let mock = crate::support::mock::Mock::default();
    let executor = cx::Executor::builder().dispatcher(mock.clone()).deny(["mock.count"]).build().unwrap();
    let source = "
        const codes = [];
        const attempts = [
            () => callMCPTool('mcp__mock__count', {}, { allow: ['*'] }),
            () => callMCPTool.call({ allowed: true }, 'mcp__mock__count'),
            () => mock.count.call({ allowed: true }),
            () => Reflect.apply(mock.count, tools, []),
            () => mock['count\\0'](), () => mock[' count'](), () => mock.COUNT(), () => mock['ｃount'](),
            () => tools.__proto__.count(),
        ];
        for (const attempt of attempts) { try { await attempt(); codes.push('called') } catch (e) { codes.push(e.code ?? e.name) } }
        return codes";
    let result = executor.run_ts(source).await.unwrap();
    let codes = result.value().unwrap_or_else(|| panic!("{}", result.to_json())).as_array().unwrap();
    assert!(codes.iter().all(|code| code != "called"), "{codes:?}");
    assert_eq!(
        codes[..4],
        // A call has no option that allows anything.
        [json!("TypeError"), json!("TOOL_DENIED"), json!("TOOL_DENIED"), json!("TOOL_DENIED")]
    );
    assert_eq!(mock.calls.load(Ordering::SeqCst), 0);
}

/// A property that gives another name each time is read once.
#[tokio::test]
async fn je_079_name_that_changes() {
    let source = "
        let n = 0; const name = { toString() { return n++ ? 'mcp__mock__count' : 'mcp__mock__echo' } };
        try { return await callMCPTool(name as any) } catch (e) { return [e.name, n] }";
    assert_eq!(value(source).await, json!(["TypeError", 0]));
}

// --- BV: boundary values ------------------------------------------------------------------------

#[tokio::test]
async fn bv_080_081_proto() {
    let source = r#"
        const result = await mock.pollute();
        const echoed = await mock.echo(JSON.parse('{"__proto__": {"a": 1}, "constructor": 2}'));
        return [
            Object.hasOwn(result, "__proto__"), ({}).polluted === undefined,
            Object.hasOwn(echoed, "__proto__"), echoed.constructor,
            await mock.constructor({ c: 1 }), call_tool("mock", "then", { t: 1 }).ok, typeof mock.then,
        ]"#;
    assert_eq!(value(source).await, json!([true, true, true, 2, { "c": 1 }, true, "undefined"]));
}

#[tokio::test]
async fn bv_082_lone_surrogate_out() {
    let source =
        r#"return [await mock.echo({ s: "\ud800" }), call_tool("mock", "echo", { "\udfff": 1 }), "\ud800"]"#;
    let one = "\u{fffd}";
    assert_eq!(value(source).await, json!([{ "s": one }, { "ok": true, "result": { one: 1 } }, one]));
}

#[tokio::test]
async fn bv_084_numbers_without_json() {
    let source = "return [[NaN, Infinity, -0], await mock.echo({ a: NaN, b: -Infinity })]";
    assert_eq!(value(source).await, json!([[null, null, 0], { "a": null, "b": null }]));
}

#[tokio::test]
async fn bv_085_bigint() {
    assert_eq!(
        failure("return 1n").await.1,
        "value is a BigInt, which JSON does not have; use String() or Number()"
    );
    // An argument is a number with all its digits. The mock returns what it received as text.
    let source = "
        const n = 123456789012345678901234567890n;
        return await mock.text({ rows: [{ n }, -n, 1n, 1e25, null], s: `${n}` })";
    assert_eq!(
        value(source).await,
        r#"sent {"rows":[{"n":123456789012345678901234567890},-123456789012345678901234567890,1,1e+25,null],"s":"123456789012345678901234567890"}"#
    );
    let source = "try { await mock.echo({ a: 1n, rows: [{ n() {} }] }) } catch (e) { return e.message }";
    let message = value(source).await;
    assert!(message.as_str().unwrap().starts_with("arguments.rows[0].n is a function"), "{message}");
    let source = "try { await mock.echo({ n: 10n ** 400n }) } catch (e) { return [e.code, e.message] }";
    let found = value(source).await;
    assert_eq!(found[0], "INVALID_ARGUMENTS");
    assert!(found[1].as_str().unwrap().contains("beyond 10^308"), "{found}");
}

#[tokio::test]
async fn bv_086_large_numbers() {
    let source = r#"
        const text = await mock.text({ text: '{"id": 9007199254740993, "small": 1e-400}' });
        return [text.id, text.small, typeof (await mock.text({ text: '{"x": 1e400}' }))]"#;
    assert_eq!(value(source).await, json!([9_007_199_254_740_992_u64, 0, "string"]));
}

#[tokio::test]
async fn bv_087_cycle() {
    let (code, message) = failure("const a: any = {}; a.a = a; return a").await;
    assert_eq!(code, ErrorCode::RuntimeError);
    assert!(message.contains("circular"), "{message}");
}

#[test]
fn bv_088_billion_laughs() {
    let source = "let a = []; for (let i = 0; i < 40; i++) a = [a, a]; return a";
    survives(source, "MEMORY_LIMIT", 1_500);
}

#[tokio::test]
async fn bv_089_depth() {
    let nested = |depth: usize| format!("let v: any = 1; for (let i = 0; i < {depth}; i++) v = [v]; ");
    assert!(value(&format!("{}return JSON.stringify(v).length", nested(100))).await.is_number());
    assert!(value(&format!("{}return v", nested(100))).await.is_array());
    for depth in [200, 3_000] {
        assert_eq!(failure(&format!("{}return v", nested(depth))).await.0, ErrorCode::RuntimeError);
        let source =
            format!("{}try {{ await mock.echo({{ v }}) }} catch (e) {{ return e.code }}", nested(depth));
        assert_eq!(value(&source).await, json!("INVALID_ARGUMENTS"));
    }
}

#[test]
fn bv_090_symbols() {
    let source = "
        const names = [];
        for (const attempt of [
            () => callMCPTool(Symbol('x'), {}), () => callMCPTool('mcp__mock__echo', Symbol()),
            () => mock[Symbol.iterator](), () => call_tool(Symbol(), Symbol()), () => mock.echo({ a: Symbol() }),
        ]) { try { names.push(await attempt()) } catch (e) { names.push(e.name) } }
        return names";
    let report = canary(source, 5_000, 64);
    assert_eq!(
        report["hostile"]["value"],
        json!(["TypeError", "McpToolError", "TypeError", { "ok": false, "error": {
            "code": "INVALID_ARGUMENTS", "message": "`server` and `tool` must be strings",
        } }, "McpToolError"]),
        "{report:#}"
    );
}

#[test]
fn bv_091_sparse_array() {
    for source in [
        "const a: any[] = []; a.length = 2 ** 32 - 1; return a",
        "const a: any[] = []; a.length = 2 ** 32 - 1; await mock.echo({ a })",
    ] {
        survives(source, "RUNTIME_ERROR", 2_000);
    }
}

#[tokio::test]
async fn bv_092_exotic_objects() {
    let source = "
        const { proxy, revoke } = Proxy.revocable({}, {}); revoke();
        const buffer = new ArrayBuffer(4); const view = new Uint8Array(buffer); structuredClone(buffer, { transfer: [buffer] });
        const names = [];
        for (const exotic of [proxy, new Proxy([], { get() { throw new Error('trap') } })]) {
            try { await mock.echo({ exotic }); names.push('sent') } catch (e) { names.push(e.name) }
        }
        try { await mock.echo({ generator: (function* () {})() }); names.push('sent') } catch (e) { names.push(e.message) }
        try { await mock.echo({ view }); names.push('sent') } catch (e) { names.push(e.message) }
        return [names, await mock.echo({ weak: new WeakMap(), global: typeof globalThis })]";
    let iterator = "arguments.generator is an iterator, which is read only once; use Array.from()";
    let bytes = "arguments.view is bytes, which JSON does not have; use bytes.toBase64(), or new TextDecoder().decode() for text";
    assert_eq!(
        value(source).await,
        json!([["McpToolError", "Error", iterator, bytes], { "weak": {}, "global": "object" }])
    );
}

#[tokio::test]
async fn bv_093_throwing_getters() {
    assert_eq!(failure("return { get a() { throw new Error('g') } }").await.1, "g");
    assert_eq!(failure("return { toJSON() { throw null } }").await.0, ErrorCode::RuntimeError);
}

#[tokio::test]
async fn bv_094_to_json_hijack() {
    let source = "Object.prototype.toJSON = function () { return { hijacked: true } }; return await mock.echo({ a: 1 })";
    let (result, _) = attack(source, DEFAULT).await;
    // A script may change the guest's own data; it cannot change the envelope.
    assert_eq!(result.tool_calls.len(), 1);
    assert_eq!(result.tool_calls[0].tool, "echo");
}

#[tokio::test]
async fn bv_095_thrown_non_errors() {
    for thrown in [
        "null",
        "undefined",
        "Symbol('s')",
        "42",
        "{ toString() { throw 1 } }",
        "Object.freeze(new Error('f'))",
        "Object.create(null)",
        "new Proxy({}, { get() { throw 1 }, getPrototypeOf() { throw 2 } })",
        "Object.create(Error.prototype)",
        "Object.setPrototypeOf(() => {}, null)",
        "new (class extends Error { get name() { throw 1 } })",
    ] {
        let (code, _) = failure(&format!("throw {thrown}")).await;
        assert_eq!(code, ErrorCode::RuntimeError, "{thrown}");
    }
}

#[tokio::test]
async fn bv_096_causes_and_aggregates() {
    let (code, message) = failure("const e: any = new Error('loop'); e.cause = e; throw e").await;
    assert_eq!((code, message.as_str()), (ErrorCode::RuntimeError, "loop"));
    let source =
        "throw new AggregateError(Array.from({ length: 1e5 }, (_, i) => new Error('e' + i)), 'many')";
    let (code, message) = failure(source).await;
    assert_eq!(code, ErrorCode::RuntimeError);
    assert!(message.len() < 10_000 && message.starts_with("many; e0; e1; e2; and 99997 more"), "{message}");
}

#[tokio::test]
async fn bv_097_no_value() {
    for source in ["return;", "", "const a = 1;", "return undefined", "void 0"] {
        assert_eq!(value(source).await, Value::Null, "{source}");
    }
}

#[tokio::test]
async fn bv_098_odd_text_survives() {
    let source = r#"const s = "\0 \u2028 \u2029 \ufeff \u001b[31m \u202e"; console.log(s); return [s, (await mock.echo({ s })).s === s]"#;
    let (result, _) = attack(source, DEFAULT).await;
    assert_eq!(result.value(), Some(&json!(["\0 \u{2028} \u{2029} \u{feff} \u{1b}[31m \u{202e}", true])));
}

#[tokio::test]
async fn bv_099_odd_objects_from_a_tool() {
    let keys: Vec<String> = (0..10_000).map(|index| format!("\"k{index}\":{index}")).collect();
    let text = format!("{{\"a\":1,\"\":2,\"a\":3,{}}}", keys.join(","));
    let script = Script::typescript(
        "const r = await mock.text({ text: input }); return [r.a, r[''], Object.keys(r).length, Object.keys(r)[1]]",
    );
    let (executor, _) = executor();
    let result = executor.run(script.input(json!(text))).await.unwrap();
    assert_eq!(result.value(), Some(&json!([3, 2, 10_002, ""])));
}
