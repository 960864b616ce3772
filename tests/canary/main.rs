//! Runs a script that may harm the process, with an honest run beside it and another one after it,
//! and reports the outcomes of all three. The tests start it as a child and see if it dies.
//!
//! Arguments: wall-clock limit in milliseconds, memory limit in megabytes; for a script in Python also the word
//! `python` and the directory of compiled code. Then there are honest runs in both languages, and several scripts, one
//! after the other: a JSON array of them. The script is on stdin, the report on stdout.
//!
//! With the argument `walk`: many scripts, one a line; see `walk.rs`.
//!
//! With the argument `idle` and the directory of compiled code: what two warm interpreters give back while
//! nothing runs.
#![expect(
    unsafe_code,
    clippy::print_stdout,
    reason = "a test's program: it reports on stdout and ends at once"
)]

#[path = "../it/support/mock.rs"]
mod mock;
mod walk;

use std::io::Read as _;
use std::time::{Duration, Instant};

use cx::{Executor, Language, Limits, Script};
use serde_json::json;

fn main() {
    if std::env::args().nth(1).is_some_and(|word| word == "walk") {
        walk::walk();
        // A hung worker runs on; leaving `main` would run destructors beside it.
        // SAFETY: `_exit` has no preconditions.
        unsafe { libc::_exit(0) }
    }
    // A reply that never comes must fail the test, not hold it up. Longer than any limit of a script here.
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_secs(300));
        // SAFETY: `_exit` has no preconditions.
        unsafe { libc::_exit(9) }
    });
    if std::env::args().nth(1).is_some_and(|word| word == "idle") {
        return idle_trim();
    }
    let number = |position: usize| {
        let argument = std::env::args().nth(position);
        argument.and_then(|text| text.parse().ok()).expect("two numbers")
    };
    let (milliseconds, megabytes): (u64, u64) = (number(1), number(2));
    let mut source = String::new();
    std::io::stdin().read_to_string(&mut source).expect("a script on stdin");
    let limits = Limits {
        wall_time: Duration::from_millis(milliseconds),
        // No attack here is to end for its CPU time.
        cpu_time: Duration::from_millis(milliseconds) + Duration::from_secs(60),
        memory_bytes: usize::try_from(megabytes << 20).expect("a size"),
        ..Limits::default()
    };
    let python = std::env::args().nth(3).is_some_and(|language| language == "python");
    let mut builder = Executor::builder().dispatcher(mock::Mock::default());
    if let Some(cache) = std::env::args_os().nth(4) {
        builder = builder.cache_directory(cache);
    }
    let executor = builder.build().expect("an executor");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut others = vec![Language::TypeScript];
        if python {
            // Compiling now keeps it out of the script's time.
            executor.warm(Language::Python).await.expect("Python");
            others.push(Language::Python);
        }
        let beside: Vec<_> = others
            .iter()
            .map(|language| {
                let (executor, script) = (executor.clone(), honest(*language));
                tokio::spawn(async move { executor.run(script).await })
            })
            .collect();
        let scripts: Vec<Script> = if python {
            let sources: Vec<String> = serde_json::from_str(&source).expect("an array of scripts");
            sources.into_iter().map(Script::python).collect()
        } else {
            vec![Script::typescript(source)]
        };
        let before = status("VmRSS");
        let mut hostile = Vec::new();
        for script in scripts {
            let started = Instant::now();
            let result = executor.run(script.limits(limits)).await;
            let milliseconds = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            hostile.push((result, milliseconds));
        }
        let settled = settled(before).await;
        let mut honest = Vec::new();
        for run in beside {
            honest.push(run.await.expect("the honest run does not panic"));
        }
        let started = Instant::now();
        let mut canary = Vec::new();
        for language in &others {
            canary.push(executor.run(after(*language)).await);
        }
        let canary_ms = started.elapsed().as_millis();
        let report = |result: Result<cx::ExecuteResult, cx::Error>| match result {
            Ok(result) => result.to_json(),
            Err(error) => json!({ "executorError": error.to_string() }),
        };
        let all = |results: Vec<_>| results.into_iter().map(report).collect::<Vec<_>>();
        let (mut honest, mut canary) = (all(honest), all(canary));
        let (hostile, mut hostile_ms): (Vec<_>, Vec<_>) = hostile.into_iter().unzip();
        let mut hostile = all(hostile);
        // On a busy machine a thread may return a moment after the watchdog has answered in its place.
        let language = if python { Language::Python } else { Language::TypeScript };
        let lost = walk::hung_after_grace(&executor, language).await;
        let report = json!({
            "hostile": if python { json!(hostile) } else { json!(hostile.pop()) },
            "hostileMs": if python { json!(hostile_ms) } else { json!(hostile_ms.pop()) },
            "honestPython": python.then(|| honest.pop()),
            "canaryPython": python.then(|| canary.pop()),
            "honest": honest.pop(),
            "canary": canary.pop(),
            "canaryMs": u64::try_from(canary_ms).unwrap_or(u64::MAX),
            "lost": lost,
            "beforeMegabytes": before,
            "settledMegabytes": settled,
            "peakMegabytes": status("VmHWM"),
            "finalMegabytes": status("VmRSS"),
        });
        println!("{report}");
    });
    // A hung worker runs on; leaving `main` would run destructors beside it.
    // SAFETY: `_exit` has no preconditions.
    unsafe { libc::_exit(0) }
}

