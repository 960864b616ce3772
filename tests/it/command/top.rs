//! `cx top`: one frame as text, and at a terminal.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::serve::{Client, Start};
use crate::support::serve_http::wait_for;
use crate::support::ui::cx;

fn once(directory: &Path) -> String {
    let output = cx(directory, &["top", "--once"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn listening() -> Client {
    let start = Start::new().server("well", &["well"]).server("other", &["well"]);
    start.arguments(&["--metrics", "127.0.0.1:0"]).with_stderr().spawn().shaken()
}

/// A server's file, locked by this process, with the address of a listener that gives any answer.
fn registered(directory: &Path, address: Value) -> File {
    let running = directory.join("cx/running");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&running).unwrap();
    let path = running.join("99-1790000000.json");
    let server = json!({
        "process": 99, "started": 1_790_000_000_u64, "version": "0", "transport": "http", "workspace": "/w\u{1b}[31m",
        "address": address, "token": "secret",
    });
    fs::write(&path, server.to_string()).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let file = File::open(&path).unwrap();
    file.try_lock().unwrap();
    file
}

#[test]
fn one_frame_of_the_running_servers() {
    let directory = tempfile::tempdir().unwrap();
    let none = once(directory.path());
    assert!(none.contains("0 servers") && none.contains("no `cx serve` of yours is running"), "{none}");
    let mut client = listening();
    client.run("for (let i = 0; i < 5; i++) await tools.well.echo({ text: 'x'.repeat(4000) }); return 1");
    client.run("throw new Error('no')");
    let silent = Start::new().beside(&client).spawn().shaken();
    // A busy server may answer too late.
    let is_whole = |frame: &String| frame.contains("2 servers") && !frame.contains("cannot be read");
    let frame = wait_for(|| Some(once(client.directory())).filter(is_whole));
    let row = |name: &str| -> Vec<String> {
        let line = frame.lines().find(|line| line.split_whitespace().next() == Some(name));
        line.unwrap_or_else(|| panic!("{name}: {frame}")).split_whitespace().map(str::to_owned).collect()
    };
    // Process, transport, age, runs and their maximum, queued, ended, failed.
    let server = row(&client.process().to_string());
    assert_eq!(
        (&*server[1], &*server[3], &*server[4], &*server[5], &*server[6]),
        ("stdio", "0/100", "0", "2", "1")
    );
    let upstream = row("well");
    assert_eq!(upstream[1..7], [&*client.process().to_string(), "closed", "0", "0", "5", "0"], "{frame}");
    assert!(frame.contains("does not listen: start it with --metrics"), "{frame}");
    assert!(frame.contains("tokens kept out") && !frame.contains('\u{1b}'), "{frame}");
    assert!(frame.lines().all(|line| line.chars().count() <= 100), "{frame}");
    silent.end();
    client.end();
}

#[test]
fn what_a_server_answers_is_text_within_bounds() {
    let directory = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let _file = registered(directory.path(), json!(address.to_string()));
    // Escaped labels, values that are not numbers, and a name that would move the cursor.
    let odd = "# HELP x y\ncx_runs_active 3\ncx_runs_limit 7 1790000000000\nbroken\nbroken{a=\"b\nbroken{a=\"b\"}\n\
         circuit_breaker_state{server=\"a\\\"},{b\\\\ \u{1b}[2J\"} 1\ncx_runs_queued NaN nonsense\n\
         pool_queue_depth{server=\"a\\\"},{b\\\\ \u{1b}[2J\"} 12\n";
    // The listener is closed when there is none.
    let page = Arc::new(Mutex::new(Some(odd.to_owned())));
    let answering = std::thread::spawn({
        let page = Arc::clone(&page);
        move || {
            let mut seen = Vec::new();
            loop {
                let (mut stream, _) = listener.accept().unwrap();
                let Some(page) = page.lock().unwrap().clone() else { return seen };
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut line = String::from("-");
                while !line.trim().is_empty() {
                    line.clear();
                    let _gone = reader.read_line(&mut line);
                    seen.push(line.trim().to_owned());
                }
                let head =
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", page.len());
                let _gone = stream.write_all(format!("{head}{page}").as_bytes());
            }
        }
    });
    // On a busy machine an answer may come too late.
    let frame_in_time = || {
        wait_for(|| {
            Some(once(directory.path())).filter(|frame| !frame.contains("its metrics cannot be read"))
        })
    };
    let frame = frame_in_time();
    assert!(frame.contains("3/7") && frame.contains("open") && frame.contains("12"), "{frame}");
    assert!(frame.contains("a\"},{b\\") && !frame.contains('\u{1b}'), "{frame}");
    assert!(frame.contains("1 circuit breaker not closed"), "{frame}");
    *page.lock().unwrap() = Some("x".repeat(1 << 20));
    let frame = frame_in_time();
    assert!(frame.contains("0/-"), "{frame}");
    *page.lock().unwrap() = None;
    drop(TcpStream::connect(address).unwrap());
    let seen = answering.join().unwrap();
    assert!(seen.contains(&"authorization: Bearer secret".to_owned()), "{seen:?}");
    // The listener is gone.
    let frame = once(directory.path());
    assert!(frame.contains("its metrics cannot be read"), "{frame}");
}

/// The token of a running server is sent to the address in its file.
#[test]
fn a_file_that_others_can_read_or_write_is_no_server() {
    let directory = tempfile::tempdir().unwrap();
    let file = registered(directory.path(), json!("127.0.0.1:1"));
    for (mode, is_listed) in [(0o600, true), (0o640, false), (0o602, false), (0o600, true)] {
        file.set_permissions(fs::Permissions::from_mode(mode)).unwrap();
        let frame = once(directory.path());
        assert_eq!(!frame.contains("no `cx serve` of yours is running"), is_listed, "{mode:o}: {frame}");
    }
}

/// A line of a shell, with `cx top`, at a terminal of 24 rows.
fn at_a_terminal(directory: &Path, answer: &str, line: &str) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/terminal.py");
    let cx = env!("CARGO_BIN_EXE_cx");
    let line = format!(
        "stty rows 24 cols 80; {}; echo \"status $?\"; stty -a",
        line.replace("cx top", &format!("{cx} top"))
    );
    let mut command = Command::new("python3");
    command
        .arg(script)
        .args([answer, "sh", "-c", &line])
        .env("XDG_STATE_HOME", directory)
        .env("HOME", directory)
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR")
        .stdin(Stdio::null());
    command
}

/// A server that starts while `cx top` runs appears in the same frame.
#[test]
fn what_happens_is_drawn_while_it_is_watched() {
    let client = listening();
    let mut watching = at_a_terminal(client.directory(), "q", "cx top")
        // The name of an upstream server, of a cx server that has not started yet.
        .env("CX_QUESTION", "arrived")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut screen = Vec::new();
    let mut stdout = BufReader::new(watching.stdout.take().unwrap());
    while !String::from_utf8_lossy(&screen).contains("q quit") {
        let piece = stdout.fill_buf().unwrap().to_vec();
        assert!(!piece.is_empty(), "{}", String::from_utf8_lossy(&screen));
        stdout.consume(piece.len());
        screen.extend(piece);
    }
    let later = Start::new().beside(&client).server("arrived", &["well"]);
    let later = later.arguments(&["--metrics", "127.0.0.1:0"]).spawn().shaken();
    stdout.read_to_end(&mut screen).unwrap();
    watching.wait().unwrap();
    let screen = String::from_utf8_lossy(&screen);
    // The frame was drawn before the key that was typed then ended the program.
    let (_, after) = screen.split_once("arrived").unwrap_or_else(|| panic!("{screen:?}"));
    assert!(after.contains("<typed>") && after.contains("status 0"), "{screen:?}");
    later.end();
    client.end();
}

#[test]
fn at_a_terminal_until_q_or_a_signal() {
    let client = listening();
    let screen = |answer: &str, line: &str| {
        let output = at_a_terminal(client.directory(), answer, line).output().unwrap();
        String::from_utf8_lossy(&output.stdout).replace('\r', "")
    };
    for (answer, line) in [("q", "cx top"), ("", "timeout --foreground -s TERM 20 cx top")] {
        let screen = screen(answer, line);
        // The alternate screen, a frame, and the terminal restored.
        assert!(screen.contains("\x1b[?1049h") && screen.contains("\x1b[?1049l"), "{screen:?}");
        assert!(screen.contains("RUNS") && screen.contains("q quit"), "{screen:?}");
        assert!(screen.contains(" icanon") && screen.contains(" echo "), "{screen:?}");
        if answer == "q" {
            assert!(screen.contains("status 0"), "{screen:?}");
        }
    }
    let plain = screen("q", "NO_COLOR=1 cx top");
    assert!(!plain.contains("\x1b[31m") && !plain.contains("\x1b[38;5;1m"), "{plain:?}");
    // A terminal that would show escape sequences as they are.
    let dumb = screen("", "TERM=dumb cx top");
    assert!(
        !dumb.contains('\x1b') && dumb.contains("cx top --once") && dumb.contains("status 2"),
        "{dumb:?}"
    );
    // Without a terminal it says what to do.
    let output = cx(client.directory(), &["top"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cx top --once"), "{output:?}");
    client.end();
}
