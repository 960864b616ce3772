//! The command, as a process.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::support::{chaos, own_files, python_cache};

/// `cx` in a directory that has the person's files too, of which there are none.
fn command(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cx"));
    own_files(&mut command, directory);
    command
}

/// Runs `cx run` with arguments, in the root directory.
fn cx(arguments: &[&str]) -> Output {
    cx_in(Path::new("/"), arguments, "")
}

fn cx_in(directory: &Path, arguments: &[&str], stdin: &str) -> Output {
    let home = tempfile::tempdir().unwrap();
    let mut child = command(home.path())
        .arg("run")
        .args(arguments)
        .current_dir(directory)
        .env("XDG_CACHE_HOME", cache())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that fails before it reads has closed its stdin.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    child.wait_with_output().unwrap()
}

/// The user's cache, the same for all of these tests. The first that runs Python compiles it; the others find it.
fn cache() -> &'static Path {
    static CACHE: OnceLock<PathBuf> = OnceLock::new();
    CACHE.get_or_init(|| {
        let directory = python_cache();
        let home = tempfile::tempdir().unwrap();
        let warmed = command(home.path()).args(["run", "--lang", "py", "-e", "None"]).output().unwrap();
        assert!(warmed.status.success(), "{warmed:?}");
        directory
    })
}

/// The exit status, stdout and stderr in one text, for a snapshot.
fn shown(output: &Output) -> String {
    format!(
        "exit: {}\n--- stdout\n{}--- stderr\n{}",
        output.status.code().map_or("none".to_owned(), |code| code.to_string()),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    )
}

macro_rules! check {
    ($output:expr) => {
        insta::assert_snapshot!(shown(&$output))
    };
}

#[test]
fn what_is_printed_comes_first_and_the_value_last() {
    check!(cx(&[
        "-e",
        "console.log('a'); console.error('b'); emit('c'); return {d: input.e}",
        "--input",
        r#"{"e": 1}"#
    ]));
}

#[test]
fn what_is_emitted_and_no_text_is_described() {
    let source =
        "emit({ type: 'resource', resource: { uri: 'file:///a.csv', mimeType: 'text/csv', text: 'a,b' } });
        emit({ type: 'image', data: 'aGkh', mimeType: 'image/png' }); return 1";
    let output = cx(&["-e", source]);
    let expected = "[resource: file:///a.csv, text/csv, 3 bytes]\n[image: image/png, 3 bytes]\n1\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

#[test]
fn a_failing_script_shows_its_line() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(
        directory.path().join("sum.ts"),
        "enum Unit { Gram }\n\nfunction total(rows: any[]) {\n  return rows.map((row) => row.weight.value);\n}\n\ntotal([{}]);\n",
    )
    .unwrap();
    check!(cx_in(directory.path(), &["sum.ts"], ""));
}

#[test]
fn a_syntax_error_shows_its_location() {
    check!(cx(&["-e", "const a = 1;\nconst b = = 2;"]));
    // The line is empty.
    let at_end = shown(&cx(&["-e", "if (1) {\n"]));
    assert!(at_end.contains("\n --> eval.ts:2:1\n"), "{at_end}");
}

#[test]
fn a_limit_has_its_own_exit_status() {
    check!(cx(&["-e", "for (;;);", "--timeout", "200ms"]));
    check!(cx(&["-e", "const a = []; for (;;) a.push({})", "--memory", "16MB"]));
}

#[test]
fn the_whole_outcome_as_json() {
    let output = cx(&["-e", "console.log('a'); throw new TypeError('b')", "--json"]);
    let mut report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["executionTimeMs"].take().as_f64().unwrap() > 0.0);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(
        report,
        json!({
            "success": false,
            "output": "a",
            "error": {
                "code": "RUNTIME_ERROR",
                "message": "b",
                "name": "TypeError",
                "line": 1,
                "column": 25,
                "sourceLine": "console.log('a'); throw new TypeError('b')",
                "stack": "TypeError: b\n    at eval.ts:1:25",
            },
            "executionTimeMs": null,
        })
    );
}

