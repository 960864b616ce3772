//! The cost of the audit trail for a call on the run's path: the same 10,000 calls without a trail, with one, with
//! contents, and with a required one, where each call waits for its line.
//!
//! Ids are `audit/<what>`. The difference to `audit/off`, for one call, is the cost. It is the CPU time of the
//! script's thread, which other programs of the machine change little. `audit/waits-<what>` is the time by the
//! clock, which for a required trail has the waits.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use cx::audit::AuditOptions;
use cx::{Executor, Language, Limits};
use futures::executor::block_on;
use serde_json::{Value, json};

const CALLS: u64 = 10_000;

fn executor(options: Option<AuditOptions>) -> Executor {
    let builder = Executor::builder()
        .warm_instances(2)
        .limits(Limits { tool_calls: 0, ..Limits::default() })
        .tool("native.echo", json!({ "type": "object" }), |arguments: Value| async move {
            Ok::<_, String>(arguments)
        });
    let builder = match options {
        Some(options) => builder.audit(options),
        None => builder,
    };
    builder.build().expect("an executor")
}

/// The CPU time of `count` runs, or their time by the clock, each on an isolate that is warm when it starts.
fn runs(executor: &Executor, count: u64, by_the_clock: bool) -> Duration {
    let mut total = Duration::ZERO;
    for _ in 0..count {
        block_on(executor.warm(Language::TypeScript)).expect("an engine");
        let source = "for (let i = 0; i < 10_000; i++) await native.echo({ i });";
        let started = Instant::now();
        let result = block_on(executor.run_ts(source)).expect("the executor works");
        total += if by_the_clock { started.elapsed() } else { result.usage.cpu_time };
        assert!(result.error().is_none(), "{}", result.to_json());
        black_box(result);
        // The writer's own time is not the run's.
        std::thread::sleep(Duration::from_millis(200));
    }
    total
}

fn benches(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().expect("a directory");
    let options = AuditOptions::new(directory.path().join("trail"));
    let mut contents = options.clone();
    contents.contents = true;
    let mut required = options.clone();
    required.required = true;
    let mut group = criterion.benchmark_group("audit");
    group.sample_size(10).throughput(Throughput::Elements(CALLS));
    for (name, options) in
        [("off", None), ("on", Some(options)), ("contents", Some(contents)), ("required", Some(required))]
    {
        let executor = executor(options);
        group.bench_function(name, |bencher| bencher.iter_custom(|count| runs(&executor, count, false)));
        group.bench_function(format!("waits-{name}"), |bencher| {
            bencher.iter_custom(|count| runs(&executor, count, true));
        });
        if let Some(status) = executor.audit_status() {
            assert_eq!(status.failure, None);
        }
    }
    group.finish();
}

criterion_group!(audit, benches);
criterion_main!(audit);
