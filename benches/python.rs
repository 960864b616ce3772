//! The cost of a Python run: latency as its distribution, calls, throughput, memory, the time from a process's start to
//! its first value, and computing beside Pyodide and a native CPython in the same run.
//!
//! Needs the command (`cargo build --release --bin cx`), and for the comparison `npm ci` in `benches/pyodide`. A native
//! CPython is taken from `CX_BENCH_PYTHON`, else `python3`. What is missing is reported and left out.
#![expect(clippy::print_stdout, reason = "a program that reports")]
#![expect(clippy::disallowed_methods, reason = "others' interpreters are started to compare with")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cx::{Executor, Language, Limits, Script};
use futures::executor::block_on;
use serde_json::{Value, json};

const RUNS: usize = 1_000;
const UNMEASURED: usize = 50;
/// Calls of one run.
const CALLS: u32 = 5_000;
/// Rounds of each side of a comparison, one after the other so that all see the same machine.
const ROUNDS: usize = 11;
/// Shorter than the default, so that idle memory can be measured.
const REST: Duration = Duration::from_secs(2);

const COMPUTE: [(&str, &str); 3] = [
    ("sum(i*i for i in range(10**6))", "sum(i*i for i in range(10**6))"),
    (
        "JSON of 20,000 records, there and back",
        "import json\nrows = [{'id': i, 'name': f'n{i}', 'tags': ['a', 'b']} for i in range(20_000)]\nlen(json.loads(json.dumps(rows)))",
    ),
    (
        "a regular expression over 400 KB",
        "import re\nlen(re.findall(r'(\\w+)@(\\w+)\\.com', 'user@example.com, nobody at home; ' * 12_000))",
    ),
];

fn executor(warm: usize) -> Executor {
    Executor::builder()
        .languages([Language::Python])
        .warm_instances(warm)
        .cache_directory(cache())
        .trim_after(REST)
        .limits(Limits { tool_calls: 0, ..Limits::default() })
        .tool("native.echo", json!({ "type": "object" }), |arguments: Value| async move {
            Ok::<_, String>(arguments)
        })
        .build()
        .expect("an executor")
}

/// Below the target directory: no other user can write there.
fn cache() -> PathBuf {
    let mut path = std::env::current_exe().expect("a path");
    path.pop();
    path.join("python-cache")
}

fn main() {
    let before = resident_megabytes();
    let idle = executor(2);
    block_on(idle.warm(Language::Python)).expect("an engine");
    // For a profiler: only the runs, one after another.
    if std::env::args().any(|argument| argument == "throughput") {
        return throughput(&idle);
    }
    // For a profiler: one script, with what it prints.
    if let Some(file) = std::env::args().skip_while(|word| word != "script").nth(1) {
        let source = std::fs::read_to_string(file).expect("a script");
        return println!("{}", run(&idle, &source).printed());
    }
    // After a compilation the process is larger than at any later time.
    println!("resident: {before:.1} MB before, {:.1} MB with two warm interpreters", resident_megabytes());
    std::thread::sleep(2 * REST);
    println!("resident: {:.1} MB when idle", resident_megabytes());
    let first = Instant::now();
    run(&idle, "1 + 1");
    println!("the first run after that: {:.0} µs", micros(first.elapsed()));
    memory_in_flight(&idle);
    latency(&idle, "trivial: call to value", "1 + 1");
    latency(&idle, "print and a call", "print('x')\nawait native.echo(a=1)");
    calls(&idle);
    throughput(&idle);
    start();
    compare(&idle);
}

fn run(executor: &Executor, source: &str) -> cx::ExecuteResult {
    let result = block_on(executor.run_py(source)).expect("the executor works");
    assert!(result.error().is_none(), "{}", result.to_json());
    result
}

