//! Attacks of docs/threats.md, groups PC and PM on Python, by number, and limits in pairs: obeyed and
//! violated. Those that may take a process down run in a child, with honest runs of both languages beside and
//! after them.

/// Attacks on time.
mod cpu;
/// Attacks on memory.
mod memory;

use std::sync::atomic::Ordering;
use std::time::Duration;

use cx::{Error, ErrorCode, ExecuteResult, Limits, OptionName, Script};
use serde_json::{Value, json};

use crate::support::python_executor::{
    BESIDE, attack, builder, ends, executor, failure, idle_trim, small, survive, survives, survives_all,
    value, within,
};
use crate::support::stopwatch::{LATE, Stopwatch};
use crate::support::wait_until;

async fn limited(source: &str, limits: Limits) -> ExecuteResult {
    attack(source, limits).await.0
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

// --- limits in pairs ------------------------------------------------------------------------------------------------

#[tokio::test]
async fn wall_time() {
    obeyed("await mock.sleep(ms=20)\nreturn 1", within(60_000), json!(1)).await;
    for source in ["while True: pass", "await mock.hang()", "import time; time.sleep(60)"] {
        let (executor, _) = executor().await;
        let stopwatch = Stopwatch::start();
        let result = executor.run(Script::python(source).limits(within(200))).await.unwrap();
        assert_eq!(result.error().unwrap().code, ErrorCode::Timeout, "{source}: {}", result.to_json());
        assert!(result.usage.wall_time >= Duration::from_millis(200), "{source}: {:?}", result.usage);
        stopwatch.promise(Duration::from_millis(200) + LATE, source);
        // Its thread ends, too. On a busy machine it may be the watchdog that has answered.
        wait_until(|| executor.pool_stats(cx::Language::Python).hung == 0).await;
    }
}

/// Waiting is not CPU time.
#[tokio::test]
async fn cpu_time() {
    // A busy machine may take long to give it this much.
    let limits = Limits { cpu_time: Duration::from_millis(500), ..within(120_000) };
    obeyed("await mock.sleep(ms=1000)\nimport time; time.sleep(0.1)\nreturn 1", limits, json!(1)).await;
    let result = violated("while True: pass", limits, ErrorCode::CpuLimit).await;
    assert!(result.usage.cpu_time >= Duration::from_millis(500));
}

#[tokio::test]
async fn memory() {
    obeyed("return len([0] * 10**6)", small(), json!(1_000_000)).await;
    obeyed("return len(bytearray(8 << 20))", small(), json!(8 << 20)).await;
    let result = violated("a = []\nwhile True: a.append(object())", small(), ErrorCode::MemoryLimit).await;
    assert!(result.usage.memory_bytes <= 64 << 20, "{:?}", result.usage);
    // A higher limit than that of the executor's warm interpreters.
    let more = Limits { memory_bytes: 384 << 20, ..small() };
    obeyed("return len(bytes(256 << 20))", more, json!(256 << 20)).await;
    violated("return len(bytes(400 << 20))", more, ErrorCode::MemoryLimit).await;
}

/// The lowest limit that can be requested is less than CPython has at its start: the error says what is wrong.
#[tokio::test]
async fn memory_below_what_an_interpreter_needs() {
    let least = Limits { memory_bytes: Limits::MIN_MEMORY_BYTES, ..small() };
    let (executor, _) = executor().await;
    let result = executor.run(Script::python("return 1").limits(least)).await.unwrap();
    let error = result.error().unwrap_or_else(|| panic!("{}", result.to_json()));
    assert_eq!(error.code, ErrorCode::MemoryLimit, "{error:?}");
    let bytes = |text: &str| -> usize {
        text.split(' ').find_map(|word| word.parse().ok()).unwrap_or_else(|| panic!("{error:?}"))
    };
    assert!(error.message.starts_with("Python has "), "{error:?}");
    let hint = error.hint.as_deref().unwrap_or_default();
    assert!(hint.starts_with("ask for at least ") && bytes(hint) > bytes(&error.message), "{error:?}");
    // What it says to ask for is enough.
    obeyed("return 1", Limits { memory_bytes: bytes(hint), ..small() }, json!(1)).await;
    let none = Limits { memory_bytes: 1, ..small() };
    let refused = executor.run(Script::python("return 1").limits(none)).await;
    assert!(
        matches!(refused, Err(Error::InvalidOptions { option: OptionName::MemoryBytes, .. })),
        "{refused:?}"
    );
}

#[tokio::test]
async fn tool_calls() {
    let limits = Limits { tool_calls: 3, ..small() };
    obeyed("for i in range(3): await mock.echo()\nreturn 1", limits, json!(1)).await;
    let source = "for i in range(5): await mock.echo()";
    let result = violated(source, limits, ErrorCode::MaxToolCallsExceeded).await;
    assert_eq!(result.tool_calls.len(), 3);
    // A script may go on without the calls that were refused; then it has not failed.
    let source = "
for i in range(3): await mock.echo()
try: await mock.echo()
except McpToolError as error: return error.code";
    obeyed(source, limits, json!("MAX_TOOL_CALLS_EXCEEDED")).await;
    // Calls whose failures are values end the run too.
    for source in [
        "for i in range(100): call_tool('mock', 'echo', {})",
        "return call_tools([{'server': 'mock', 'tool': 'echo'}] * 5)",
        "return call_tools([{'server': 'mock', 'tool': 'echo'}] * 5, max_parallel=2)",
    ] {
        let result = violated(source, limits, ErrorCode::MaxToolCallsExceeded).await;
        assert_eq!(result.usage.tool_calls, 3, "{source}");
    }
    let unlimited = Limits { tool_calls: 0, ..small() };
    obeyed("for i in range(2_000): call_tool('mock', 'echo')\nreturn 1", unlimited, json!(1)).await;
    obeyed("for i in range(2_000): await mock.echo()\nreturn 1", unlimited, json!(1)).await;
}

#[tokio::test]
async fn calls_of_a_batch_at_the_same_time() {
    let options = [("", 20), (", {'max_parallel': 3}", 3), (", max_parallel=1", 1), (", {}", 20)];
    for (options, most) in options {
        let source = format!(
            "calls = [{{'server': 'mock', 'tool': 'sleep', 'args': {{'ms': 5, 'together': {most}, 'i': i}}}}
    for i in range(20)]
return [answer['result']['i'] for answer in call_tools(calls{options})]"
        );
        let (result, mock) = attack(&source, small()).await;
        assert_eq!(result.value(), Some(&(0..20).collect()), "{}", result.to_json());
        assert_eq!(mock.most_running.load(Ordering::SeqCst), most, "{options}");
    }
}

