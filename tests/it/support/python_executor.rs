//! Executors that run Python, and a process that its script may end.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use cx::{ErrorCode, ExecuteResult, Executor, ExecutorBuilder, Language, Limits, Script};
use serde_json::{Value, json};

use super::mock::Mock;
use super::stopwatch::{LATE, Stopwatch};

/// Megabytes that a process may need beyond the memory limit of its script, according to docs/threats.md.
pub(crate) const BESIDE: u64 = 64;

/// The peak memory of a process without a hostile script, in megabytes, is measured and subtracted; but at most this
/// much, so that a large leak of cx's own does not hide in it.
const MAX_ORDINARY: u64 = 700;

/// Where Python's compiled code is kept for all tests. No other user can write there, unlike in `/tmp`.
pub(crate) fn cache() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("python")
}

/// A builder with the mock server.
pub(crate) fn builder() -> (ExecutorBuilder, Mock) {
    let mock = Mock::default();
    (Executor::builder().dispatcher(mock.clone()).cache_directory(cache()), mock)
}

/// An executor whose Python is compiled.
pub(crate) async fn executor() -> (Executor, Mock) {
    let (builder, mock) = builder();
    let executor = builder.build().unwrap();
    executor.warm(Language::Python).await.unwrap();
    (executor, mock)
}

/// The default limits with little memory, so that a script fills it quickly, and with more time than it can need on a
/// busy machine.
pub(crate) fn small() -> Limits {
    Limits {
        wall_time: Duration::from_secs(120),
        cpu_time: Duration::from_secs(60),
        memory_bytes: 64 << 20,
        ..Limits::default()
    }
}

/// As [`small`], with a deadline.
pub(crate) fn within(milliseconds: u64) -> Limits {
    Limits { wall_time: Duration::from_millis(milliseconds), ..small() }
}

/// Runs an attack, and then a script that must find nothing of it.
pub(crate) async fn attack(source: &str, limits: Limits) -> (ExecuteResult, Mock) {
    let (executor, mock) = executor().await;
    let result = executor.run(Script::python(source).limits(limits)).await.unwrap();
    untouched(&executor, source).await;
    (result, mock)
}

/// A fresh interpreter contains nothing of earlier ones.
pub(crate) async fn untouched(executor: &Executor, after: &str) {
    let source = "
import builtins, json, os, sys
print('checked')
return ['leaked' in globals(), hasattr(builtins, 'leaked'), hasattr(os, 'leaked'), json.dumps({'a': [1]}), sum([1, 2])]";
    let clean = executor.run_py(source).await.unwrap();
    let expected = json!([false, false, false, "{\"a\": [1]}", 3]);
    assert_eq!(clean.value(), Some(&expected), "after {after}: {}", clean.to_json());
    assert_eq!(clean.printed(), "checked", "after {after}");
}

/// The attack ends with this code, and not much later than its deadline.
pub(crate) async fn ends(source: &str, limits: Limits, code: ErrorCode) -> Mock {
    let (executor, mock) = executor().await;
    let stopwatch = Stopwatch::start();
    let result = executor.run(Script::python(source).limits(limits)).await.unwrap();
    let took = stopwatch.elapsed();
    assert_eq!(result.error().map(|error| error.code), Some(code), "{source}: {}", result.to_json());
    stopwatch.promise_of(took, limits.wall_time + LATE, source);
    super::wait_until(|| executor.pool_stats(Language::Python).hung == 0).await;
    untouched(&executor, source).await;
    mock
}

/// Runs one script and returns its value; the next script must find nothing of it.
pub(crate) async fn value(source: &str) -> Value {
    let (result, _) = attack(source, small()).await;
    result.value().cloned().unwrap_or_else(|| panic!("{source}: {}", result.to_json()))
}

/// The same for the code and the message of its failure.
pub(crate) async fn failure(source: &str) -> (ErrorCode, String) {
    let (result, _) = attack(source, small()).await;
    let error = result.error().unwrap_or_else(|| panic!("{source}: {}", result.to_json()));
    (error.code, error.message.clone())
}

