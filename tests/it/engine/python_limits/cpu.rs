//! Attacks on time.

use super::*;

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
    for (source, code) in [
        ("(".repeat(100_000), ErrorCode::SyntaxError),
        ("-".repeat(100_000) + "1", ErrorCode::SyntaxError),
        ("[".repeat(400_000), ErrorCode::SyntaxError),
        // Its tokens alone are more than the run's memory.
        ("x=".repeat(200_000) + "1", ErrorCode::MemoryLimit),
    ] {
        let result = limited(&source, small()).await;
        assert_eq!(result.error().unwrap().code, code, "{}: {}", &source[..10], result.to_json());
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
    let limits = Limits { cpu_time: Duration::from_millis(100), ..within(60_000) };
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
    wait_until(|| executor.pool_stats(cx::Language::Python).hung == 0).await;
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

/// The C library waits for a stream until it has something.
#[tokio::test]
async fn v_762_a_file_that_is_open_for_writing_is_not_read() {
    let source = "
import errno, os
file = os.open('/tmp/a', os.O_WRONLY | os.O_CREAT)
os.write(file, b'abc')
try: os.read(file, 3)
except OSError as error: return errno.errorcode[error.errno]";
    obeyed(source, within(20_000), json!("EBADF")).await;
}
