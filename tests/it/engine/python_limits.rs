//! Attacks of docs/threats.md, groups PC and PM on Python, by number, and limits in pairs: obeyed and
//! violated. Those that may take a process down run in a child, with honest runs of both languages beside and
//! after them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cx::{Error, ErrorCode, ExecuteResult, Limits, OptionName, Script};
use serde_json::{Value, json};

use crate::support::python_executor::{
    BESIDE, attack, builder, ends, executor, failure, idle_trim, small, survive, survives, survives_all,
    value, within,
};
use crate::support::stopwatch::{LATE, Stopwatch};

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
    obeyed("await mock.sleep(ms=20)\nreturn 1", within(5_000), json!(1)).await;
    for source in ["while True: pass", "await mock.hang()", "import time; time.sleep(60)"] {
        let (executor, _) = executor().await;
        let stopwatch = Stopwatch::start();
        let result = executor.run(Script::python(source).limits(within(200))).await.unwrap();
        assert_eq!(result.error().unwrap().code, ErrorCode::Timeout, "{source}: {}", result.to_json());
        assert!(result.usage.wall_time >= Duration::from_millis(200), "{source}: {:?}", result.usage);
        stopwatch.promise(Duration::from_millis(200) + LATE, source);
        // The run's own thread has answered, and not the watchdog.
        assert_eq!(executor.pool_stats(cx::Language::Python).hung, 0, "{source}");
    }
}