fn latency(executor: &Executor, name: &str, source: &str) {
    let mut total = Vec::new();
    let mut on_thread = Vec::new();
    let mut cpu = Vec::new();
    for count in 0..RUNS + UNMEASURED {
        block_on(executor.warm(Language::Python)).expect("an engine");
        let started = Instant::now();
        let result = run(executor, source);
        let took = started.elapsed();
        if count >= UNMEASURED {
            total.push(took);
            on_thread.push(result.usage.wall_time);
            cpu.push(result.usage.cpu_time);
        }
    }
    println!("{name}");
    for (what, times) in [("total", &mut total), ("on its thread", &mut on_thread), ("CPU", &mut cpu)] {
        times.sort();
        let at = |percent: usize| micros(times[times.len() * percent / 100]);
        println!("  {what:<14} p50 {:>8.1}  p95 {:>8.1}  p99 {:>8.1} µs", at(50), at(95), at(99));
    }
}

/// The cost of one call in a run with many: the time of a loop with calls less that of the same loop without.
fn calls(executor: &Executor) {
    // In hundreds, whose median counts: on a shared machine one pause takes as long as many calls.
    let timed = |body: &str| {
        let source = format!(
            "import statistics, time\nnow, times = time.perf_counter, []\nfor _ in range({CALLS} // 100):\n    started = now()\n    for i in range(100):\n        {body}\n    times.append(now() - started)\nstatistics.median(times) * 1e6 / 100"
        );
        let mut times: Vec<f64> = (0..ROUNDS)
            .map(|_| run(executor, &source).value().and_then(Value::as_f64).expect("a number"))
            .collect();
        median(&mut times)
    };
    let bare = timed("pass");
    println!("a call of a native tool, sequentially");
    println!("  awaited   {:>6.1} µs", timed("await native.echo(i=i)") - bare);
    println!("  blocking  {:>6.1} µs", timed("call_tool('native', 'echo', {'i': i})") - bare);
    let gathered =
        format!("import asyncio\nlen(await asyncio.gather(*(native.echo(i=i) for i in range({CALLS}))))");
    let mut times: Vec<f64> =
        (0..ROUNDS).map(|_| micros(run(executor, &gathered).usage.wall_time) / f64::from(CALLS)).collect();
    println!("  gathered  {:>6.1} µs", median(&mut times));
}

/// Fresh runs a second, from two callers that never pause.
fn throughput(executor: &Executor) {
    const COUNT: u64 = 2_000;
    let remaining = Arc::new(AtomicU64::new(COUNT));
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let remaining = Arc::clone(&remaining);
            scope.spawn(move || {
                let take = |left: u64| left.checked_sub(1);
                while remaining.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
                    run(executor, "1 + 1");
                }
            });
        }
    });
    println!("fresh runs a second, two callers: {:.0}", COUNT as f64 / started.elapsed().as_secs_f64());
}

