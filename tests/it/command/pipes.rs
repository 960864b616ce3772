//! Pipes and endless files where the command expects files of its own or of other programs.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use super::home::Home;
use crate::support::serve::{WATCHDOG, wait_for_end};

impl Home {
    /// Puts a pipe, to which nothing writes, in the place of a file.
    fn make_pipe(&self, path: &str) {
        let path = self.path(path);
        let directory = path.parent().unwrap();
        fs::create_dir_all(directory).unwrap();
        // As cx makes its own, whatever the umask.
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
    }

    /// The exit status and all output of a command.
    fn end(&self, arguments: &[&str]) -> (i32, String) {
        // What it prints fits into the pipes.
        let mut command = self.command(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let status = wait_for_end(&mut child, WATCHDOG);
        let output = child.wait_with_output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (status.code().unwrap(), String::from_utf8_lossy(&text).into_owned())
    }
}

/// Opening a pipe waits for who writes to it: each of these commands waited without end.
#[test]
fn v_605_no_command_waits_for_a_pipe_in_the_place_of_a_file() {
    let home = Home::new();
    home.make_pipe(".local/state/cx/last-sync.json");
    let (status, text) = home.end(&["sync"]);
    assert!(status == 2 && text.contains("last-sync.json`: it is not a regular file: remove it"), "{text}");
    let (status, text) = home.end(&["sync", "--status"]);
    assert!(status == 1 && text.contains("it was never run"), "{text}");

    home.make_pipe(".config/systemd/user/cx-sync.timer");
    let (status, text) = home.end(&["sync", "--install", "--scheduler", "systemd"]);
    assert!(status == 2 && text.contains("cx-sync.timer`: it is not a regular file: remove it"), "{text}");
    home.make_pipe(".local/state/cx/setup/lock");
    let (status, text) = home.end(&["setup", "--yes"]);
    assert!(status == 2 && text.contains("setup/lock is not a regular file"), "{text}");

    home.make_pipe(".local/state/cx/running/12-34.json");
    let (status, text) = home.end(&["top", "--once"]);
    assert!(status == 0 && text.contains("no `cx serve` of yours is running"), "{text}");

    home.make_pipe("trail/2026-01-01.jsonl");
    for arguments in [&["runs", "--audit", "trail"][..], &["audit", "--audit", "trail", "verify"]] {
        let (status, text) = home.end(arguments);
        assert_eq!(status, 2, "{text}");
        assert!(text.contains("trail/2026-01-01.jsonl: expected a regular file"), "{text}");
    }

    // A line is printed before: an object about the failure would be read as another one.
    home.write("lines/2026-01-01.jsonl", "{\"event\":\"e\"}\n");
    home.make_pipe("lines/2026-01-02.jsonl");
    let (status, text) = home.end(&["audit", "--audit", "lines", "show", "--json"]);
    let expected = "{\"event\":\"e\"}\nerror: failed to read the audit trail in lines: ";
    assert!(status == 2 && text.starts_with(expected), "{text}");

    home.make_pipe("types/cx.d.ts");
    let (status, text) = home.end(&["types", "--out", "types", "--check"]);
    assert!(status == 2 && text.contains("cx.d.ts`: expected a regular file"), "{text}");
}

/// Writing to a pipe waits for who reads it, as one does that came with a workspace.
#[test]
fn v_733_no_command_waits_for_the_reader_of_a_pipe_that_nobody_has_named() {
    let home = Home::new();
    home.make_pipe("types/cx.d.ts");
    home.make_pipe("man/cx.1");
    for arguments in [&["types", "--out", "types"][..], &["man", "--out", "man"]] {
        let (status, text) = home.end(arguments);
        assert!(status == 2 && text.contains("`: it is not a regular file: remove it"), "{text}");
    }
    let (status, text) = home.end(&["sync", "--types", "types"]);
    assert!(status == 1 && text.contains("types/cx.d.ts`: it is not a regular file"), "{text}");
}

/// A pipe that the user has named is written to when its reader comes. Until then a signal ends the command, which did
/// not look at signals any more.
#[test]
fn a_trace_or_a_recording_for_a_pipe_does_not_outlast_a_signal() {
    let home = Home::new();
    home.make_pipe("files/pipe.html");
    for option in ["--trace", "--record"] {
        let mut command = home.command(&["run", "-e", "return 1", option, "files/pipe.html"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        // The value is printed before the file is written.
        let mut value = [0; 2];
        child.stdout.as_mut().unwrap().read_exact(&mut value).unwrap();
        // One signal, which comes before or while the file is written.
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        assert_eq!(wait_for_end(&mut child, WATCHDOG).code(), Some(130), "{option}");
    }
}

/// A file of gigabytes, and one that never ends.
#[test]
fn v_605_no_command_reads_more_of_a_file_than_it_can_use() {
    let home = Home::new();
    home.write("trail/2026-01-01.jsonl", "{}\n");
    let verify = |key: &str| home.end(&["audit", "--audit", "trail", "verify", "--key", key]);
    fs::File::create(home.path("key")).unwrap().set_len(1 << 33).unwrap();
    for key in [home.path("key").as_path(), Path::new("/dev/zero")] {
        let (status, text) = verify(key.to_str().unwrap());
        assert!(status == 2 && text.contains("error: the key `"), "{text}");
        assert!(text.contains("is larger than 1048576 bytes"), "{text}");
    }
    fs::create_dir_all(home.path(".local/state/cx")).unwrap();
    fs::File::create(home.path(".local/state/cx/last-sync.json")).unwrap().set_len(1 << 33).unwrap();
    let (status, text) = home.end(&["sync"]);
    assert_eq!(status, 0, "{text}");
    let record = fs::read(home.path(".local/state/cx/last-sync.json")).unwrap();
    assert!(record.starts_with(b"{"), "it is replaced");
}