/// Exact under concurrency; refused by the host, call by call.
#[tokio::test]
async fn calls_in_flight() {
    let limits = Limits { calls_in_flight: 4, tool_calls: 50, ..small() };
    let source = "
import asyncio
results = await asyncio.gather(*(mock.sleep(ms=5, together=4) for _ in range(200)), return_exceptions=True)
return sum(not isinstance(result, Exception) for result in results)";
    let (result, mock) = attack(source, limits).await;
    assert_eq!(result.value(), Some(&json!(50)), "{}", result.to_json());
    assert_eq!(mock.calls.load(Ordering::SeqCst), 50);
    assert_eq!(mock.most_running.load(Ordering::SeqCst), 4);
    assert_eq!((result.usage.tool_calls, result.usage.tool_calls_refused), (50, 150));
}

#[tokio::test]
async fn source_bytes() {
    let limits = Limits { source_bytes: 1_000, ..small() };
    obeyed(&format!("return 1 #{}", "x".repeat(900)), limits, json!(1)).await;
    let result = violated(&format!("return 1 #{}", "x".repeat(2_000)), limits, ErrorCode::SyntaxError).await;
    assert!(result.error().unwrap().message.contains("1000"), "{}", result.to_json());
}

/// Through the functions of the guest half, and through the host's function itself.
#[tokio::test]
async fn argument_bytes() {
    let limits = Limits { argument_bytes: 1_000, ..small() };
    let offered = "
try: return len((await mock.echo(s='x' * LENGTH))['s'])
except McpToolError as error: return error.code";
    let direct = r#"
import json, wit_world
_, answer = wit_world.start_call(wit_world.Operation.TOOL, "mock", "echo", '{"s":"' + "x" * LENGTH + '"}')
if answer is None: answer = wit_world.wait(None)[0].answer
return json.loads(answer[1:])["code"] if answer[0] == "!" else len(json.loads(answer)["s"])"#;
    for source in [offered, direct] {
        for (length, expected) in [("900", json!(900)), ("2000", json!("INVALID_ARGUMENTS"))] {
            obeyed(&source.replace("LENGTH", length), limits, expected).await;
        }
    }
}

#[tokio::test]
async fn result_bytes() {
    let limits = Limits { result_bytes: 1_000, ..small() };
    let source = "
try: return len(await mock.big(bytes=LENGTH))
except McpToolError as error: return error.code";
    for (length, expected) in [("900", json!(900)), ("2000", json!("RESULT_TOO_LARGE"))] {
        obeyed(&source.replace("LENGTH", length), limits, expected).await;
    }
    obeyed("return len('x' * 900)", limits, json!(900)).await;
    violated("return 'x' * 2_000", limits, ErrorCode::ResultTooLarge).await;
    violated("return '€' * 400", limits, ErrorCode::ResultTooLarge).await;
    let source = "
try:
    while True: emit('x' * 100)
except McpToolError as error: return error.code";
    obeyed(source, limits, json!("RESULT_TOO_LARGE")).await;
    // With the largest possible limits, the value and the arguments still come in one piece.
    let largest = Limits {
        argument_bytes: Limits::CEILING.argument_bytes,
        result_bytes: Limits::CEILING.result_bytes,
        memory_bytes: Limits::CEILING.memory_bytes,
        ..small()
    };
    let source = "return 'x' * ((64 << 20) + 10)";
    violated(source, largest, ErrorCode::ResultTooLarge).await;
}

#[tokio::test]
async fn output_bytes() {
    let limits = Limits { output_bytes: 1_000, ..small() };
    let result = limited("for i in range(9): print('x' * 99)\nreturn 1", limits).await;
    assert_eq!(result.printed().len(), 9 * 100 - 1);
    assert_eq!(result.usage.output_bytes_dropped, 0);
    let result = limited("for i in range(100): print('€' * 33)\nreturn 1", limits).await;
    assert_eq!(result.value(), Some(&json!(1)));
    assert!(result.printed().len() <= 1_000 && result.printed().len() > 900);
    assert!(result.usage.output_bytes_dropped > 8_000, "{:?}", result.usage);
}