/// Memory that scripts in the child process may use, in megabytes.
pub(crate) const LIMIT: u64 = 64;

/// What a separate process reports about the memory that the idle trim of two warm interpreters gives back.
pub(crate) fn idle_trim() -> Value {
    let output = Command::new(canary_program()).arg("idle").arg(cache()).output();
    let output = output.expect("the canary is built with the tests");
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn canary_program() -> PathBuf {
    let test_binary = std::env::current_exe().unwrap();
    test_binary.parent().unwrap().parent().unwrap().join("examples/canary")
}

/// The child process's report about attacks one after the other, and about honest runs in both languages beside and
/// after them.
fn canary(sources: &[&str], milliseconds: u64) -> Value {
    let mut child = Command::new(canary_program())
        .args([milliseconds.to_string(), LIMIT.to_string(), "python".to_owned()])
        .arg(cache())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the canary is built with the tests");
    child.stdin.take().unwrap().write_all(json!(sources).to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{sources:?}: the process ended with {:?}", output.status);
    // The report is all of stdout: no script can write to it.
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    for (run, expected) in [("honest", 200), ("honestPython", 200), ("canary", 2), ("canaryPython", 2)] {
        assert_eq!(report[run]["value"], expected, "{sources:?}: {run}: {report:#}");
    }
    assert_eq!(report["lost"], 0, "{sources:?}: {report:#}");
    report
}

/// Each attack ends with its code (`none` for a value), hardly late, and the process survives. The process's memory
/// stays below its ordinary memory, the scripts' limit and `beside` megabytes together. Returns the outcome of each.
pub(crate) fn survives_all(attacks: &[(&str, &str)], milliseconds: u64, beside: u64) -> Vec<Value> {
    static ORDINARY: OnceLock<u64> = OnceLock::new();
    let ordinary = *ORDINARY.get_or_init(|| {
        let peak = canary(&["1"], 5_000)["peakMegabytes"].as_u64().unwrap();
        assert!(peak < MAX_ORDINARY, "{peak}");
        peak
    });
    let sources: Vec<&str> = attacks.iter().map(|(source, _)| *source).collect();
    // The deadline is part of a test only if an attack is to end at it; the others are slow on a busy machine.
    let ends_late = attacks.iter().any(|(_, code)| *code == "TIMEOUT");
    let milliseconds = if ends_late { milliseconds } else { milliseconds.max(120_000) };
    let stopwatch = Stopwatch::start();
    let mut report = canary(&sources, milliseconds);
    let peak = report["peakMegabytes"].as_u64().unwrap();
    assert!(peak < ordinary + LIMIT + beside, "{sources:?}: {ordinary} MB without: {report:#}");
    let times: Vec<u64> = serde_json::from_value(report["hostileMs"].take()).unwrap();
    let outcomes: Vec<Value> = serde_json::from_value(report["hostile"].take()).unwrap();
    assert_eq!((outcomes.len(), times.len()), (attacks.len(), attacks.len()));
    let found = outcomes.iter().map(|outcome| outcome["error"]["code"].as_str().unwrap_or("none"));
    let wrong: Vec<_> = attacks.iter().zip(found).filter(|((_, code), found)| code != found).collect();
    assert!(wrong.is_empty(), "not the code that is expected: {wrong:#?}");
    for ((source, _), time) in attacks.iter().zip(times) {
        let took = Duration::from_millis(time);
        stopwatch.promise_of(took, Duration::from_millis(milliseconds) + LATE, source);
    }
    outcomes
}

/// The same for several that end with the same code.
pub(crate) fn survive(sources: &[&str], milliseconds: u64, code: &str, beside: u64) -> Vec<Value> {
    let attacks: Vec<(&str, &str)> = sources.iter().map(|source| (*source, code)).collect();
    survives_all(&attacks, milliseconds, beside)
}

/// The same for one.
pub(crate) fn survives(source: &str, milliseconds: u64, code: &str, beside: u64) -> Value {
    survive(&[source], milliseconds, code, beside).remove(0)
}
