//! Limits in pairs: obeyed and violated.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cx::{ErrorCode, ExecuteResult, Language, Limits, Script};
use serde_json::{Value, json};

use crate::support::stopwatch::{LATE, Stopwatch};
use crate::support::{executor, run, wait_until};

async fn limited(source: &str, limits: Limits) -> ExecuteResult {
    run(Script::typescript(source).limits(limits)).await
}

/// The run obeys the limit and returns `expected`.
async fn obeyed(source: &str, limits: Limits, expected: Value) {
    let result = limited(source, limits).await;
    assert_eq!(result.value(), Some(&expected), "{source}: {}", result.to_json());
}

/// The run violates the limit and fails with `code`.
async fn violated(source: &str, limits: Limits, code: ErrorCode) -> ExecuteResult {
    let result = limited(source, limits).await;
    assert_eq!(result.error().map(|error| error.code), Some(code), "{source}: {}", result.to_json());
    result
}

fn wall(milliseconds: u64) -> Limits {
    Limits { wall_time: Duration::from_millis(milliseconds), ..Limits::default() }
}

#[tokio::test]
async fn wall_time() {
    obeyed("await mock.sleep({ms: 20}); return 1", wall(60_000), json!(1)).await;
    for source in ["for (;;);", "await mock.hang()", "await new Promise((r) => setTimeout(r, 60_000))"] {
        let (executor, _) = executor();
        let stopwatch = Stopwatch::start();
        let result = executor.run(Script::typescript(source).limits(wall(200))).await.unwrap();
        assert_eq!(result.error().unwrap().code, ErrorCode::Timeout, "{source}");
        assert!(result.usage.wall_time >= Duration::from_millis(200), "{source}: {:?}", result.usage);
        stopwatch.promise(Duration::from_millis(200) + LATE, source);
        // Its thread ends, too. On a busy machine it may be the watchdog that has answered.
        wait_until(|| executor.pool_stats(Language::TypeScript).hung == 0).await;
    }
}

/// Threat 24: waiting is not CPU time.
#[tokio::test]
async fn cpu_time() {
    // A busy machine may take long to give it this much.
    let limits = Limits { cpu_time: Duration::from_millis(500), ..wall(120_000) };
    obeyed("await mock.sleep({ms: 1000}); return 1", limits, json!(1)).await;
    let result = violated("for (;;);", limits, ErrorCode::CpuLimit).await;
    assert!(result.usage.cpu_time >= Duration::from_millis(500));
}

#[tokio::test]
async fn memory() {
    let limits = Limits { memory_bytes: 32 << 20, ..Limits::default() };
    obeyed("return new Array(1e6).fill(0).length", limits, json!(1_000_000)).await;
    obeyed("return new Uint8Array(8 << 20).length", limits, json!(8 << 20)).await;
    violated("const a = []; for (;;) a.push({})", limits, ErrorCode::MemoryLimit).await;
    violated("const a = []; for (;;) a.push(new Uint8Array(1 << 20))", limits, ErrorCode::MemoryLimit).await;
    // Heap and buffers count together: either alone would fit.
    violated(
        "const a = new Array(2 ** 21).fill(1.5); const b = []; for (let i = 0; i < 20; i++) b.push(new Uint8Array(1 << 20)); return a.length + b.length",
        limits,
        ErrorCode::MemoryLimit,
    )
    .await;
    // A higher limit than that of the executor's warm isolates.
    let more = Limits { memory_bytes: 512 << 20, ..Limits::default() };
    let arrays =
        "const a = []; for (let i = 0; i < 6; i++) a.push(new Array(2 ** 22).fill(1.5)); return a.length";
    obeyed(arrays, more, json!(6)).await;
    violated(arrays, Limits::default(), ErrorCode::MemoryLimit).await;
}

#[tokio::test]
async fn tool_calls() {
    let limits = Limits { tool_calls: 3, ..Limits::default() };
    obeyed("for (let i = 0; i < 3; i++) await mock.echo(); return 1", limits, json!(1)).await;
    let result =
        violated("for (let i = 0; i < 5; i++) await mock.echo()", limits, ErrorCode::MaxToolCallsExceeded)
            .await;
    assert_eq!(result.tool_calls.len(), 3);
    // A script may go on without the calls that were refused; then it has not failed.
    obeyed(
        "for (let i = 0; i < 3; i++) await mock.echo(); try { await mock.echo() } catch (e) { return e.code }",
        limits,
        json!("MAX_TOOL_CALLS_EXCEEDED"),
    )
    .await;
    // Calls whose failures are values end the run too.
    for source in [
        "for (let i = 0; i < 100; i++) call_tool('mock', 'echo', {})",
        "return call_tools(Array(5).fill({server: 'mock', tool: 'echo'}))",
        "return call_tools(Array(5).fill({server: 'mock', tool: 'echo'}), {max_parallel: 2})",
    ] {
        let result = violated(source, limits, ErrorCode::MaxToolCallsExceeded).await;
        assert_eq!(result.usage.tool_calls, 3, "{source}");
    }
    let unlimited = Limits { tool_calls: 0, ..Limits::default() };
    obeyed("for (let i = 0; i < 2_000; i++) call_tool('mock', 'echo'); return 1", unlimited, json!(1)).await;
    obeyed("for (let i = 0; i < 2_000; i++) await mock.echo(); return 1", unlimited, json!(1)).await;
}

