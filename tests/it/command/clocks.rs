//! Commands on a machine whose clock is far off: before 1970, as a clock that was never set can be, and after the year
//! 9999. A library that is loaded before the C library shifts the clock.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

/// Shifts the wall clock, and no other clock, by the seconds of a variable.
const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, now);
    char *seconds = getenv("CX_TEST_CLOCK");
    if (seconds && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) now->tv_sec += atol(seconds);
    return result;
}
"#;

/// The library, built with the compiler that also links Rust's programs.
fn library(directory: &Path) -> PathBuf {
    let (source, library) = (directory.join("clock.c"), directory.join("clock.so"));
    fs::write(&source, LIBRARY).unwrap();
    let made =
        Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl").status();
    assert!(made.unwrap().success());
    library
}

fn cx(home: &Path, library: &Path, seconds: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cx"));
    command
        .args(arguments)
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("LD_PRELOAD", library)
        .env("CX_TEST_CLOCK", seconds)
        .stdin(Stdio::null());
    command
}

#[test]
fn a_clock_that_is_far_off_is_no_panic() {
    let directory = tempfile::tempdir().unwrap();
    let library = library(directory.path());
    // 1900, and about the year 12000.
    for (seconds, year) in [("-4000000000", "1970"), ("316000000000", "9999")] {
        let home = directory.path().join(year);
        fs::create_dir(&home).unwrap();
        for arguments in [
            &["sync"][..],
            &["run", "--audit", "trail", "-e", "return 1"],
            &["audit", "verify", "--audit", "trail"],
            &["audit", "show", "--audit", "trail", "--since", "1h"],
            &["doctor", "--offline"],
        ] {
            let output = cx(&home, &library, seconds, arguments).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!said.contains("panicked"), "{year} {arguments:?}: {said}");
            // The findings of the doctor depend on the machine.
            let expected: &[i32] = if arguments[0] == "doctor" { &[0, 1] } else { &[0] };
            let status = output.status.code().unwrap();
            assert!(expected.contains(&status), "{year} {arguments:?}: {output:?}");
        }
        let trail = fs::read_dir(home.join("trail")).unwrap().map(|entry| entry.unwrap().file_name());
        let names: Vec<String> = trail.map(|name| name.to_string_lossy().into_owned()).collect();
        assert!(names.iter().any(|name| name.starts_with(year) && name.ends_with(".jsonl")), "{names:?}");
    }
    let home = directory.path().join("1970");
    let mut server = cx(&home, &library, "-4000000000", &["serve"]);
    let mut server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = server.stdin.take().unwrap();
    let client = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
    });
    for message in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "health", "arguments": {} } }),
    ] {
        writeln!(stdin, "{message}").unwrap();
    }
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(server.stdout.take().unwrap()));
    let answer = lines.find_map(|line| line.ok().filter(|line| line.contains("\"id\":2"))).unwrap();
    assert!(answer.contains("1970-01-01T00:00:00"), "{answer}");
    drop(stdin);
    assert_eq!(server.wait().unwrap().code(), Some(0));
}
