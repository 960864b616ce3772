//! Runs a script that may harm the process, with an honest run beside it and another one after it,
//! and reports how all three went. The tests start it as a child: if it dies, they see it.
//!
//! Arguments: wall-clock limit in milliseconds, memory limit in megabytes. The script is on stdin,
//! the report on stdout.
#![expect(
    unsafe_code,
    clippy::print_stdout,
    reason = "a test's program: it reports on stdout and ends at once"
)]

#[path = "../it/mock.rs"]
#[expect(unreachable_pub, reason = "the file is a module of the integration tests as well")]
mod mock;

use std::io::Read as _;
use std::time::{Duration, Instant};

use cx::{Executor, Language, Limits, Script};
use serde_json::json;

fn main() {
    let number = |position: usize| {
        let argument = std::env::args().nth(position);
        argument.and_then(|text| text.parse().ok()).expect("two numbers")
    };
    let (milliseconds, megabytes): (u64, u64) = (number(1), number(2));
    let mut source = String::new();
    std::io::stdin().read_to_string(&mut source).expect("a script on stdin");
    let limits = Limits {
        wall_time: Duration::from_millis(milliseconds),
        memory_bytes: usize::try_from(megabytes << 20).expect("a size"),
        ..Limits::default()
    };
    let executor = Executor::builder().dispatcher(mock::Mock::default()).build().expect("an executor");
    // A reply that never comes must fail the test, not hold it up.
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_secs(90));
        // SAFETY: `_exit` has no preconditions.
        unsafe { libc::_exit(9) }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        // Lives from before the hostile script until it is over.
        let (release, released) = tokio::sync::oneshot::channel::<()>();
        let honest = tokio::spawn({
            let executor = executor.clone();
            async move {
                let script = Script::typescript(
                    "let sum = 0; for (let i = 0; i < 20; i++) { sum += (await tools.mock.sleep({ms: 10})).ms; } return sum",
                );
                let result = executor.run(script).await;
                let _ = released.await;
                result
            }
        });
        let started = Instant::now();
        let hostile = executor.run(Script::typescript(source).limits(limits)).await;
        let hostile_ms = started.elapsed().as_millis();
        let _ = release.send(());
        let honest = honest.await.expect("the honest run does not panic");
        let started = Instant::now();
        let canary = executor.run_ts("return 1 + 1").await;
        let canary_ms = started.elapsed().as_millis();
        let report = |result: Result<cx::ExecuteResult, cx::Error>| match result {
            Ok(result) => result.to_json(),
            Err(error) => json!({ "executorError": error.to_string() }),
        };
        let stats = executor.pool_stats(Language::TypeScript);
        let report = json!({
            "hostile": report(hostile),
            "hostileMs": u64::try_from(hostile_ms).unwrap_or(u64::MAX),
            "honest": report(honest),
            "canary": report(canary),
            "canaryMs": u64::try_from(canary_ms).unwrap_or(u64::MAX),
            "lost": stats.lost,
            "peakMegabytes": status("VmHWM"),
            "finalMegabytes": status("VmRSS"),
        });
        println!("{report}");
    });
    // A lost thread runs on; leaving `main` would run destructors beside it.
    // SAFETY: `_exit` has no preconditions.
    unsafe { libc::_exit(0) }
}

/// A line of this process's memory status, in megabytes.
fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(name));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) / 1024
}
