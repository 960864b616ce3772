//! The cost of a run: `run_ts` on a warm isolate, tool calls, fresh isolates a second.
//!
//! Ids are `typescript/<what>`. Isolates are warm before each measured run, as they are for an agent
//! that thinks between its scripts; `sustained` measures what happens when they are not.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use cx::{Executor, Language, Limits};
use futures::executor::block_on;
use serde_json::{Value, json};

fn executor(warm: usize) -> Executor {
    Executor::builder()
        .warm_instances(warm)
        .limits(Limits { tool_calls: 0, ..Limits::default() })
        .tool("native.echo", json!({ "type": "object" }), |arguments: Value| async move {
            Ok::<_, String>(arguments)
        })
        .build()
        .expect("an executor")
}

/// The time of `count` runs, each on an isolate that is warm when it starts.
fn warm_runs(executor: &Executor, source: &str, count: u64) -> Duration {
    let mut total = Duration::ZERO;
    for _ in 0..count {
        block_on(executor.warm(Language::TypeScript)).expect("an engine");
        let started = Instant::now();
        let result = block_on(executor.run_ts(source)).expect("the executor works");
        total += started.elapsed();
        assert!(result.error().is_none(), "{}", result.to_json());
        black_box(result);
    }
    total
}

fn benches(criterion: &mut Criterion) {
    let executor = executor(2);
    let mut group = criterion.benchmark_group("typescript");
    group.sample_size(50).measurement_time(Duration::from_secs(8));
    group.bench_function("trivial/warm", |bencher| {
        bencher.iter_custom(|count| warm_runs(&executor, "return 1 + 1", count));
    });
    group.sample_size(10);
    // One run makes all calls, so the figure is a call's with the run's own cost spread over them.
    let calls = 10_000;
    group.throughput(Throughput::Elements(calls));
    group.bench_function("call/sequential-10000", |bencher| {
        let source = "for (let i = 0; i < 10_000; i++) await native.echo({ i });";
        bencher.iter_custom(|count| warm_runs(&executor, source, count));
    });
    group.bench_function("call/blocking-10000", |bencher| {
        let source = "for (let i = 0; i < 10_000; i++) call_tool('native', 'echo', { i });";
        bencher.iter_custom(|count| warm_runs(&executor, source, count));
    });
    group.throughput(Throughput::Elements(1_000));
    group.bench_function("call/concurrent-1000", |bencher| {
        let source = "await Promise.all(Array.from({ length: 1_000 }, (_, i) => native.echo({ i })));";
        bencher.iter_custom(|count| warm_runs(&executor, source, count));
    });
    let runs = 500;
    group.throughput(Throughput::Elements(runs));
    group.bench_function("sustained/500-runs", |bencher| {
        bencher.iter_custom(|count| (0..count).map(|_| sustained(&executor, runs)).sum());
    });
    group.finish();
}

/// The time of `count` runs from two callers that never pause.
fn sustained(executor: &Executor, count: u64) -> Duration {
    let started = Instant::now();
    let remaining = Arc::new(std::sync::atomic::AtomicU64::new(count));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let remaining = Arc::clone(&remaining);
            scope.spawn(move || {
                let take = |left: u64| left.checked_sub(1);
                let order = std::sync::atomic::Ordering::Relaxed;
                while remaining.fetch_update(order, order, take).is_ok() {
                    let result = block_on(executor.run_ts("return 1 + 1")).expect("the executor works");
                    assert!(result.error().is_none());
                }
            });
        }
    });
    started.elapsed()
}

criterion_group!(run, benches);
criterion_main!(run);