/// The minimum of resident megabytes within the two seconds that a process has to release memory, and within more of
/// them on a busy machine, where it still has much.
async fn settled(before: u64) -> u64 {
    let began = Instant::now();
    let mut least = status("VmRSS");
    // A little stays for good: code that the first run of a kind loads.
    let stays = || if began.elapsed() < Duration::from_secs(2) { 16 } else { 50 };
    // An engine that is idle for half a minute releases more.
    while least > before + stays() && began.elapsed() < Duration::from_secs(20) {
        tokio::time::sleep(Duration::from_millis(20)).await;
        least = least.min(status("VmRSS"));
    }
    least
}

/// Prints resident megabytes when two interpreters are warm and after some idle seconds, and the values of runs
/// afterwards.
fn idle_trim() {
    let cache = std::env::args_os().nth(2).expect("a directory");
    let builder = Executor::builder()
        .languages([Language::Python])
        .warm_instances(2)
        .trim_after(Duration::from_millis(500));
    let executor = builder.cache_directory(cache).build().expect("an executor");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let report = runtime.block_on(async {
        let warm = async || executor.warm(Language::Python).await.expect("Python");
        warm().await;
        // Interpreters that have run scripts give memory back too.
        executor.run(after(Language::Python)).await.expect("a run");
        warm().await;
        let busy = status("VmRSS");
        std::thread::sleep(Duration::from_secs(2));
        let mut idle = status("VmRSS");
        let began = Instant::now();
        // A busy machine needs longer for it.
        while idle + 20 > busy && began.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(50));
            idle = idle.min(status("VmRSS"));
        }
        let mut values = Vec::new();
        for _ in 0..3 {
            let result = executor.run(after(Language::Python)).await.expect("a run");
            values.push(result.value().cloned());
        }
        json!({ "busyMegabytes": busy, "idleMegabytes": idle, "values": values })
    });
    println!("{report}");
}

/// A run of 200 ms that sums the results of a tool. A busy machine may need far longer for it.
fn honest(language: Language) -> Script {
    let script = match language {
        Language::TypeScript => Script::typescript(
            "let sum = 0; for (let i = 0; i < 20; i++) { sum += (await tools.mock.sleep({ms: 10})).ms; } return sum",
        ),
        Language::Python => {
            Script::python("return sum([(await tools.mock.sleep(ms=10))['ms'] for _ in range(20)])")
        }
        other => unreachable!("{other:?}"),
    };
    script.limits(patient())
}

/// A script that must succeed after everything.
fn after(language: Language) -> Script {
    let script = match language {
        Language::Python => Script::python("import json\nreturn json.loads('2')"),
        _ => Script::typescript("return 1 + 1"),
    };
    script.limits(patient())
}

/// The default limits, and more time than an honest script can need.
fn patient() -> Limits {
    Limits { wall_time: Duration::from_secs(120), ..Limits::default() }
}

/// A line of this process's memory status, in megabytes.
fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(name));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) / 1024
}
