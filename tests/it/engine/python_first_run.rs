//! The first Python run of a machine, in processes that have never seen one.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// What a reply may come after its limit; a process's start and end are in it.
const LATE: Duration = Duration::from_secs(3);

/// In a cache of its own, so that it has to compile, which takes ten seconds in the development profile.
#[test]
fn v_267_the_limit_holds_while_python_is_compiled() {
    let cache = tempfile::tempdir().unwrap();
    let started = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_cx"))
        .args(["run", "--lang", "py", "-e", "1 + 1", "--json", "--timeout", "500ms"])
        .env("XDG_CACHE_HOME", cache.path())
        .env("HOME", cache.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["error"]["code"], "TIMEOUT", "{result:#}");
    assert!(result["error"]["hint"].as_str().unwrap().contains("compiled"), "{result:#}");
    assert_eq!(output.status.code(), Some(3));
    assert!(started.elapsed() < LATE, "{:?} after the start: the machine was busy?", started.elapsed());
}