#[test]
fn python_prints_first_and_shows_its_value_last() {
    let source = "import sys\nprint('a')\nprint('b', file=sys.stderr)\nemit('c')\nreturn {'d': inputs['e']}";
    check!(cx(&["--lang", "py", "-e", source, "--input", r#"{"e": 1}"#]));
}

#[test]
fn a_failing_python_script_shows_its_line() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(
        directory.path().join("sum.py"),
        "import json\n\ndef total(rows):\n    return sum(row['weight'].value for row in rows)\n\ntotal([{}])\n",
    )
    .unwrap();
    check!(cx_in(directory.path(), &["sum.py"], ""));
}

/// The error of the run and that of the call have one code.
#[test]
fn a_limit_of_calls_has_its_code_once() {
    let directory = tempfile::tempdir().unwrap();
    chaos::configure_well(directory.path());
    let source = "for (const note of ['a', 'b']) await tools.well.slow({ ms: 1, note })";
    let arguments = ["--mcp-config", "mcp.json", "--max-tool-calls", "1", "-e", source];
    let output = cx_in(directory.path(), &arguments, "");
    let shown = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(shown.contains("error[MAX_TOOL_CALLS_EXCEEDED]: the script may make 1 tool call\n"), "{shown}");
}

/// A single frame is the location, which is shown anyway. Notes are more.
#[test]
fn notes_of_an_exception_are_shown() {
    let source = |note: &str| format!("error = ValueError('bad row')\n{note}\nraise error\n");
    for (note, expected) in
        [("error.add_note('row 3 of `users`')", true), ("error.with_traceback(None)", false)]
    {
        let output = cx(&["--lang", "py", "-e", &source(note)]);
        let shown = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(shown.contains("ValueError: bad row"), "{shown}");
        assert_eq!(
            (shown.contains("row 3 of `users`"), shown.contains("stack")),
            (expected, expected),
            "{shown}"
        );
    }
}

/// The mistake is behind the last line.
#[test]
fn an_error_at_the_end_of_a_file_shows_its_location() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("end.ts"), "const a = 1;\nreturn a +\n").unwrap();
    for name in ["run", "check"] {
        let output = command(directory.path()).args([name, "end.ts"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            said.contains("error[SYNTAX_ERROR]: expression expected") && said.contains("end.ts:3:1"),
            "{said}"
        );
    }
}

#[test]
fn a_python_syntax_error_shows_its_location() {
    check!(cx(&["--lang", "py", "-e", "a = 1\nb = = 2"]));
}

#[test]
fn a_limit_of_python_has_its_own_exit_status() {
    check!(cx(&["--lang", "py", "-e", "while True: pass", "--timeout", "1s"]));
    check!(cx(&["--lang", "py", "-e", "a = []\nwhile True: a.append(bytearray(2**20))", "--memory", "64MB"]));
}

#[test]
fn a_limit_of_fuel_ends_python_at_its_count() {
    let counts = "print('begins')\nsum(i * i for i in range(20_000))";
    // The command, with its whole outcome as JSON.
    let run = |fuel: u64| {
        // The first run compiles the form that counts.
        let limits = ["--fuel", &fuel.to_string(), "--timeout", "200s"];
        let output = cx(&[&["--lang", "py", "-e", counts, "--json"], &limits[..]].concat());
        let report: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", shown(&output)));
        (output.status.code(), report)
    };
    let (status, enough) = run(1_000_000_000);
    assert_eq!((status, &enough["value"]), (Some(0), &json!(2_666_466_670_000_u64)), "{enough}");
    let used = enough["fuelUsed"].as_u64().unwrap();
    assert!((100_000..1_000_000_000).contains(&used), "{used}");
    let (status, again) = run(2_000_000_000);
    assert_eq!((status, &again["fuelUsed"]), (Some(0), &json!(used)), "{again}");
    let (status, less) = run(used - used / 100);
    assert_eq!((status, &less["error"]["code"]), (Some(3), &json!("FUEL_LIMIT")), "{less}");
    assert_eq!(less["output"], "begins", "{less}");
    assert!(less["fuelUsed"].as_u64().unwrap() < used, "{less}");
    let (_status, one) = run(1);
    assert_eq!(one["error"]["message"], "the script used more than 1 unit of fuel", "{one}");
    // For a person.
    let output = cx(&["--lang", "py", "-e", counts, "--fuel", &(used / 2).to_string()]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(3) && said.contains("error[FUEL_LIMIT]"), "{}", shown(&output));
}

#[test]
fn the_whole_outcome_of_python_as_json() {
    let output = cx(&["--lang", "py", "-e", "print('a'); raise TypeError('b')", "--json"]);
    let mut report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["executionTimeMs"].take().as_f64().unwrap() > 0.0);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    insta::assert_json_snapshot!(report);
}

#[test]
fn python_comes_from_stdin() {
    check!(cx_in(Path::new("/"), &["-", "--lang", "py", "--input", "[1, 2]"], "len(inputs)"));
}

#[test]
fn scripts_come_from_stdin_and_input_from_a_file() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("input.json"), "[1, 2]").unwrap();
    check!(cx_in(directory.path(), &["-", "--input", "@input.json"], "return input.length"));
}