/// Waiting is not CPU time.
#[tokio::test]
async fn cpu_time() {
    let limits = Limits { cpu_time: Duration::from_millis(150), ..within(10_000) };
    obeyed("await mock.sleep(ms=300)\nimport time; time.sleep(0.1)\nreturn 1", limits, json!(1)).await;
    let result = violated("while True: pass", limits, ErrorCode::CpuLimit).await;
    assert!(result.usage.cpu_time >= Duration::from_millis(150));
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
            "calls = [{{'server': 'mock', 'tool': 'sleep', 'args': {{'ms': 5, 'i': i}}}} for i in range(20)]
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
results = await asyncio.gather(*(mock.sleep(ms=5) for _ in range(200)), return_exceptions=True)
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

// --- PC: CPU --------------------------------------------------------------------------------------------------------

#[tokio::test]
async fn pc_101_loop() {
    ends("while True: pass", within(300), ErrorCode::Timeout).await;
    ends("import asyncio\nwhile True: await asyncio.sleep(0)", within(300), ErrorCode::Timeout).await;
}

#[tokio::test]
async fn pc_102_loop_that_catches() {
    let source = "
while True:
    try:
        while True: pass
    except BaseException: pass
    finally:
        continue";
    ends(source, within(300), ErrorCode::Timeout).await;
    // A call that the end of the run cancels is an error in the script, which may go on without a bound.
    let source = "
import sys
while True:
    try: call_tool('mock', 'hang')
    except BaseException: pass";
    ends(source, within(300), ErrorCode::Timeout).await;
}

/// The interpreter's own waits, past the event loop: they end with the run, and the thread is free again.
#[tokio::test]
async fn pc_103_sleep() {
    for source in [
        "import time; time.sleep(3600)",
        "import time\nwhile True:\n    try: time.sleep(1)\n    except BaseException: pass",
        "import select; select.select([], [], [], 3600)",
        "import select; select.poll().poll(3_600_000)",
        "import asyncio; await asyncio.sleep(3600)",
        "import wit_world; wit_world.wait(1e300)",
    ] {
        ends(source, within(300), ErrorCode::Timeout).await;
    }
}

/// All of these execute WebAssembly, so they can be interrupted like a loop in Python.
#[test]
fn pc_104_loops_in_c() {
    let sources = [
        "import itertools; sum(itertools.count())",
        "import re; re.match(r'(a+)+$', 'a' * 40 + '!')",
        "import itertools; max(itertools.repeat(1))",
        "import collections, itertools; collections.deque(itertools.repeat(0), maxlen=0)",
        "while True: 7 ** 10 ** 5",
        "import functools\nclass C:\n    def __lt__(self, other):\n        while True: pass\nsorted([C(), C()])",
    ];
    survive(&sources, 700, "TIMEOUT", BESIDE);
    // Fast enough to end without the limit.
    survives("'a' * 10 ** 6 in ('a' * (10 ** 6 - 1) + 'b') * 10", 20_000, "none", BESIDE);
    // Never begun: the size exceeds all memory, so the host is not even asked for it.
    let report = survives("list(range(10 ** 9))", 20_000, "RUNTIME_ERROR", BESIDE);
    assert_eq!(report["error"]["name"], "MemoryError", "{report:#}");
}

/// One instruction that fills or copies all of the memory, again and again.
#[test]
fn pc_105_bulk_memory() {
    let source = "
a = bytearray(8 << 20)
b = bytes(8 << 20)
while True: a[:] = b";
    survives(source, 700, "TIMEOUT", BESIDE);
}

#[test]
fn pc_106_recursion() {
    let attacks = [
        ("def f(): return f()\nf()", "RUNTIME_ERROR"),
        ("import sys\nsys.setrecursionlimit(10 ** 9)\ndef f(): return f()\nf()", "RUNTIME_ERROR"),
        (
            "import sys\nsys.setrecursionlimit(10 ** 9)\nclass C:\n    def __getattr__(self, name): return getattr(self, name + 'x')\nC().a",
            "RUNTIME_ERROR",
        ),
        ("import json; json.loads('[' * 10 ** 5)", "RUNTIME_ERROR"),
        ("eval('(' * 10 ** 5)", "RUNTIME_ERROR"),
        ("a = []\nfor _ in range(10 ** 5): a = [a]\nrepr(a)", "RUNTIME_ERROR"),
        ("import ast; ast.parse('-' * 10 ** 5 + '1')", "RUNTIME_ERROR"),
        ("import re; re.compile('(' * 5000)", "RUNTIME_ERROR"),
        (
            "import sys\nsys.setrecursionlimit(10 ** 9)\nimport re; re.compile('(' * 50_000 + ')' * 50_000)",
            "MEMORY_LIMIT",
        ),
        ("compile('a' + '.b' * 10 ** 5, '', 'eval')", "RUNTIME_ERROR"),
        ("compile('+'.join(['a'] * 10 ** 5), '', 'eval')", "MEMORY_LIMIT"),
        (
            "import sys\nsys.setrecursionlimit(10 ** 9)\nclass A:\n    def __eq__(self, o): return [self] == [o]\nA() == A()",
            "RUNTIME_ERROR",
        ),
        (
            "import copy, sys\nsys.setrecursionlimit(10 ** 9)\na = []\nfor _ in range(10 ** 5): a = [a]\ncopy.deepcopy(a)",
            "MEMORY_LIMIT",
        ),
    ];
    for ((source, code), outcome) in attacks.iter().zip(survives_all(&attacks, 20_000, BESIDE)) {
        // CPython's parser reports its own stack as a lack of memory.
        let parses = source.starts_with("eval(") || source.contains("ast.parse");
        let name = if parses { "MemoryError" } else { "RecursionError" };
        if *code == "RUNTIME_ERROR" {
            assert_eq!(outcome["error"]["name"], name, "{source}: {outcome:#}");
        }
    }
    // So does destroying nested objects: CPython's own measure of its stack does not see all of it.
    let source = "a = None\nfor _ in range(10 ** 6): a = (a,)\ndel a\nreturn 1";
    let outcome = survives(source, 20_000, "RUNTIME_ERROR", BESIDE);
    assert_eq!(outcome["error"]["name"], "RecursionError", "{outcome:#}");
}

/// A deeply nested source ends before anything runs.
#[tokio::test]
async fn pc_106_nested_source() {
    for source in
        ["(".repeat(100_000), "-".repeat(100_000) + "1", "[".repeat(400_000), "x=".repeat(200_000) + "1"]
    {
        let result = limited(&source, small()).await;
        assert_eq!(
            result.error().unwrap().code,
            ErrorCode::SyntaxError,
            "{}: {}",
            &source[..10],
            result.to_json()
        );
    }
}

#[tokio::test]
async fn pc_107_wait_that_never_ends() {
    let (code, message) = failure("import asyncio\nawait asyncio.Event().wait()").await;
    assert_eq!(code, ErrorCode::RuntimeError);
    assert!(message.contains("waits for something that nothing can bring about"), "{message}");
}

#[tokio::test]
async fn pc_108_threads_and_processes() {
    let source = "
names = []
def attempt(function):
    try:
        function()
        names.append('done')
    except Exception as error:
        names.append('refused')
import os, signal, threading
attempt(lambda: threading.Thread(target=print).start())
attempt(lambda: os.fork())
attempt(lambda: signal.alarm(1))
attempt(lambda: __import__('multiprocessing').Process(target=print).start())
attempt(lambda: __import__('concurrent.futures').futures.ThreadPoolExecutor().submit(print).result())
return names";
    assert_eq!(value(source).await, json!(vec!["refused"; 5]));
}

/// CPU time is counted; a limit of zero is refused, and does not give a run that ends at once.
#[tokio::test]
async fn pc_109_no_time_at_all() {
    let (executor, _) = executor().await;
    for limits in
        [Limits { cpu_time: Duration::ZERO, ..small() }, Limits { wall_time: Duration::ZERO, ..small() }]
    {
        let refused = executor.run(Script::python("1").limits(limits)).await;
        assert!(matches!(refused, Err(Error::InvalidOptions { .. })), "{refused:?}");
    }
    let limits = Limits { cpu_time: Duration::from_millis(100), ..within(10_000) };
    violated("sum(i * i for i in range(10 ** 9))", limits, ErrorCode::CpuLimit).await;
}

/// Each of more runs than there are cores ends at its deadline; loops do not delay runs that sleep.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pc_110_deadlines_under_load() {
    let (builder, _) = builder();
    let executor = builder.max_concurrent_runs(32).total_memory_bytes(32 * (64 << 20)).build().unwrap();
    executor.warm(cx::Language::Python).await.unwrap();
    let stopwatch = Stopwatch::start();
    let runs = (0..32).map(|index| {
        let source = ["while True: pass", "import time; time.sleep(3600)", "await mock.hang()"][index % 3];
        let executor = executor.clone();
        tokio::spawn(async move { executor.run(Script::python(source).limits(within(2_000))).await.unwrap() })
    });
    for run in runs.collect::<Vec<_>>() {
        let result = run.await.unwrap();
        assert_eq!(result.error().unwrap().code, ErrorCode::Timeout, "{}", result.to_json());
        let took = result.usage.wall_time;
        assert!(took >= Duration::from_secs(2), "{took:?}");
        stopwatch.promise_of(took, Duration::from_secs(2) + LATE, "a deadline under load");
    }
    assert_eq!(executor.pool_stats(cx::Language::Python).hung, 0);
}

