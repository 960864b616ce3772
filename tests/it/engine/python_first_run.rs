//! The first Python run of a machine, in processes that have never seen one.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support::stopwatch::{LATE, Stopwatch};

/// In a cache of its own, so that it has to compile, which takes ten seconds in the development profile.
#[test]
fn v_267_the_limit_holds_while_python_is_compiled() {
    let cache = tempfile::tempdir().unwrap();
    let stopwatch = Stopwatch::start();
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
    // The start and the end of a process are in it.
    stopwatch.promise(Duration::from_millis(500) + 2 * LATE, "a reply while Python is compiled");
}
