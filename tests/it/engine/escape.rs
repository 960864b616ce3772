//! Attacks of docs/threats.md, groups JC, JM, JE and BV. Each test is named by its number there. Those that
//! may take a process down (`CP` there) run in a child, with an honest run beside and one after them.

/// Errors that the engine describes.
mod errors;
/// Attacks on memory.
mod memory;
/// Attempts to reach what is outside of the sandbox.
mod reach;
/// Values at the boundary between a script and the host.
mod values;

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use cx::{CancellationToken, ErrorCode, ExecuteResult, Language, Limits, Script};
use serde_json::{Value, json};

use crate::support::canary::{ENOUGH, canary, survives};
use crate::support::serve::WATCHDOG;
use crate::support::stopwatch::{LATE, Stopwatch};
use crate::support::{WEDGE, executor, failure, value, wait_until};

const ONE_SECOND: Limits = Limits { wall_time: Duration::from_secs(1), ..DEFAULT };
/// An attack that does not end at its deadline has more time than it can need on a busy machine.
const DEFAULT: Limits = Limits {
    wall_time: Duration::from_secs(120),
    cpu_time: Duration::from_secs(60),
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
    let (result, mock, _) = timed_attack(source, limits).await;
    (result, mock)
}

/// The same, and how long the answer to the attack took.
async fn timed_attack(source: &str, limits: Limits) -> (ExecuteResult, crate::support::mock::Mock, Duration) {
    let (executor, mock) = executor();
    let started = Instant::now();
    let result = executor.run(Script::typescript(source).limits(limits)).await.unwrap();
    let took = started.elapsed();
    let clean = executor
        .run_ts("return [typeof leaked, ({}).leaked === undefined, [1].map((x) => x + 1), JSON.stringify({a: 1})]")
        .await
        .unwrap();
    assert_eq!(clean.value(), Some(&json!(["undefined", true, [2], "{\"a\":1}"])), "after {source}");
    (result, mock, took)
}

/// The attack ends with this code, and not much later than its deadline.
async fn ends(source: &str, limits: Limits, code: ErrorCode) -> crate::support::mock::Mock {
    let stopwatch = Stopwatch::start();
    let (result, mock, took) = timed_attack(source, limits).await;
    assert_eq!(result.error().map(|error| error.code), Some(code), "{source}: {}", result.to_json());
    stopwatch.promise_of(took, limits.wall_time + LATE, source);
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
    // V8 does not run that block. Nor does deno_core run again what describes an error.
    let source = "let times = 0;
        Error.prepareStackTrace = () => {
            if (times++ === 0) for (;;) {}
            console.log(call_tool('mock', 'count', {}).error?.code);
            return '';
        };
        null.x";
    let (result, mock) = attack(source, ONE_SECOND).await;
    assert_eq!(result.error().map(|error| error.code), Some(ErrorCode::Timeout), "{}", result.to_json());
    assert_eq!((&*result.printed(), mock.calls.load(Ordering::SeqCst)), ("", 0));
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
    let report = canary(&source, ENOUGH, 64);
    assert_eq!(report["hostile"]["value"], 11, "{report:#}");
    assert_eq!(report["lost"], 0);
}

#[test]
fn jc_009_without_guards() {
    // A script that is stopped before its loop hangs nothing, so it has time to get there.
    let limit = Duration::from_secs(5);
    let stopwatch = Stopwatch::start();
    let report = canary(WEDGE, u64::try_from(limit.as_millis()).unwrap(), 64);
    assert_eq!(report["hostile"]["error"]["code"], "TIMEOUT", "{report:#}");
    let took = Duration::from_millis(report["hostileMs"].as_u64().unwrap());
    stopwatch.promise_of(took, limit + LATE, "a script that does not come back");
    assert_eq!(report["lost"], 1, "{report:#}");
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
    let report = canary(source, ENOUGH, 64);
    assert_eq!(report["hostile"]["value"], Value::from(vec!["RangeError"; 7]), "{report:#}");
}

/// More hung workers than an engine may have: it refuses further runs and says so.
#[tokio::test]
async fn jc_011_several_hung_workers_at_once() {
    let (executor, _) = executor();
    let limits = Limits { wall_time: Duration::from_secs(3), ..DEFAULT };
    let hung = || executor.pool_stats(Language::TypeScript).hung;
    let began = Instant::now();
    // On a busy machine a script may be stopped while it is prepared, and then hangs nothing.
    while hung() < 3 {
        assert!(began.elapsed() < WATCHDOG, "only {} hang", hung());
        let runs = (hung()..3).map(|_| executor.run(Script::typescript(WEDGE).limits(limits)));
        for result in futures::future::join_all(runs).await {
            assert_eq!(result.unwrap().error().unwrap().code, ErrorCode::Timeout);
        }
    }
    assert_eq!(hung(), 3);
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
        let report = canary(source, ENOUGH, 64);
        assert_eq!(report["hostile"]["error"]["name"], "RangeError", "{source}: {report:#}");
    }
}

#[test]
fn jc_015_parser_overflow_in_the_transpiler() {
    let repeated = |text: &str, count: usize| text.repeat(count);
    // Nesting with type arguments exceeds the bound on work before the bound on depth.
    let types = format!("type T={}", repeated("A<", 100_000));
    assert_eq!(canary(&types, ENOUGH, 64)["hostile"]["error"]["code"], "TRANSPILE_ERROR");
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
        let report = canary(&source, ENOUGH, 64);
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
    let long = Duration::from_secs(60);
    let limits = Limits { wall_time: long, cpu_time: long, ..DEFAULT };
    let over = CancellationToken::new();
    let loops: Vec<_> = (0..6)
        .map(|_| {
            let executor = executor.clone();
            let script = Script::typescript("for (;;);").limits(limits).cancel_with(over.clone());
            tokio::spawn(async move { executor.run(script).await })
        })
        .collect();
    let honest = executor.run_ts("return (await mock.sleep({ms: 5})).ms").await.unwrap();
    assert_eq!(honest.value(), Some(&json!(5)));
    assert!(
        !loops.iter().any(tokio::task::JoinHandle::is_finished),
        "the endless loops ran at the same time"
    );
    over.cancel();
    for endless in loops {
        let result = endless.await.unwrap().unwrap();
        assert_eq!(result.error().unwrap().code, ErrorCode::Cancelled);
    }
}