/// Nothing is compiled for a run.
#[tokio::test]
async fn pc_111_many_starts() {
    let (builder, _) = builder();
    let compiled = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let executor = builder
        .on_compile({
            let compiled = std::sync::Arc::clone(&compiled);
            move |_| {
                compiled.fetch_add(1, Ordering::SeqCst);
            }
        })
        .build()
        .unwrap();
    executor.warm(cx::Language::Python).await.unwrap();
    let before = compiled.load(Ordering::SeqCst);
    for index in 0..100 {
        let result = executor.run_py(&format!("{index} + 1")).await.unwrap();
        assert_eq!(result.value(), Some(&json!(index + 1)));
    }
    assert_eq!(compiled.load(Ordering::SeqCst), before);
}

// --- PM: memory -----------------------------------------------------------------------------------------------------

#[test]
fn pm_112_one_large_block() {
    survives("bytearray(1 << 30)", 5_000, "MEMORY_LIMIT", BESIDE);
    let source = "
try: bytearray(1 << 30)
except MemoryError: return len(bytes(1 << 20))";
    let report = survives(source, 5_000, "none", BESIDE);
    assert_eq!(report["value"], 1 << 20, "{report:#}");
}

#[test]
fn pm_113_growth_of_every_kind() {
    let sources = [
        "a = []\nwhile True: a.append(bytearray(2 ** 20))",
        "a = []\nwhile True: a.append(object())",
        "a = {}\nwhile True: a[len(a)] = str(len(a))",
        "a = 'x'\nwhile True: a += a",
        "a = []\nwhile True: a.append(lambda: a)",
        "import asyncio\na = []\nwhile True: a.append(asyncio.ensure_future(asyncio.sleep(1e6)))",
    ];
    survive(&sources, 10_000, "MEMORY_LIMIT", BESIDE);
}

