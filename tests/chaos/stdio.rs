//! The transport over pipes and its faults.

use std::io::{BufRead as _, Write};
use std::process::{Command, exit};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::server::{Server, Sink};

/// Stdout, a message a line.
struct Lines {
    stdout: Mutex<std::io::Stdout>,
    garbage: bool,
}

impl Lines {
    fn write(&self, bytes: &[u8]) -> std::io::Result<()> {
        let mut stdout = self.stdout.lock().unwrap();
        stdout.write_all(bytes)?;
        stdout.flush()
    }
}

impl Sink for Lines {
    fn send_text(&self, message: &str) -> std::io::Result<()> {
        if self.garbage {
            self.write(b"Welcome to the server!\n{\"half\": \n[1, 2\n\n\xff\xfe not text\n\r\nnpm notice\n")?;
        }
        self.write(format!("{message}\n").as_bytes())
    }
}

/// Serves until stdin ends.
pub(crate) fn serve(server: &Arc<Server>) {
    let options = &server.options;
    let number = options.number(0);
    match options.mode.as_str() {
        "exits-0" => exit(0),
        "exits-1-stderr" => {
            eprintln!("Error: the database\n    at open (db.js:7:1)\n    at main (index.js:1:1)\n");
            eprintln!("Traceback: \x1b[31mno such database\x1b[0m");
            exit(1);
        }
        "stderr-flood" => flood_stderr(server, if number == 0 { 1 << 30 } else { number }),
        "ignores-sigterm" => {
            // SAFETY: ignoring a signal installs no code.
            unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
        }
        "grandchild" => {
            // It keeps the pipes open and has a child in turn. Neither is asked to end.
            let mut shell = Command::new("sh").args(["-c", "sleep 1000 & wait"]).spawn().unwrap();
            options.note(&format!("grandchild {}", shell.id()));
            std::thread::spawn(move || shell.wait());
        }
        _ => {}
    }
    let lines = Arc::new(Lines { stdout: Mutex::new(std::io::stdout()), garbage: options.is("garbage") });
    let sink: Arc<dyn Sink> = Arc::clone(&lines) as Arc<dyn Sink>;
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else {
            options.note("unreadable");
            continue;
        };
        let method = message["method"].as_str().unwrap_or_default();
        if options.is("dies-in-handshake") && method == "initialize" {
            eprintln!("Traceback: \x1b[31mno such database\x1b[0m");
            exit(3);
        }
        if message["params"]["name"] == "target" && strikes(server, &message, &lines) {
            continue;
        }
        server.handle(&message, &sink);
        match (options.mode.as_str(), method) {
            ("crash-loop", "initialize") => exit(4),
            // With its stdin open, and unread.
            ("ignores-stdin", "tools/list") => sleep(),
            _ => {}
        }
    }
    options.note("stdin ended");
    if options.is("ignores-sigterm") {
        sleep();
    }
}

/// The faults of a line. Returns whether this mode has one, so that there is nothing more to answer.
fn strikes(server: &Server, message: &Value, lines: &Lines) -> bool {
    let id = &message["id"];
    let begin = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#);
    let megabyte = vec![b'x'; 1 << 20];
    if ["oversize-line", "endless-line", "half-line"].contains(&server.options.mode.as_str()) {
        server.options.note("executed target");
    }
    let written = match server.options.mode.as_str() {
        "oversize-line" => (|| {
            lines.write(begin.as_bytes())?;
            for _ in 0..message["params"]["arguments"]["megabytes"].as_u64().unwrap_or(40) {
                lines.write(&megabyte)?;
            }
            lines.write(b"\"}]}}\n")
        })(),
        "endless-line" => (|| {
            lines.write(begin.as_bytes())?;
            loop {
                lines.write(&megabyte)?;
            }
        })(),
        "half-line" => {
            let _closed = lines.write(&begin.as_bytes()[..begin.len() / 2]);
            exit(5);
        }
        _ => return false,
    };
    server.options.note(if written.is_ok() { "written" } else { "not read" });
    true
}

/// Writes this many bytes to stderr, in the background, and notes when all are written.
fn flood_stderr(server: &Arc<Server>, bytes: u64) {
    let server = Arc::clone(server);
    std::thread::spawn(move || {
        let line = [b"\x1b[31m".as_slice(), &[b'e'; 1_018], b"\n"].concat().repeat(64);
        let mut stderr = std::io::stderr();
        let mut left = bytes;
        while left > 0 && stderr.write_all(&line).is_ok() {
            left = left.saturating_sub(line.len() as u64);
        }
        server.options.note(if left == 0 { "flooded" } else { "stderr closed" });
    });
}

fn sleep() {
    loop {
        std::thread::sleep(Duration::from_secs(1_000));
    }
}