/// Resident memory that a run in flight takes, for each of many that wait for a tool's answer.
fn memory_in_flight(executor: &Executor) {
    const MORE: usize = 20;
    let with = |count: usize| {
        let runs: Vec<_> = (0..count)
            .map(|_| {
                let executor = executor.clone();
                let source = "import asyncio, json, re\nrows = [{'id': i} for i in range(1000)]\nawait asyncio.sleep(1.5)\nlen(json.dumps(rows))";
                std::thread::spawn(move || run(&executor, source))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(1_200));
        let resident = resident_megabytes();
        for run in runs {
            run.join().expect("the run ends well");
        }
        resident
    };
    with(2);
    let few = with(2);
    println!("resident: {:.1} MB more for each run in flight", (with(2 + MORE) - few) / MORE as f64);
}

/// From a process's start to its end with one value, on a machine that has not run Python yet and on one
/// that has.
fn start() {
    let mut binary = std::env::current_exe().expect("a path");
    binary.pop();
    if binary.ends_with("deps") {
        binary.pop();
    }
    let binary = binary.join("cx");
    if !binary.exists() {
        return println!("no command: cargo build --release --bin cx");
    }
    let once_in = |cache: &Path, arguments: &[&str]| {
        let started = Instant::now();
        let output = Command::new(&binary)
            .args(arguments)
            .env("XDG_CACHE_HOME", cache)
            .output()
            .expect("the command starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        started.elapsed().as_secs_f64() * 1e3
    };
    let once = |arguments: &[&str]| once_in(&cache(), arguments);
    let python = ["run", "--lang", "py", "-e", "1 + 1"];
    let mut first: Vec<f64> =
        (0..ROUNDS).map(|_| once_in(tempfile::tempdir().expect("a directory").path(), &python)).collect();
    println!("a process from start to end with the first value of a machine: {:.1} ms", median(&mut first));
    once(&python);
    let mut times: Vec<f64> = (0..ROUNDS).map(|_| once(&python)).collect();
    let mut nothing: Vec<f64> = (0..ROUNDS).map(|_| once(&["--version"])).collect();
    println!(
        "a process from start to end with a first value: {:.1} ms ({:.1} ms for `--version`)",
        median(&mut times),
        median(&mut nothing)
    );
}

/// The same snippets in cx, Pyodide and a native CPython, by turns.
fn compare(executor: &Executor) {
    let python = std::env::var("CX_BENCH_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let version = native_version(&python);
    println!(
        "medians of {ROUNDS} in milliseconds: cx (fresh interpreter), Pyodide (one interpreter), {version}"
    );
    let trivial = ("1 + 1", "1 + 1");
    for (name, source) in std::iter::once(trivial).chain(COMPUTE) {
        let mut ours = Vec::new();
        let mut native = Vec::new();
        for _ in 0..ROUNDS {
            block_on(executor.warm(Language::Python)).expect("an engine");
            let started = Instant::now();
            let result = block_on(executor.run(Script::python(source))).expect("the executor works");
            ours.push(started.elapsed().as_secs_f64() * 1e3);
            assert!(result.error().is_none(), "{}", result.to_json());
            native.extend(native_milliseconds(&python, source));
        }
        let show = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
        let (ours, native) = (median(&mut ours), (!native.is_empty()).then(|| median(&mut native)));
        let pyodide = pyodide_milliseconds(source);
        let ratio = native.map(|native| ours / native);
        println!(
            "  {name:<40} {ours:>8.2} {:>8} {:>8}   cx/native {}",
            show(pyodide),
            show(native),
            show(ratio)
        );
    }
    let mut whole: Vec<f64> = (0..ROUNDS)
        .filter_map(|_| {
            let started = Instant::now();
            let output = Command::new(&python).args(["-c", "1 + 1"]).output().ok()?;
            output.status.success().then(|| started.elapsed().as_secs_f64() * 1e3)
        })
        .collect();
    if !whole.is_empty() {
        println!("  `{python} -c '1 + 1'` as a process: {:.1} ms", median(&mut whole));
    }
}

fn native_version(python: &str) -> String {
    let output = Command::new(python).arg("--version").output();
    output.map_or_else(
        |error| format!("no native CPython: {error}"),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}

/// What the snippet takes inside a native interpreter, without its start.
fn native_milliseconds(python: &str, source: &str) -> Option<f64> {
    let timed = "import sys, time\ncode = compile(sys.argv[1], 'snippet', 'exec')\nstarted = time.perf_counter()\nexec(code, {})\nprint((time.perf_counter() - started) * 1e3)";
    let output = Command::new(python).args(["-c", timed, source]).output().ok()?;
    String::from_utf8_lossy(&output.stdout).trim().parse().ok()
}

fn pyodide_milliseconds(source: &str) -> Option<f64> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("benches/pyodide");
    if !directory.join("node_modules/pyodide").exists() {
        return None;
    }
    let output = Command::new("node")
        .current_dir(&directory)
        .args(["run.mjs", &ROUNDS.to_string(), source])
        .output()
        .ok()?;
    let report: Value = serde_json::from_slice(&output.stdout).ok()?;
    report["medians"][0].as_f64()
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
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