/// Threat 149: exact under concurrency. Threat 146: refused at the op, call by call.
#[tokio::test]
async fn calls_in_flight() {
    let (executor, mock) = executor();
    let limits = Limits { calls_in_flight: 4, tool_calls: 50, ..Limits::default() };
    let source = "
        const results = await Promise.allSettled(Array.from({length: 200}, () => mock.sleep({ms: 5, together: 4})));
        return results.filter((result) => result.status === 'fulfilled').length
    ";
    let result = executor.run(Script::typescript(source).limits(limits)).await.unwrap();
    assert_eq!(result.value(), Some(&json!(50)), "{}", result.to_json());
    assert_eq!(mock.calls.load(Ordering::SeqCst), 50);
    assert_eq!(mock.most_running.load(Ordering::SeqCst), 4);
    assert_eq!((result.usage.tool_calls, result.usage.tool_calls_refused), (50, 150));
}

#[tokio::test]
async fn calls_of_a_batch_at_the_same_time() {
    for (options, most) in [("", 20), (", {max_parallel: 3}", 3), (", {maxParallel: 1}", 1), (", {}", 20)] {
        let (executor, mock) = executor();
        let source = format!(
            "const calls = Array.from({{length: 20}}, (_, i) =>
                ({{server: 'mock', tool: 'sleep', args: {{ms: 5, together: {most}, i}}}}));
            return call_tools(calls{options}).map((answer) => answer.result.i)"
        );
        let result = executor.run(Script::typescript(source)).await.unwrap();
        assert_eq!(result.value(), Some(&(0..20).collect()), "{}", result.to_json());
        assert_eq!(mock.most_running.load(Ordering::SeqCst), most, "{options}");
    }
}

#[tokio::test]
async fn source_bytes() {
    let limits = Limits { source_bytes: 1_000, ..Limits::default() };
    obeyed(&format!("return 1 //{}", "x".repeat(900)), limits, json!(1)).await;
    let result = violated(&format!("return 1 //{}", "x".repeat(2_000)), limits, ErrorCode::SyntaxError).await;
    assert!(result.error().unwrap().message.contains("1000"), "{}", result.to_json());
}

#[tokio::test]
async fn argument_bytes() {
    let limits = Limits { argument_bytes: 1_000, ..Limits::default() };
    let source =
        "try { return (await mock.echo({s: 'x'.repeat(input)})).s.length } catch (e) { return e.code }";
    for (length, expected) in [(900, json!(900)), (2_000, json!("INVALID_ARGUMENTS"))] {
        let result = run(Script::typescript(source).limits(limits).input(json!(length))).await;
        assert_eq!(result.value(), Some(&expected), "{}", result.to_json());
    }
}

#[tokio::test]
async fn result_bytes() {
    let limits = Limits { result_bytes: 1_000, ..Limits::default() };
    let source = "try { return (await mock.big({bytes: input})).length } catch (e) { return e.code }";
    for (length, expected) in [(900, json!(900)), (2_000, json!("RESULT_TOO_LARGE"))] {
        let result = run(Script::typescript(source).limits(limits).input(json!(length))).await;
        assert_eq!(result.value(), Some(&expected), "{}", result.to_json());
    }
    obeyed("return 'x'.repeat(900).length", limits, json!(900)).await;
    violated("return 'x'.repeat(2_000)", limits, ErrorCode::ResultTooLarge).await;
    violated("return '€'.repeat(400)", limits, ErrorCode::ResultTooLarge).await;
    obeyed(
        "try { for (;;) emit('x'.repeat(100)) } catch (e) { return e.code }",
        limits,
        json!("RESULT_TOO_LARGE"),
    )
    .await;
}

/// Threat 44.
#[tokio::test]
async fn output_bytes() {
    let limits = Limits { output_bytes: 1_000, ..Limits::default() };
    let result = limited("for (let i = 0; i < 9; i++) console.log('x'.repeat(99)); return 1", limits).await;
    assert_eq!(result.printed().len(), 9 * 100 - 1);
    assert_eq!(result.usage.output_bytes_dropped, 0);
    let result = limited("for (let i = 0; i < 100; i++) console.log('€'.repeat(33)); return 1", limits).await;
    assert_eq!(result.value(), Some(&json!(1)));
    assert!(result.printed().len() <= 1_000 && result.printed().len() > 900);
    assert!(result.usage.output_bytes_dropped > 8_000, "{:?}", result.usage);
}

/// Threat 19.
#[tokio::test]
async fn timers() {
    obeyed(
        "for (let i = 0; i < 9_000; i++) setTimeout(() => {}, 1e9); return 1",
        Limits::default(),
        json!(1),
    )
    .await;
    obeyed(
        "try { for (;;) setTimeout(() => {}, 1e9) } catch (e) { return e.name }",
        Limits::default(),
        json!("RangeError"),
    )
    .await;
}

#[tokio::test]
async fn v_295_a_source_that_is_too_much_work_to_transpile() {
    obeyed("enum E { a } enum E { b = 2 } return E.b", Limits::default(), json!(2)).await;
    let enums: String = (0..12_000).map(|number| format!("enum E{{a{number}={number}}}")).collect();
    obeyed(&format!("{enums} return E.a11999"), Limits::default(), json!(11_999)).await;
    let decorated = format!("const d = () => {{}}; class A {{ {} }}", "@d m() {} ".repeat(5_000));
    let result = violated(&decorated, Limits::default(), ErrorCode::TranspileError).await;
    assert!(result.error().is_some_and(|error| error.hint.is_some()), "{}", result.to_json());
}