#[test]
fn pm_114_memory_errors_for_ever() {
    let source = "
a = []
while True:
    try:
        while True: a.append(bytearray(2 ** 16))
    except MemoryError: pass";
    survives(source, 1_000, "TIMEOUT", BESIDE);
}

#[test]
fn pm_115_bombs() {
    let attacks = [
        (
            "import zlib\nbomb = zlib.compress(bytes(30 << 20))\nbomb = zlib.compress(bomb * 8)\nzlib.decompress(zlib.decompress(bomb))",
            "MEMORY_LIMIT",
        ),
        ("'x' * 2 ** 31", "RUNTIME_ERROR"),
        ("'{:>2000000000}'.format(1)", "MEMORY_LIMIT"),
        ("import itertools; list(itertools.product(range(1000), repeat=3))", "MEMORY_LIMIT"),
    ];
    survives_all(&attacks, 20_000, BESIDE);
    // CPython's own guard against numbers as text.
    let report = survives("int('9' * 10 ** 7)", 5_000, "RUNTIME_ERROR", BESIDE);
    assert_eq!(report["error"]["name"], "ValueError", "{report:#}");
}

/// Pages that an idle interpreter only reads are taken out of memory, and come back when they are needed.
#[test]
fn idle_interpreters_give_memory_back() {
    let report = idle_trim();
    let megabytes = |name: &str| report[name].as_u64().unwrap();
    assert!(megabytes("idleMegabytes") + 20 <= megabytes("busyMegabytes"), "{report}");
    assert_eq!(report["values"], json!([2, 2, 2]));
}

/// For every output stream: none is blocked like a full pipe, and none costs the host more than the kept output.
#[test]
fn pm_116_print_flood() {
    let sources = [
        "while True: print('x' * 10 ** 6)",
        "import os\nwhile True: os.write(1, b'x' * 10 ** 6)",
        "import os\nwhile True: os.write(2, b'\\xff' * 100)",
        "import wit_world\nwhile True: wit_world.log(wit_world.OutputStream.STDOUT, 'x' * 10 ** 6)",
        "import sys\nwhile True: sys.stderr.write('x')",
    ];
    for (source, outcome) in sources.iter().zip(survive(&sources, 600, "TIMEOUT", BESIDE)) {
        // Each writes far more than is kept, except the one that writes letter by letter.
        let dropped = outcome["outputBytesDropped"].as_u64().unwrap_or(0);
        assert!(dropped > 1 << 20 || source.ends_with("write('x')"), "{source}: {dropped}");
        // A wrong byte becomes the three bytes of U+FFFD: output is counted in the form in which it is kept.
        let kept = outcome["output"].as_str().unwrap_or_default().len();
        assert!(kept <= 1 << 20, "{source}: {kept}");
    }
    // Many lines without a text.
    let source = "import wit_world\nwhile True: wit_world.log(wit_world.OutputStream.STDERR, '')";
    survives(source, 800, "TIMEOUT", 128);
}

