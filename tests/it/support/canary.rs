//! A process that its script may end: see `tests/canary`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::stopwatch::{LATE, Stopwatch};

/// More milliseconds than a script can need that ends before its deadline, so that its outcome does not depend on the
/// machine.
pub(crate) const ENOUGH: u64 = 120_000;

/// The child process's report about an attack, an honest run beside it and one after it.
pub(crate) fn canary(source: &str, milliseconds: u64, megabytes: u64) -> Value {
    let test_binary = std::env::current_exe().unwrap();
    let program: PathBuf = test_binary.parent().unwrap().parent().unwrap().join("examples/canary");
    let mut child = Command::new(program)
        .args([milliseconds.to_string(), megabytes.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the canary is built with the tests");
    child.stdin.take().unwrap().write_all(source.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{source}: the process ended with {:?}", output.status);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["honest"]["value"], 200, "{source}: {report:#}");
    assert_eq!(report["canary"]["value"], 2, "{source}: {report:#}");
    report
}

/// The attack ends with `code` (`none` for a value), the process survives, and its memory never exceeds `peak`
/// megabytes. An attack that is to end at its deadline has a second. Any other has more time than it can need, so that
/// its code does not depend on the machine.
pub(crate) fn survives(source: &str, code: &str, peak: u64) {
    let limit = Duration::from_millis(if code == "TIMEOUT" { 1_000 } else { ENOUGH });
    let stopwatch = Stopwatch::start();
    let report = canary(source, u64::try_from(limit.as_millis()).unwrap(), 64);
    assert_eq!(report["hostile"]["error"]["code"].as_str().unwrap_or("none"), code, "{source}: {report:#}");
    let took = Duration::from_millis(report["hostileMs"].as_u64().unwrap());
    stopwatch.promise_of(took, limit + LATE, source);
    assert!(report["peakMegabytes"].as_u64().unwrap() < peak, "{source}: {report:#}");
}
