//! Latency as its distribution: what criterion's mean hides. Prints p50, p95 and p99 in microseconds.
#![expect(clippy::print_stdout, reason = "a program that reports")]

use std::time::{Duration, Instant};

use cx::{Executor, Script};
use futures::executor::block_on;

/// Runs measured, after a few that are not.
const RUNS: usize = 2_000;
const UNMEASURED: usize = 100;

fn main() {
    let executor = Executor::builder().warm_isolates(2).build().expect("an executor");
    let mut source = String::from("interface Row { a: number; b?: string }\n");
    while source.len() < 18_000 {
        source.push_str(
            "function f(row: Row, n: number = 1): string { return `${row.a + n}${row.b ?? ''}`; }\n",
        );
    }
    source.push_str("return 1 + 1");
    report("trivial: call to value", &executor, "return 1 + 1");
    report("18 KB of source: call to value", &executor, &source);
}

fn report(name: &str, executor: &Executor, source: &str) {
    let mut total = Vec::new();
    let mut on_thread = Vec::new();
    let mut cpu = Vec::new();
    let mut queue = Vec::new();
    for run in 0..RUNS + UNMEASURED {
        block_on(executor.warm());
        let started = Instant::now();
        let result = block_on(executor.run(Script::typescript(source))).expect("the executor works");
        let took = started.elapsed();
        assert!(result.error().is_none(), "{}", result.to_json());
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

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
