//! The canary for many scripts: reads one a line, runs it, and reports its outcome and its cost to the process.
//!
//! A line is a JSON object: `source`, `python`, `ms` and `mb` (the limits), `beside` (whether an honest run goes at the
//! same time). So is the answer. When a thread has not returned, the answer says so and the process should be replaced.

use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cx::{Executor, Language, Limits, Script};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{after, honest, mock, status};

/// How long a thread that could not be stopped has to return after the answer: several times the duration of a finite
/// call that ignores the request to stop. Time for which it waits for a processor does not count: it has the lowest
/// priority, and on a busy machine gets none for seconds.
const GRACE: Duration = Duration::from_secs(2);

/// How often a thread of the test looks at the clock, to measure how late everything is on this machine now.
const PULSE: Duration = Duration::from_millis(10);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Task {
    source: String,
    python: bool,
    ms: u64,
    mb: u64,
    beside: bool,
}

/// Answers tasks until stdin ends.
pub(crate) fn walk() {
    let cache = std::env::args_os().nth(2);
    let mut builder = Executor::builder().dispatcher(mock::Mock::default());
    if let Some(cache) = &cache {
        builder = builder.cache_directory(cache);
    }
    let executor = builder.build().expect("an executor");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    if cache.is_some() {
        runtime.block_on(executor.warm(Language::Python)).expect("Python");
    }
    for line in std::io::stdin().lock().lines() {
        let task: Task = serde_json::from_str(&line.expect("a line")).expect("a task");
        let answer = runtime.block_on(perform(&executor, task));
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{answer}").and_then(|()| stdout.flush()).expect("stdout is open");
    }
}

async fn perform(executor: &Executor, task: Task) -> Value {
    let language = if task.python { Language::Python } else { Language::TypeScript };
    let limits = Limits {
        wall_time: Duration::from_millis(task.ms),
        memory_bytes: usize::try_from(task.mb << 20).expect("a size"),
        tool_calls: 10_000,
        ..Limits::default()
    };
    let script = match language {
        Language::Python => Script::python(task.source),
        _ => Script::typescript(task.source),
    };
    let before = status("VmRSS");
    // Writing this resets Linux's record of the peak.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let beside = task.beside.then(|| {
        let executor = executor.clone();
        tokio::spawn(async move { executor.run(honest(language)).await })
    });
    let pulse = Pulse::start();
    let started = Instant::now();
    let result = executor.run(script.limits(limits)).await;
    let elapsed = started.elapsed();
    let late = pulse.stop();
    let hung = hung_after_grace(executor, language).await;
    let peak = status("VmHWM");
    let value = |result: Result<cx::ExecuteResult, cx::Error>| match result {
        Ok(result) => result.to_json(),
        Err(error) => json!({ "executorError": error.to_string() }),
    };
    let beside = match beside {
        Some(beside) => value(beside.await.expect("the honest run does not panic")),
        None => Value::Null,
    };
    let next = value(executor.run(after(language)).await);
    json!({
        "result": value(result),
        "ms": millis(elapsed),
        "lateMs": late,
        "lost": hung,
        "growthMb": peak.saturating_sub(before),
        "honest": beside,
        "next": next,
    })
}

/// How many threads have not returned although they have had [`GRACE`] since now.
pub(crate) async fn hung_after_grace(executor: &Executor, language: Language) -> usize {
    let (answered, waited) = (Instant::now(), waited_for_processors());
    loop {
        let hung = executor.pool_stats(language).hung;
        let waited = waited_for_processors().saturating_sub(waited);
        if hung == 0 || answered.elapsed().saturating_sub(waited) > GRACE {
            return hung;
        }
        tokio::time::sleep(PULSE).await;
    }
}

/// The total time for which the threads that execute scripts were ready to run and got no processor.
fn waited_for_processors() -> Duration {
    let waited = |task: &Path| {
        let name = std::fs::read_to_string(task.join("comm")).ok()?;
        if !["cx-js-", "cx-py-"].iter().any(|start| name.starts_with(start)) {
            return None;
        }
        // Nanoseconds on a processor, and those of waiting for one.
        let times = std::fs::read_to_string(task.join("schedstat")).ok()?;
        times.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    Duration::from_nanos(tasks.filter_map(|task| waited(&task.path())).sum())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A thread that only reads the clock: its worst lateness is that of the machine.
struct Pulse {
    ended: Arc<AtomicBool>,
    worst: Arc<AtomicU64>,
    thread: std::thread::JoinHandle<()>,
}

impl Pulse {
    fn start() -> Self {
        let (ended, worst) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (its_end, its_worst) = (Arc::clone(&ended), Arc::clone(&worst));
        let thread = std::thread::spawn(move || {
            while !its_end.load(Ordering::Relaxed) {
                let before = Instant::now();
                std::thread::sleep(PULSE);
                its_worst.fetch_max(millis(before.elapsed().saturating_sub(PULSE)), Ordering::Relaxed);
            }
        });
        Self { ended, worst, thread }
    }

    /// The worst lateness in milliseconds.
    fn stop(self) -> u64 {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.join().expect("the control thread does not panic");
        self.worst.load(Ordering::Relaxed)
    }
}
