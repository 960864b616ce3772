//! `cx audit` and `cx runs`.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use crate::support::chaos;
use crate::support::interop::telemetry_python;
use crate::support::serve::{END, Start, WATCHDOG, wait_for_end};
use crate::support::stopwatch::Stopwatch;

/// A user with an audit trail.
struct User(tempfile::TempDir);

impl User {
    /// Waits if it is almost midnight, when another file of the trail begins.
    fn new() -> Self {
        const DAY: u64 = 86_400;
        const LONGEST: u64 = 120;
        let left = DAY - SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() % DAY;
        if left < LONGEST {
            std::thread::sleep(Duration::from_secs(left));
        }
        Self(tempfile::tempdir().unwrap())
    }

    fn home(&self) -> &Path {
        self.0.path()
    }

    fn trail(&self) -> PathBuf {
        self.home().join("trail")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(env!("CARGO_BIN_EXE_cx"), arguments)
    }

    fn command_of(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.home());
        for (name, directory) in [
            ("HOME", "."),
            ("XDG_CACHE_HOME", "cache"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_STATE_HOME", "state"),
        ] {
            command.env(name, self.home().join(directory));
        }
        command
    }

    fn cx(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// What a command prints that succeeds.
    fn prints(&self, arguments: &[&str]) -> String {
        let output = self.cx(arguments);
        assert!(output.status.success(), "{}", text(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The configuration of the user, with a server and this value of `audit`.
    fn configure(&self, audit: &Value) {
        let config =
            json!({ "mcpServers": { "s": chaos::entry(&["well"]) }, "audit": audit, "deny": ["s.fail"] });
        let directory = self.home().join("config/cx");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("config.json"), config.to_string()).unwrap();
    }

    fn file(&self) -> PathBuf {
        let mut files = fs::read_dir(self.trail()).unwrap().map(|entry| entry.unwrap().path());
        files.find(|path| path.extension().is_some_and(|ending| ending == "jsonl")).unwrap()
    }
}

fn text(output: &Output) -> String {
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{:?}\n{out}\n{error}", output.status.code())
}

#[test]
fn a_trail_is_shown_verified_signed_and_exported() {
    let user = User::new();
    user.configure(&json!({ "directory": user.trail(), "contents": true }));
    let nothing = text(&user.cx(&["audit", "show"]));
    assert!(nothing.contains("there is no audit trail in "), "{nothing}");
    let source = "await tools.s.echo({ text: 'a\\nb', password: 'hunter2' }); await tools.s.fail({})";
    let output = user.cx(&["run", "-e", source]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(user.prints(&["audit", "verify"]).ends_with("nothing is wrong\n"));
    let shown = user.prints(&["audit", "show"]);
    assert!(!shown.contains("hunter2"), "{shown}");
    for part in [
        "logger.started",
        "run.started",
        "call.will",
        "rule=default",
        "call.did",
        "call.refused",
        "\"deny: s.fail\"",
    ] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    // Runs.
    let runs: Value = serde_json::from_str(&user.prints(&["runs", "list", "--json"])).unwrap();
    let id = runs[0]["id"].as_str().unwrap();
    assert_eq!(runs[0]["ended"]["code"], "RUNTIME_ERROR", "{runs}");
    let list = user.prints(&["runs", "list"]);
    // One was sent, and the other refused.
    assert!(
        list.starts_with(id) && list.contains("typescript") && list.trim_end().ends_with("  1 call"),
        "{list}"
    );
    assert_eq!(user.prints(&["runs"]), list);
    assert_eq!(user.prints(&["audit", "show", "--run", id]), user.prints(&["runs", "show", id]));
    assert_eq!(user.prints(&["audit", "show", "--run", &id[..6]]), user.prints(&["runs", "show", id]));
    // The latest one, and one by the beginning of its id.
    assert_eq!(user.prints(&["runs", "show"]), user.prints(&["runs", "show", id]));
    assert_eq!(user.prints(&["runs", "show", &id[..6]]), user.prints(&["runs", "show", id]));
    assert_eq!(user.cx(&["runs", "show", "absent"]).status.code(), Some(2));
    assert_eq!(user.prints(&["audit", "show", "--since", "1h"]), shown);
    // Exports.
    let csv = user.prints(&["audit", "export", "--format", "csv"]);
    assert_eq!(csv.lines().count(), 1 + shown.lines().count());
    assert!(csv.starts_with("seq,at,event,run,call,server,tool,"), "{csv}");
    let logs: Value =
        serde_json::from_str(&user.prints(&["audit", "export", "--format", "otlp-logs"])).unwrap();
    let records = logs["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array().unwrap();
    assert_eq!(records.len(), shown.lines().count());
    assert_eq!(records[1]["eventName"], "cx.audit.run.started");
    // A checkpoint that is kept.
    let kept = user.home().join("kept");
    user.prints(&["audit", "checkpoint", "--out", kept.to_str().unwrap()]);
    let verified = user.prints(&["audit", "verify", "--json", "--checkpoint", kept.to_str().unwrap()]);
    assert_eq!(serde_json::from_str::<Value>(&verified).unwrap()["ok"], true);
    // The key that is kept with it, and another one.
    let verified_with = |key: PathBuf| {
        let (kept, key) = (kept.to_str().unwrap(), key.to_str().unwrap());
        user.cx(&["audit", "verify", "--checkpoint", kept, "--key", key]).status.code()
    };
    assert_eq!(verified_with(user.trail().join("key.pub")), Some(0));
    user.prints(&["run", "--audit", user.home().join("other").to_str().unwrap(), "-e", "return 1"]);
    assert_eq!(verified_with(user.home().join("other/key.pub")), Some(1));
    let output = user.cx(&["audit", "verify", "--key", "config/cx/config.json"]);
    let said = text(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("with the key config/cx/config.json: the key is not a public key of a trail"),
        "{said}"
    );
    // A beginning of several ids.
    user.prints(&["run", "-e", "return 2"]);
    let output = user.cx(&["runs", "show", ""]);
    let said = text(&output);
    assert!(said.contains("2 runs begin with ``; write more of the id: ") && said.contains(id), "{said}");
    let output = user.cx(&["audit", "show", "--run", ""]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    assert!(text(&output).contains("2 runs begin with ``"), "{}", text(&output));
    assert!(user.prints(&["runs", "show"]).contains("sourceBytes=8"), "the latest");
    // An edit.
    let before = fs::read_to_string(user.file()).unwrap();
    fs::write(user.file(), before.replacen("\"echo\"", "\"ech0\"", 1)).unwrap();
    let output = user.cx(&["audit", "verify"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("is not what was written: its hash differs"), "{}", text(&output));
}

/// `--since` leaves out what is older, in each command that has it.
#[test]
fn since_leaves_out_what_is_older() {
    let user = User::new();
    user.configure(&json!({ "directory": user.trail() }));
    user.prints(&["run", "-e", "return 'old'"]);
    // As if the line were of an earlier year: `show` does not verify.
    let file = user.file();
    let mut old = String::new();
    for line in fs::read_to_string(&file).unwrap().lines() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        line["at"] = "2020-01-01T00:00:00.000Z".into();
        old.push_str(&format!("{line}\n"));
    }
    fs::write(&file, &old).unwrap();
    fs::rename(&file, user.trail().join("2020-01-01.jsonl")).unwrap();
    user.prints(&["run", "-e", "return 'new'"]);
    let runs = |more: &[&str]| -> Vec<String> {
        let list = user.prints(&[&["runs", "list", "--json"][..], more].concat());
        let list: Vec<Value> = serde_json::from_str(&list).unwrap();
        list.iter().map(|run| run["id"].as_str().unwrap().to_owned()).collect()
    };
    let all = runs(&[]);
    assert_eq!(all.len(), 2);
    assert_eq!(runs(&["--since", "1h"]), all[1..]);
    for command in [&["audit", "show"][..], &["audit", "export", "--format", "csv"]] {
        let (shown, recent) = (user.prints(command), user.prints(&[command, &["--since", "1h"]].concat()));
        assert!(shown.contains(&all[0]) && shown.contains("2020-01-01"), "{shown}");
        assert!(recent.contains(&all[1]) && !recent.contains("2020-01-01"), "{recent}");
    }
}

/// A selection of nothing is not a trail that is switched off, and neither is silent.
#[test]
fn where_there_is_nothing_to_show_the_reason_is_said() {
    let user = User::new();
    user.configure(&json!({ "directory": user.trail() }));
    let said = |arguments: &[&str], more: &[&str]| {
        let output = user.cx(&[arguments, more].concat());
        assert!(output.status.success(), "{}", text(&output));
        text(&output)
    };
    let commands = [&["audit", "show"][..], &["audit", "export", "--format", "csv"]];
    for command in commands {
        let nothing = said(command, &[]);
        assert!(nothing.contains("there is no audit trail in "), "{nothing}");
    }
    assert!(said(&["runs"], &[]).contains("switches it on"));
    user.prints(&["run", "-e", "return 1"]);
    for command in commands {
        for more in [["--run", "absent"], ["--since", "0s"]] {
            let nothing = said(command, &more);
            assert!(nothing.contains("is of that run or time; `cx runs list` lists runs"), "{nothing}");
        }
        let all = said(command, &[]);
        assert!(all.contains("run.started") && !all.contains("is of that run"), "{all}");
    }
    let none = said(&["runs", "list"], &["--since", "0s"]);
    assert!(none.contains("no runs within `--since` in the audit trail in "), "{none}");
}

/// THREATS 546: the name that a script calls a tool by is text wherever it is printed: no formula of a spreadsheet, no
/// line of its own, and no escape sequence that a terminal obeys.
#[test]
fn v_546_names_are_texts_in_what_is_printed() {
    let user = User::new();
    user.configure(&json!({ "directory": user.trail() }));
    let names = ["=1+1", "@a", "=HYPERLINK(\"b\")\nrun.ended", "\u{1b}[31mred"];
    let input = json!(names.map(|name| format!("mcp__s__{name}"))).to_string();
    let source = "for (const name of input) await callMCPTool(name, {}).catch(() => {})";
    user.prints(&["run", "-e", source, "--input", &input]);
    let table = user.prints(&["audit", "export", "--format", "csv"]);
    for cell in [",s,'=1+1,", ",s,'@a,", ",s,\"'=HYPERLINK(\"\"b\"\")\nrun.ended\","] {
        assert!(table.contains(cell), "{cell}: {table}");
    }
    let shown = user.prints(&["audit", "show"]);
    assert_eq!(shown.lines().count(), fs::read_to_string(user.file()).unwrap().lines().count(), "{shown}");
    assert!(shown.contains("tool=@a") && !shown.contains('\u{1b}'), "{shown}");
}

/// OpenTelemetry's own classes read the export, and find the lines of the trail in it.
#[test]
fn exported_log_records_are_those_of_opentelemetry() {
    const READER: &str = "
import sys
from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

for line in sys.stdin:
    request = Parse(line, ExportLogsServiceRequest())
    for record in request.resource_logs[0].scope_logs[0].log_records:
        print(record.event_name, record.time_unix_nano > 0, record.body.string_value)
";
    let user = User::new();
    user.configure(&json!({ "directory": user.trail() }));
    user.prints(&["run", "-e", "return await tools.s.echo({ text: 'a' })"]);
    let exported = user.prints(&["audit", "export", "--format", "otlp-logs"]);
    let mut reader = Command::new(telemetry_python())
        .args(["-c", READER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    reader.stdin.take().unwrap().write_all(exported.as_bytes()).unwrap();
    let output = reader.wait_with_output().unwrap();
    assert!(output.status.success(), "{exported}");
    let mut expected = String::new();
    for line in fs::read_to_string(user.file()).unwrap().lines() {
        let fields: Value = serde_json::from_str(line).unwrap();
        expected.push_str(&format!("cx.audit.{} True {line}\n", fields["event"].as_str().unwrap()));
    }
    assert!(expected.contains("cx.audit.call.will True"), "{expected}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

/// Threat 727. Lines of a megabyte, and a run of more than 64 MiB.
#[test]
fn v_727_what_is_printed_of_another_ones_trail_takes_bounded_memory() {
    let user = User::new();
    let long = "a".repeat(600_000);
    let line = |event: &str| format!("{}\n", json!({ "event": event, "run": "r", "text": long }));
    let trail = |calls: usize| line("run.started") + &line("call.will").repeat(calls);
    fs::create_dir(user.trail()).unwrap();
    let file = user.trail().join("2026-01-01.jsonl");
    fs::write(&file, trail(4)).unwrap();
    // Two lines complete a request.
    let exported = user.prints(&["audit", "--audit", "trail", "export", "--format", "otlp-logs"]);
    assert_eq!(exported.lines().count(), 3);
    let show = ["runs", "--audit", "trail", "show", "r", "--json"];
    let run: Value = serde_json::from_str(&user.prints(&show)).unwrap();
    assert_eq!(run["events"].as_array().unwrap().len(), 5);
    fs::write(&file, trail(119)).unwrap();
    let refused = user.cx(&show);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused).contains("the events of `r` are more than 64 MiB"), "{}", text(&refused));
}

/// `--follow` shows lines that are written later, and none twice, until it is interrupted.
#[test]
fn a_trail_is_followed_until_an_interrupt() {
    let user = User::new();
    user.configure(&json!({ "directory": user.trail() }));
    user.prints(&["run", "-e", "return 'first'"]);
    let mut command = user.command(&["audit", "show", "--follow", "--json"]);
    let mut following = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (sender, lines) = channel();
    let stdout = BufReader::new(following.stdout.take().unwrap());
    std::thread::spawn(move || {
        for line in stdout.lines().map_while(Result::ok) {
            let _gone = sender.send(serde_json::from_str::<Value>(&line).unwrap());
        }
    });
    // The line with which a run ends.
    let mut seen = Vec::new();
    let mut next_run = || {
        loop {
            let line = lines.recv_timeout(WATCHDOG).expect("a line");
            let is_last = line["event"] == "run.ended";
            seen.push(line["hash"].clone());
            if is_last {
                return line["run"].as_str().unwrap().to_owned();
            }
        }
    };
    let first = next_run();
    for _ in 0..2 {
        user.prints(&["run", "-e", "await tools.s.echo({ text: 'later' })"]);
        assert_ne!(next_run(), first);
    }
    let pid = rustix::process::Pid::from_child(&following);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let stopwatch = Stopwatch::start();
    let began = Instant::now();
    let status = loop {
        match following.try_wait().unwrap() {
            Some(status) => break status,
            None if began.elapsed() < WATCHDOG => std::thread::sleep(Duration::from_millis(5)),
            None => {
                following.kill().unwrap();
                panic!("it goes on after an interrupt");
            }
        }
    };
    stopwatch.promise(END, "the end of `--follow` after an interrupt");
    // The status of programs that an interrupt ends.
    assert_eq!(
        (status.signal(), status.code()),
        (Some(rustix::process::Signal::INT.as_raw()), None),
        "{status:?}"
    );
    let mut stderr = String::new();
    following.stderr.unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(stderr, "");
    seen.extend(lines.iter().map(|line| line["hash"].clone()));
    let all: Vec<Value> = user
        .prints(&["audit", "show", "--json"])
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["hash"].clone())
        .collect();
    // A checkpoint, or the end of the last writer, may have been written after the interrupt.
    assert!(all.starts_with(&seen), "{seen:?} {all:?}");
}

/// Threat 779. Nothing is printed after the reader has gone: `cx audit show --follow | head -4` went on.
#[test]
fn v_779_a_trail_is_followed_until_its_reader_is_gone() {
    let user = User::new();
    user.configure(&json!({ "directory": user.trail() }));
    user.prints(&["run", "-e", "return 1"]);
    let count = user.prints(&["audit", "show"]).lines().count();
    let mut command = user.command(&["audit", "show", "--follow"]);
    let mut following = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    for _ in 0..count {
        lines.next().unwrap().unwrap();
    }
    drop(lines);
    assert_eq!(wait_for_end(&mut following, WATCHDOG).code(), Some(141));
}

/// Each client of an agent starts its own server, and all write to one trail.
#[test]
fn servers_of_several_clients_write_one_trail() {
    let user = User::new();
    let trail = user.trail();
    let start = || Start::new().arguments(&["--audit", trail.to_str().unwrap()]).spawn().shaken();
    let mut clients = [start(), start()];
    for _ in 0..5 {
        for client in &mut clients {
            client.run("return 1");
        }
    }
    let health = clients[0].wait_for_health(|health| health["auditLog"]["lines"].as_u64() > Some(10));
    assert_eq!(health["auditLog"]["enabled"], true);
    assert!(health["auditLog"]["failure"].is_null());
    clients.into_iter().for_each(crate::support::serve::Client::end);
    let output = user.prints(&["audit", "verify", "--audit", trail.to_str().unwrap(), "--json"]);
    let found: Value = serde_json::from_str(&output).unwrap();
    assert_eq!((&found["ok"], &found["writers"], &found["openCalls"]), (&json!(true), &json!(2), &json!(0)));
    let runs = user.prints(&["runs", "list", "--audit", trail.to_str().unwrap()]);
    assert_eq!(runs.lines().filter(|line| line.contains("  ok  ")).count(), 10, "{runs}");
}

/// A full disk, simulated by a limit of the file's size: existing lines stay whole, the run goes on, and the user is
/// told.
#[test]
fn a_full_disk_leaves_whole_lines_and_fails_no_run() {
    let user = User::new();
    let trail = user.trail();
    let run = format!(
        "ulimit -f 4; exec '{}' run --audit '{}' -e 'return 7'",
        env!("CARGO_BIN_EXE_cx"),
        trail.display()
    );
    let mut has_failed = false;
    for _ in 0..6 {
        let mut command = Command::new("sh");
        command.args(["-c", &run]).current_dir(user.home()).env("HOME", user.home());
        command.env_remove("XDG_CACHE_HOME").env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "7\n");
        let warning = format!("the audit trail cannot be written: {}: ", trail.display());
        has_failed |= String::from_utf8_lossy(&output.stderr).contains(&warning);
    }
    assert!(has_failed, "the limit was not reached");
    assert!(fs::read_to_string(user.file()).unwrap().ends_with('\n'));
    let verified = user.prints(&["audit", "verify", "--audit", trail.to_str().unwrap()]);
    assert!(verified.contains("nothing is wrong"), "{verified}");
}

/// The user's decisions about trust are in the trail.
#[test]
fn trust_is_in_the_trail() {
    let user = User::new();
    user.configure(&json!({ "directory": user.trail() }));
    let file = user.home().join(".mcp.json");
    fs::write(&file, r#"{"mcpServers":{}}"#).unwrap();
    user.prints(&["trust", "--yes", file.to_str().unwrap()]);
    user.prints(&["trust", "--revoke", ".mcp.json"]);
    let shown = user.prints(&["audit", "show"]);
    assert!(shown.contains("trust.given") && shown.contains("trust.revoked"), "{shown}");
    assert_eq!(shown.matches(file.to_str().unwrap()).count(), 2, "{shown}");
    // On a full disk the user is told which trail lacks it, as by other commands.
    let trust = format!("ulimit -f 4; exec '{}' trust --yes .mcp.json", env!("CARGO_BIN_EXE_cx"));
    let warning = format!("warning: the audit trail cannot be written: {}: ", user.trail().display());
    let is_told = (0..20).any(|_| {
        let output = user.command_of("sh", &["-c", &trust]).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        String::from_utf8_lossy(&output.stderr).contains(&warning)
    });
    assert!(is_told, "{warning}");
}
