//! `cx serve --log-format json`: notes and logs on stderr.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use rustix::fs::{OFlags, fcntl_setfl};
use serde_json::Value;

use crate::support::serve::Start;

#[test]
fn notes_and_logs_are_lines_of_json() {
    let start = Start::new().server("well", &["well"]).variable("CX_LOG", "cx=debug");
    let (mut command, _directory) =
        start.arguments(&["--http", "127.0.0.1:0", "--log-format", "json", "--drain", "1s"]).command();
    let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (child, mut lines) = with_lines(child);
    let mut child = Ended(child);
    let mut until = |message: &str| -> Value {
        loop {
            let line = lines.next().unwrap_or_else(|| panic!("no line begins with: {message}"));
            let line: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
            for field in ["time", "level", "target"] {
                assert!(line[field].is_string(), "{line}");
            }
            if line["message"].as_str().unwrap().starts_with(message) {
                return line;
            }
        }
    };
    let note = until("listening on http://");
    assert_eq!((note["level"].as_str(), note["target"].as_str()), (Some("info"), Some("cx")), "{note}");
    let log = until("server started");
    assert_eq!((log["level"].as_str(), log["server"].as_str()), (Some("info"), Some("well")), "{log}");
    assert!(log["target"].as_str().unwrap().starts_with("cx::mcp"), "{log}");
    assert!(log["process"].is_u64(), "{log}");
    let kill = Command::new("kill").arg(child.0.id().to_string()).status();
    assert!(kill.unwrap().success());
    until("no more scripts are started");
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
}

/// The same for mistakes.
#[test]
fn a_mistake_is_a_line_of_json() {
    let (mut command, _directory) =
        Start::new().arguments(&["--http", "203.0.113.1:0", "--log-format", "json"]).command();
    let output = command.stdin(Stdio::null()).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8(output.stderr).unwrap();
    let line: Value = serde_json::from_str(stderr.lines().last().unwrap()).unwrap();
    assert_eq!(line["level"], "error", "{line}");
    assert!(line["message"].as_str().unwrap().contains("token"), "{line}");
}

/// Some clients make a pipe of the server's stderr and do not read it.
#[test]
fn a_server_whose_stderr_is_not_read_answers() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    fcntl_setfl(&writer, OFlags::NONBLOCK).unwrap();
    let mut filled = 0;
    while let Ok(count) = rustix::io::write(&writer, &[b'.'; 512]) {
        filled += count;
    }
    fcntl_setfl(&writer, OFlags::empty()).unwrap();
    let start = Start::new().arguments(&["--log-format", "json"]).variable("CX_LOG", "trace");
    let mut client = start.with_stderr_to(writer).spawn().shaken();
    assert_eq!(client.run("return 1")["value"], 1);
    // Lines are written again as soon as they are read.
    let mut early = vec![0; filled];
    reader.read_exact(&mut early).unwrap();
    assert!(early.iter().all(|&byte| byte == b'.'));
    assert_eq!(client.run("return 2")["value"], 2);
    let mut line = String::new();
    BufReader::new(reader).read_line(&mut line).unwrap();
    let line: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
    assert!(line["level"].is_string(), "{line}");
}

/// A process that does not outlive its test.
struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ended_already = self.0.kill();
        let _status = self.0.wait();
    }
}

/// The lines of a process's stderr.
fn with_lines(mut child: std::process::Child) -> (std::process::Child, impl Iterator<Item = String>) {
    let stderr = BufReader::new(child.stderr.take().unwrap());
    (child, stderr.lines().map(Result::unwrap))
}