/// What one call passes to the host, and what many calls without `await` pass together.
#[test]
fn pm_117_payloads() {
    let source = "
while True: call_tool('mock', 'echo', {'s': 'x' * (16 << 20)})";
    survives(source, 20_000, "MEMORY_LIMIT", BESIDE);
    let direct = "
from wit_world import Operation, start_call, wait
text = 'x' * (9 << 20)
for operation in Operation:
    for names in [(text, 'a', ''), ('mock', text, ''), ('mock', 'echo', text)]:
        for _ in range(20):
            start_call(operation, *names)
            wait(None)
return 'done'";
    let report = survives(direct, 10_000, "none", BESIDE);
    assert_eq!(report["value"], "done", "{report:#}");
    // Calls without `await`: names, questions and answers are bounded together.
    for (calls, call) in [
        (900, "start_call(Operation.TOOL, 'mock', 'hang', '{\"s\":\"' + 'x' * (2 << 20) + '\"}')"),
        (900, "start_call(Operation.TOOL, 'x' * (10 << 20), 'a', '')"),
        (
            900,
            "start_call(Operation.QUERY, '', '', '{\"kind\":\"server\",\"server\":\"' + 'x' * (2 << 20) + '\"}')",
        ),
        // An answer may be as long as a result, 16 MB, and so may all answers together that wait for the guest.
        (40, "start_call(Operation.TOOL, 'mock', 'big', '{\"bytes\": 8000000}')"),
    ] {
        let source = format!(
            "from wit_world import Operation, start_call\nfor _ in range({calls}): {call}\nreturn 'done'"
        );
        survives(&source, 20_000, "none", BESIDE);
    }
}

/// A flood of calls without `await`: each is answered, at once or later.
#[test]
fn pm_117_calls_that_are_not_awaited() {
    let source = "
from wit_world import Operation, start_call, wait
start_call(Operation.TOOL, 'mock', 'echo', '')
wait(None)
answered = {}
for turn in range(100_000):
    call, answer = start_call(Operation.TOOL, 'mock', 'sleep' if turn < 100 else 'echo', '{\"ms\": 10}')
    if answer is not None: answered[call] = answer
at_once = len(answered)
while some := wait(None):
    for completion in some:
        assert completion.call not in answered
        answered[completion.call] = completion.answer
return [at_once >= 99_000, len(answered)]";
    let report = survives(source, 15_000, "none", BESIDE);
    assert_eq!(report["value"], json!([true, 100_000]), "{report:#}");
    // As many as a run may make are made, and each of the others is refused.
    assert_eq!(report["toolCallsMade"], 1_000, "{report:#}");
    assert_eq!(report["toolCallsRefused"], 99_001, "{report:#}");
    let made =
        report["toolCallSummary"].as_array().unwrap().iter().map(|tool| tool["calls"].as_u64().unwrap());
    assert_eq!(made.sum::<u64>(), 1_000, "{report:#}");
    let source = "
from wit_world import Operation, start_call
while True: start_call(Operation.TOOL, 'mock', 'echo', '')";
    survives(source, 800, "TIMEOUT", BESIDE);
}

/// Host resources that a script can hold, through each way in which CPython asks for them.
#[test]
fn pm_118_handles() {
    let source = "
import select, os, time
open_ones = []
for _ in range(100_000):
    try: open_ones.append(select.poll())
    except Exception: break
for _ in range(300): time.sleep(0.000001)
for number in range(100_000):
    try: open_ones.append(os.dup(1))
    except OSError: break
return 'done'";
    survives(source, 20_000, "none", BESIDE);
}

#[test]
fn pm_119_random_bytes() {
    survives("import os; os.urandom(2 ** 30)", 5_000, "MEMORY_LIMIT", BESIDE);
    survives("import os\nwhile True: os.urandom(4 << 20)", 600, "TIMEOUT", BESIDE);
    let report = survives("import os; return len(os.urandom(1 << 20))", 5_000, "none", BESIDE);
    assert_eq!(report["value"], 1 << 20, "{report:#}");
}
