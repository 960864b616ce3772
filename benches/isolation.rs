//! The cost of worker processes: warm runs, tool calls and fresh runs per second, in this process and in worker
//! processes with one run each and with many. All are in one run of the bench, so that they see the same machine.
//!
//! `cargo bench --bench isolation`, with words that select the rows whose language or mode contains one of them.
#![expect(clippy::print_stdout, reason = "a program that reports")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use cx::{Executor, Isolation, Language, Limits, Script, WorkerProcesses};
use futures::executor::block_on;
use serde_json::{Value, json};

/// Runs one after the other, and those at the start that are not counted.
const RUNS: usize = 150;
const UNMEASURED: usize = 3;
/// Calls of one run.
const CALLS: u32 = 5_000;
/// Runs at the same time, and for how long.
const AT_ONCE: usize = 4;
const THROUGHPUT: Duration = Duration::from_secs(5);
/// A pause before each run that is measured as a warm one: an agent thinks for longer.
const PAUSE: Duration = Duration::from_millis(100);

fn executor(language: Language, isolation: Isolation) -> Executor {
    // As `cx` has one. Without it each worker process of Python unpacks its machine code.
    let cache = std::env::temp_dir().join("cx-bench-isolation");
    let executor = Executor::builder()
        .cache_directory(cache)
        .languages([language])
        .warm_instances(AT_ONCE)
        .isolation(isolation)
        .limits(Limits { tool_calls: 0, ..Limits::default() })
        .tool("native.echo", json!({ "type": "object" }), |arguments: Value| async move {
            Ok::<_, String>(arguments)
        })
        .build()
        .expect("an executor");
    block_on(executor.warm(language)).expect("a warm engine");
    executor
}

fn script(language: Language, typescript: &str, python: &str) -> Script {
    match language {
        Language::Python => Script::python(python),
        _ => Script::typescript(typescript),
    }
}

fn run(executor: &Executor, script: Script) -> cx::ExecuteResult {
    let result = executor.run_blocking(script).expect("a run");
    assert!(matches!(result.outcome, cx::Outcome::Returned(_)), "{:?}", result.outcome);
    result
}

/// The middle and the 99th of a hundred.
fn distribution(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default();
    format!("{:>9.3?} {:>9.3?}", at(50), at(99))
}

/// Whether the arguments choose this row.
fn is_chosen(row: &str) -> bool {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with("--")).peekable();
    words.peek().is_none() || words.any(|word| row.contains(&word))
}

fn main() {
    // This program is its own worker.
    cx::worker_process();
    let process = |runs_per_worker| {
        Isolation::Process(WorkerProcesses { runs_per_worker, ..WorkerProcesses::default() })
    };
    let modes = [
        ("in this process", Isolation::InProcess),
        ("worker, 1 run", process(1)),
        ("worker, 1000 runs", process(1000)),
    ];
    println!(
        "language    where                warm run: p50     p99   beyond this process   a call   runs/s ({AT_ONCE} at once)"
    );
    for language in [Language::TypeScript, Language::Python] {
        let mut places: Vec<Measured> = modes
            .iter()
            .filter(|(name, _)| is_chosen(&format!("{language:?} {name}")))
            .map(|(name, isolation)| Measured {
                name,
                executor: Arc::new(executor(language, isolation.clone())),
                times: Vec::new(),
            })
            .collect();
        warm_runs(language, &mut places);
        for place in &places {
            let here = places.first().filter(|first| first.name == modes[0].0);
            let beyond = here.map(|here| median_difference(&place.times, &here.times));
            println!(
                "{:<11} {:<20} {}  {:>15} µs  {:>7.1} µs  {:>7.0}",
                format!("{language:?}"),
                place.name,
                distribution(place.times.clone()),
                beyond.map_or_else(|| "?".to_owned(), |beyond| format!("{beyond:.0}")),
                call_microseconds(&place.executor, language),
                runs_a_second(&place.executor, language),
            );
        }
    }
}

/// An executor, and the times of its warm runs.
struct Measured<'a> {
    name: &'a str,
    executor: Arc<Executor>,
    times: Vec<Duration>,
}

/// Measures warm runs in turn, so that all modes see the same minutes of the machine.
fn warm_runs(language: Language, places: &mut [Measured<'_>]) {
    for number in 0..RUNS + UNMEASURED {
        for place in &mut *places {
            std::thread::sleep(PAUSE);
            let began = Instant::now();
            run(&place.executor, script(language, "return 1", "return 1"));
            if number >= UNMEASURED {
                place.times.push(began.elapsed());
            }
        }
    }
}

/// The median of the additional time of each run over the previous run in the other mode, in microseconds.
fn median_difference(times: &[Duration], others: &[Duration]) -> f64 {
    let pairs = times.iter().zip(others);
    let mut differences: Vec<f64> =
        pairs.map(|(time, other)| (time.as_secs_f64() - other.as_secs_f64()) * 1e6).collect();
    differences.sort_unstable_by(f64::total_cmp);
    differences.get(differences.len() / 2).copied().unwrap_or(f64::NAN)
}

/// What a call costs in a run with calls one after the other: the median of five runs.
fn call_microseconds(executor: &Executor, language: Language) -> f64 {
    let source = script(
        language,
        &format!(
            "const began = performance.now(); for (let i = 0; i < {CALLS}; i++) await tools.native.echo({{ i }}); \
             return performance.now() - began"
        ),
        &format!(
            "import time\nbegan = time.monotonic()\nfor i in range({CALLS}): await tools.native.echo({{'i': i}})\n\
             return (time.monotonic() - began) * 1000"
        ),
    );
    let milliseconds = (0..5).map(|_| run(executor, source.clone()).value_as::<f64>().unwrap_or(f64::NAN));
    let mut milliseconds: Vec<f64> = milliseconds.collect();
    milliseconds.sort_unstable_by(f64::total_cmp);
    milliseconds[milliseconds.len() / 2] * 1000.0 / f64::from(CALLS)
}

fn runs_a_second(executor: &Arc<Executor>, language: Language) -> f64 {
    let began = Instant::now();
    let threads: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            let executor = Arc::clone(executor);
            std::thread::spawn(move || {
                let mut count = 0_u32;
                while began.elapsed() < THROUGHPUT {
                    run(&executor, script(language, "return 1", "return 1"));
                    count += 1;
                }
                count
            })
        })
        .collect();
    let count: u32 = threads.into_iter().map(|thread| thread.join().expect("a thread")).sum();
    f64::from(count) / THROUGHPUT.as_secs_f64()
}