#[test]
fn bad_input_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fs::write(path.join("latin1.ts"), b"// one\n// f\xfcr\n").unwrap();
    check!(cx_in(path, &["missing.ts"], ""));
    check!(cx_in(path, &["."], ""));
    check!(cx_in(path, &["latin1.ts"], ""));
    check!(cx_in(path, &["-e", "1", "--input", "{a: 1}"], ""));
    check!(cx_in(path, &["-e", "1", "--input", "@missing.json"], ""));
    check!(cx_in(path, &["-e", "1", "--allow", "fs*"], ""));
    check!(cx_in(path, &["-e", "1", "--memory", "1"], ""));
    check!(cx_in(path, &["-e", "1", "--mcp-config", "missing.json"], ""));
    assert_eq!(cx_in(path, &[], "").status.code(), Some(2));
    assert_eq!(cx_in(path, &["-e", "1", "--timeout", "soon"], "").status.code(), Some(2));
    fs::write(path.join("wide.ts"), b"\xff\xfe1\0").unwrap();
    let wide = cx_in(path, &["wide.ts"], "");
    assert_eq!(
        String::from_utf8_lossy(&wide.stderr),
        "error: the script `wide.ts` is UTF-16: save it as UTF-8\n"
    );
    let isolation = cx_in(path, &["-e", "1", "--isolation", "x"], "");
    let message = String::from_utf8_lossy(&isolation.stderr);
    assert!(message.contains("[possible values: in-process, process]"), "{message}");
    assert_eq!(cx_in(path, &["-e", "1", "--isolation", "none"], "").status.code(), Some(0));
    // TypeScript has no fuel.
    assert_eq!(cx_in(path, &["-e", "1", "--fuel", "1000"], "").status.code(), Some(2));
}

#[test]
fn a_source_of_twenty_megabytes_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("big.ts"), "x;\n".repeat(7_000_000)).unwrap();
    check!(cx_in(directory.path(), &["big.ts"], ""));
}

/// Threat 98.
#[test]
fn control_characters_do_not_reach_the_terminal() {
    let output = cx(&["-e", r#"console.log("\u001b]0;title\u0007\u202e"); throw new Error("\u001b[2J")"#]);
    let all = [output.stdout, output.stderr].concat();
    assert!(!all.contains(&0x1b) && !all.contains(&0x07), "{}", String::from_utf8_lossy(&all));
    assert!(String::from_utf8_lossy(&all).contains(r"\u{1b}]0;title\u{7}\u{202e}"));
}

#[test]
fn output_streams_and_an_interrupt_ends_the_run() {
    let home = tempfile::tempdir().unwrap();
    let mut child = command(home.path())
        .args(["run", "-e", "console.log('started'); await new Promise((r) => setTimeout(r, 60_000))"])
        .args(["--timeout", "60s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0; 8];
    child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
    assert_eq!(&line, b"started\n");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Threat 777. The shell and the kernel may each send the signal.
#[test]
fn v_777_a_closed_terminal_stops_the_run_and_its_end_is_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = command(directory.path())
        .args(["run", "-e", "console.log('started'); await new Promise((r) => setTimeout(r, 60_000))"])
        .args(["--timeout", "60s", "--audit", "trail", "--record", "run.jsonl"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0; 8];
    child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
    for _ in 0..2 {
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(directory.path().join("run.jsonl").is_file());
    let listed = command(directory.path()).args(["runs", "--audit", "trail"]).output().unwrap();
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("CANCELLED"), "{listed}");
}

/// Threat 200: the reader has closed stdout. The run ends as by SIGPIPE.
#[test]
fn a_closed_stdout_ends_the_run_quietly() {
    let home = tempfile::tempdir().unwrap();
    let mut child = command(home.path())
        .args(["run", "-e", "for (;;) { console.log('x'.repeat(1000)); await null }", "--timeout", "20s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut start = [0; 100];
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut start).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(141));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// Neither the machine's time zone nor its language reaches a script.
#[test]
fn the_time_zone_is_the_arguments_or_utc() {
    let typescript = "[new Date(0).getHours(), Intl.DateTimeFormat().resolvedOptions().timeZone, new Date(0).toLocaleString()]";
    let python = "import time\n[time.localtime(0).tm_hour, time.tzname[0], time.ctime(0)]";
    let home = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let output = command(home.path())
            .arg("run")
            .args(arguments)
            .env("XDG_CACHE_HOME", cache())
            .envs([("TZ", "America/New_York"), ("LANG", "de_DE.UTF-8"), ("LC_ALL", "de_DE.UTF-8")])
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    for (arguments, expected) in [
        (vec!["-e", typescript], r#"[0,"UTC","1/1/1970, 12:00:00 AM"]"#),
        (vec!["--lang", "py", "-e", python], r#"[0,"UTC","Thu Jan  1 00:00:00 1970"]"#),
        (vec!["--time-zone", "Asia/Tokyo", "-e", typescript], r#"[9,"Asia/Tokyo","1/1/1970, 9:00:00 AM"]"#),
        (
            vec!["--time-zone", "Asia/Tokyo", "--lang", "py", "-e", python],
            r#"[9,"JST","Thu Jan  1 09:00:00 1970"]"#,
        ),
    ] {
        let (code, stdout, stderr) = run(&arguments);
        assert_eq!(
            (code, stdout.split_whitespace().collect::<String>()),
            (Some(0), expected.replace(' ', "")),
            "{stderr}"
        );
    }
    let (code, stdout, stderr) = run(&["--time-zone", "Tokio", "-e", "console.log(1)"]);
    assert_eq!((code, &*stdout), (Some(2), ""));
    assert!(
        stderr.contains("invalid `--time-zone`") && stderr.contains("did you mean `Asia/Tokyo`?"),
        "{stderr}"
    );
}
