//! Many runs of Python, of every kind and outcome, release everything. Threats 121, 138 and the controls of C3.

use std::time::{Duration, Instant};

use cx::{CancellationToken, ErrorCode, Executor, Language, Limits, Script};
use futures::FutureExt as _;
use serde_json::json;

use crate::support::mock::Mock;
use crate::support::python_executor::{builder, executor, small, untouched, within};
use crate::support::{in_its_own_process, wait_until};

/// What this process has now: resident megabytes, gigabytes of address space, threads, descriptors.
#[derive(Clone, Copy, Debug)]
struct Held {
    resident: u64,
    address_space: u64,
    threads: u64,
    descriptors: u64,
}

fn held() -> Held {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let number = |name: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    Held {
        resident: number("VmRSS:") / 1024,
        address_space: number("VmSize:") >> 20,
        threads: number("Threads:"),
        descriptors: std::fs::read_dir("/proc/self/fd").unwrap().count() as u64,
    }
}

const ORDINARY: &str = "
import asyncio
print('calls')
answers = await asyncio.gather(*(mock.echo(a=number) for number in range(3)))
return sum(answer['a'] for answer in answers) + call_tool('mock', 'echo', {'a': 1})['result']['a']";

/// One run of the kind of `index`, whose outcome is checked.
async fn one(executor: &Executor, index: usize) {
    let ends = async |source: &str, limits: Limits, code: ErrorCode| {
        let result = executor.run(Script::python(source).limits(limits)).await.unwrap();
        assert_eq!(result.error().map(|error| error.code), Some(code), "{source}: {}", result.to_json());
    };
    match index % 50 {
        7 => ends("raise ValueError('no')", small(), ErrorCode::RuntimeError).await,
        13 => ends("while True: pass", within(20), ErrorCode::Timeout).await,
        19 => ends("import os; os._exit(1)", small(), ErrorCode::RuntimeError).await,
        23 => ends("bytearray(1 << 30)", small(), ErrorCode::MemoryLimit).await,
        29 => ends("def (", small(), ErrorCode::SyntaxError).await,
        31 => {
            let token = CancellationToken::new();
            let script = Script::python("print('x')\nawait mock.hang()").cancel_with(token.clone());
            let result = executor.run(script.on_output(move |_| token.cancel())).await.unwrap();
            assert_eq!(result.error().unwrap().code, ErrorCode::Cancelled, "{}", result.to_json());
        }
        37 => {
            // The caller no longer waits for the answer.
            let run = executor.run(Script::python("await mock.hang()").limits(small()));
            assert!(tokio::time::timeout(Duration::from_millis(15), run).await.is_err());
        }
        _ => {
            let result = executor.run_py(ORDINARY).await.unwrap();
            assert_eq!(result.value(), Some(&json!(4)), "{}", result.to_json());
            assert_eq!(result.printed(), "calls");
        }
    }
}

/// Waits until no run is in flight, and the pool has as many instances as it keeps.
async fn settle(executor: &Executor, mock: &Mock) {
    wait_until(|| mock.running.load(std::sync::atomic::Ordering::SeqCst) == 0).await;
    executor.warm(Language::Python).await.unwrap();
    // Workers that are no longer needed end after a second.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
}

