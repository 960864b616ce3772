//! Latency as its distribution, which criterion's mean hides, and the memory of a warm isolate.
//! Prints p50, p95 and p99 in microseconds.
#![expect(clippy::print_stdout, reason = "a program that reports")]

use std::time::{Duration, Instant};

use cx::{Executor, Language, Script};
use futures::executor::block_on;

/// Runs measured, after a few that are not.
const RUNS: usize = 2_000;
const UNMEASURED: usize = 100;

fn main() {
    let executor = Executor::builder().warm_instances(2).build().expect("an executor");
    let mut source = String::from("interface Row { a: number; b?: string }\n");
    while source.len() < 18_000 {
        source.push_str(
            "function f(row: Row, n: number = 1): string { return `${row.a + n}${row.b ?? ''}`; }\n",
        );
    }
    source.push_str("return 1 + 1");
    println!("memory of a warm isolate: {:.2} MB", isolate_megabytes());
    report("trivial: call to value", &executor, "return 1 + 1");
    report("18 KB of source: call to value", &executor, &source);
    // Static imports are looked up after transpiling and before V8 sees anything, so what a run on its
    // thread takes to be refused is transpiling and a few microseconds.
    let refused = format!("{source};\nimport {{ nothing }} from 'mcp:nowhere'; nothing()");
    report("18 KB of source: transpile, then a refused import", &executor, &refused);
}

fn report(name: &str, executor: &Executor, source: &str) {
    let mut total = Vec::new();
    let mut on_thread = Vec::new();
    let mut cpu = Vec::new();
    let mut queue = Vec::new();
    for run in 0..RUNS + UNMEASURED {
        block_on(executor.warm(Language::TypeScript)).expect("an engine");
        let started = Instant::now();
        let result = block_on(executor.run(Script::typescript(source))).expect("the executor works");
        let took = started.elapsed();
        let as_expected = result.error().is_none_or(|error| error.message.contains("no server"));
        assert!(as_expected, "{}", result.to_json());
        if run >= UNMEASURED {
            total.push(took);
            on_thread.push(result.usage.wall_time);
            cpu.push(result.usage.cpu_time);
            queue.push(result.usage.queue_time);
        }
    }
    println!("{name}");
    for (what, times) in [
        ("total", &mut total),
        ("on its thread", &mut on_thread),
        ("CPU", &mut cpu),
        ("hand-over", &mut queue),
    ] {
        times.sort();
        let at = |percent: usize| micros(times[times.len() * percent / 100]);
        println!("  {what:<14} p50 {:>8.1}  p95 {:>8.1}  p99 {:>8.1}", at(50), at(95), at(99));
    }
}

/// Resident memory that twenty more warm isolates take, for each.
fn isolate_megabytes() -> f64 {
    const MORE: usize = 20;
    let with = |warm: usize| {
        let executor = Executor::builder().warm_instances(warm).build().expect("an executor");
        block_on(executor.warm(Language::TypeScript)).expect("an engine");
        let resident = resident_megabytes();
        drop(executor);
        resident
    };
    // Once before, so that what the process needs once is not counted.
    with(2);
    let few = with(2);
    (with(2 + MORE) - few) / MORE as f64
}

fn resident_megabytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("a line for it");
    let kilobytes = line.split_whitespace().nth(1).and_then(|number| number.parse::<f64>().ok());
    kilobytes.expect("a number") / 1024.0
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