/// Waits until this process has hardly more than before.
async fn comes_back_to(before: Held, counts_all: bool) {
    let began = Instant::now();
    loop {
        let after = held();
        // One more interpreter would have 4 GB of address space.
        let is_back = after.resident <= before.resident + 24
            && after.address_space <= before.address_space + 9
            && (!counts_all || after.threads <= before.threads + 1)
            && (!counts_all || after.descriptors <= before.descriptors + 4);
        if is_back {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{before:?} {after:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// 1,000 runs, 160 of which do not end with a value: no growth of memory, address space, threads or descriptors.
async fn a_thousand_runs() {
    let (executor, mock) = executor().await;
    for index in 0..100 {
        one(&executor, index).await;
    }
    settle(&executor, &mock).await;
    let before = held();
    for index in 0..1_000 {
        one(&executor, index).await;
    }
    settle(&executor, &mock).await;
    comes_back_to(before, true).await;
    wait_until(|| executor.pool_stats(Language::Python).hung == 0).await;
    untouched(&executor, "a thousand runs").await;
}

/// Threat 121: the same for runs that take all the memory that they are allowed.
async fn many_runs_with_all_their_memory() {
    let (executor, mock) = executor().await;
    let script = || Script::python("a = []\nwhile True: a.append(bytearray(2 ** 20))").limits(small());
    let mut before = None;
    for index in 0..60 {
        let result = executor.run(script()).await.unwrap();
        assert_eq!(result.error().unwrap().code, ErrorCode::MemoryLimit, "{}", result.to_json());
        if index == 9 {
            settle(&executor, &mock).await;
            before = Some(held());
        }
    }
    settle(&executor, &mock).await;
    comes_back_to(before.unwrap(), false).await;
}

#[test]
fn a_thousand_runs_leave_nothing() {
    in_its_own_process(module_path!(), "a_thousand_runs_leave_nothing", a_thousand_runs());
}

#[test]
fn pm_121_memory_is_given_back() {
    in_its_own_process(module_path!(), "pm_121_memory_is_given_back", many_runs_with_all_their_memory());
}

/// Threat 138: cancelled in the middle of a call, whose answer comes later and is dropped.
#[tokio::test]
async fn px_138_cancelled_in_a_call_then_a_hundred_runs() {
    let (executor, mock) = executor().await;
    for source in [
        "await mock.hang()",
        "call_tool('mock', 'hang')",
        "import asyncio\nawait asyncio.gather(*(mock.hang() for _ in range(20)))",
        "import asyncio, time\ncall = asyncio.ensure_future(mock.sleep(ms=50))\n\
         await asyncio.sleep(0.01)\ntime.sleep(60)",
        "await mock.sleep(ms=40)\nawait mock.hang()",
        "try: await mock.hang()\nfinally: await mock.echo()",
    ] {
        let token = CancellationToken::new();
        let run = executor.run(Script::python(source).limits(small()).cancel_with(token.clone()));
        // A call that has ended meanwhile has been made too.
        let calls = || mock.calls.load(std::sync::atomic::Ordering::SeqCst);
        let before = calls();
        let cancel = async {
            wait_until(|| calls() > before).await;
            token.cancel();
        };
        let (result, ()) = futures::future::join(run, cancel).await;
        let result = result.unwrap();
        assert_eq!(result.error().unwrap().code, ErrorCode::Cancelled, "{source}: {}", result.to_json());
        wait_until(|| mock.running.load(std::sync::atomic::Ordering::SeqCst) == 0).await;
    }
    for _ in 0..100 {
        let result = executor.run_py(ORDINARY).await.unwrap();
        assert_eq!(result.value(), Some(&json!(4)), "{}", result.to_json());
    }
}

/// Dropping the run's future stops it at every point: before a thread has it, in a loop, in a call.
#[tokio::test]
async fn a_dropped_run_ends() {
    let (executor, mock) = executor().await;
    assert!(executor.run(Script::python("while True: pass").limits(small())).now_or_never().is_none());
    for source in ["while True: pass", "await mock.hang()", "import time; time.sleep(15)"] {
        let run = executor.run(Script::python(source).limits(small()));
        assert!(tokio::time::timeout(Duration::from_millis(100), run).await.is_err());
    }
    wait_until(|| mock.running.load(std::sync::atomic::Ordering::SeqCst) == 0).await;
    // A run that still executed would occupy a core; here the test checks only that the threads are free.
    let stats = || executor.pool_stats(Language::Python);
    wait_until(|| stats().ready > 0 && stats().hung == 0).await;
    untouched(&executor, "a dropped run").await;
}

/// An executor that is dropped or closed in the middle of runs ends them, and its threads with them.
#[tokio::test]
async fn an_executor_that_goes_during_a_run() {
    for drops in [true, false] {
        let (executor, mock) = executor().await;
        let runs: Vec<_> = ["while True: pass", "await mock.hang()", "import time; time.sleep(15)"]
            .into_iter()
            .map(|source| {
                let executor = executor.clone();
                tokio::spawn(async move { executor.run(Script::python(source).limits(small())).await })
            })
            .collect();
        wait_until(|| mock.running.load(std::sync::atomic::Ordering::SeqCst) == 1).await;
        if drops {
            for run in &runs {
                run.abort();
            }
            drop(executor);
            for run in runs {
                assert!(run.await.is_err_and(|error| error.is_cancelled()));
            }
        } else {
            executor.close().await;
            let ended = futures::future::join_all(runs).await.into_iter().map(Result::unwrap);
            for result in ended.chain([executor.run_py("1").await]) {
                let result = result.unwrap();
                let code = result.error().map(|error| error.code);
                assert_eq!(code, Some(ErrorCode::Cancelled), "{}", result.to_json());
            }
        }
        wait_until(|| mock.running.load(std::sync::atomic::Ordering::SeqCst) == 0).await;
        let (next, _) = crate::support::python_executor::executor().await;
        untouched(&next, "an executor that has gone").await;
    }
}

/// What all runs may use together: a run that does not fit waits, one that can never fit is refused.
#[tokio::test]
async fn memory_of_all_runs_together() {
    let (builder, mock) = builder();
    let executor = builder.total_memory_bytes(160 << 20).max_concurrent_runs(8).build().unwrap();
    executor.warm(Language::Python).await.unwrap();
    let run =
        || executor.run(Script::python("await mock.sleep(ms=300, together=2)\nreturn 1").limits(small()));
    let results = futures::future::join_all((0..6).map(|_| run())).await;
    for result in results {
        assert_eq!(result.unwrap().value(), Some(&json!(1)));
    }
    assert_eq!(mock.most_running.load(std::sync::atomic::Ordering::SeqCst), 2);
    // In both languages together.
    let python = executor.run(Script::python("await mock.sleep(ms=300)\nreturn 1").limits(small()));
    let big = Limits { memory_bytes: 128 << 20, ..small() };
    let started = Instant::now();
    let typescript = async {
        wait_until(|| mock.running.load(std::sync::atomic::Ordering::SeqCst) == 1).await;
        executor.run(Script::typescript("return 2").limits(big)).await
    };
    let (python, typescript) = futures::future::join(python, typescript).await;
    assert_eq!(python.unwrap().value(), Some(&json!(1)));
    assert_eq!(typescript.unwrap().value(), Some(&json!(2)));
    assert!(started.elapsed() >= Duration::from_millis(300));
}

/// Both languages at once, each with its own state and its own limits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_languages_at_once() {
    let (executor, mock) = executor().await;
    let runs = (0..40).map(|index| {
        let (script, expected) = match index % 4 {
            0 => (Script::python("return (await mock.echo(a=inputs))['a'] + 1"), Some(json!(index + 1))),
            1 => (Script::typescript("return (await mock.echo({a: input})).a + 1"), Some(json!(index + 1))),
            2 => (Script::python("while True: pass"), None),
            _ => (Script::typescript("for (;;);"), None),
        };
        let limits = if expected.is_none() { within(100) } else { small() };
        let executor = executor.clone();
        let script = script.input(json!(index)).limits(limits);
        tokio::spawn(async move { (executor.run(script).await.unwrap(), expected) })
    });
    for run in runs.collect::<Vec<_>>() {
        let (result, expected) = run.await.unwrap();
        match expected {
            Some(expected) => assert_eq!(result.value(), Some(&expected), "{}", result.to_json()),
            None => assert_eq!(result.error().unwrap().code, ErrorCode::Timeout, "{}", result.to_json()),
        }
    }
    assert_eq!(mock.calls.load(std::sync::atomic::Ordering::SeqCst), 20);
}

/// Many runs that end just before their deadline: the deadline of one never stops the next.
#[tokio::test]
async fn a_late_stop_hits_no_other_run() {
    let (executor, _) = executor().await;
    for _ in 0..20 {
        let edge =
            "import time\nend = time.monotonic() + 0.019\nwhile time.monotonic() < end: pass\nreturn 1";
        let _ = executor.run(Script::python(edge).limits(within(20))).await.unwrap();
        let next = executor.run_py("return 1").await.unwrap();
        assert_eq!(next.value(), Some(&json!(1)), "{}", next.to_json());
    }
}
