//! A client of `cx serve` over stdio: a process, and JSON-RPC lines written by hand.

/// How a server is started.
mod start;

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) use self::start::Start;
use super::answers::check_fields;
use super::chaos;

/// Fails a test that would hang. Python may have to be compiled first.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(120);

/// The maximum time of an end. It usually takes some ten milliseconds, or as long as servers need to end: almost five
/// seconds after a signal. The rest is for a busy machine; what the tests have it end would go on for longer than that.
pub(crate) const END: Duration = Duration::from_secs(15);

/// A client with its own server.
pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    lines: Option<Receiver<String>>,
    /// Messages that came while the client waited for another one.
    seen: VecDeque<Value>,
    last_id: u64,
    directory: Arc<TempDir>,
}

/// Lines that a thread is writing to a server.
pub(crate) struct Flood {
    written: Arc<AtomicUsize>,
    writing: JoinHandle<ChildStdin>,
}

impl Flood {
    pub(crate) fn written(&self) -> usize {
        self.written.load(Ordering::Relaxed)
    }

    /// Waits until nothing has been written for this time, and returns the number of lines written.
    pub(crate) fn stalled(&self, quiet: Duration) -> usize {
        let (mut last, mut since) = (self.written(), Instant::now());
        while since.elapsed() < quiet && !self.writing.is_finished() {
            std::thread::sleep(Duration::from_millis(20));
            if self.written() != last {
                (last, since) = (self.written(), Instant::now());
            }
        }
        last
    }

    /// Waits until everything is written, and returns the pipe.
    pub(crate) fn join(self, client: &mut Client) {
        client.stdin = Some(self.writing.join().unwrap());
    }
}

/// Saves a script for the user of a [`Start::within`] with this directory.
pub(crate) fn save_script(directory: &Path, file: &str, source: &str) {
    let folder = directory.join("cx/scripts");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).unwrap();
    let mut file = fs::OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(folder.join(file))
        .unwrap();
    file.write_all(source.as_bytes()).unwrap();
}

impl Client {
    /// A client of a server without upstream servers, after the handshake.
    pub(crate) fn plain() -> Self {
        Start::new().spawn().shaken()
    }

    /// After the handshake.
    pub(crate) fn shaken(mut self) -> Self {
        self.initialize("2025-11-25");
        self
    }

    /// After the handshake of a client with these capabilities.
    pub(crate) fn shaken_with(mut self, capabilities: Value) -> Self {
        self.initialize_with("2025-11-25", capabilities);
        self
    }

    pub(crate) fn initialize(&mut self, version: &str) -> Value {
        self.initialize_with(version, json!({}))
    }

    pub(crate) fn initialize_with(&mut self, version: &str, capabilities: Value) -> Value {
        let info = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": version, "capabilities": capabilities, "clientInfo": info });
        let answer = self.request("initialize", params);
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        answer
    }

    /// Begins to read what the server writes.
    pub(crate) fn read(&mut self) {
        let stdout = self.stdout.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        self.lines = Some(lines);
    }

    /// Reads the server's output only as far as this client asks for it. Until then the output waits in the pipe.
    pub(crate) fn read_when_asked(&mut self) {
        let stdout = self.stdout.take().unwrap();
        let (sender, lines) = sync_channel(1);
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        self.lines = Some(lines);
    }

    /// Writes lines from a thread of its own, as fast as the server reads them. Returns a handle that knows how many
    /// are written; nothing else can be sent before [`Flood::join`].
    pub(crate) fn flood(&mut self, lines: impl Iterator<Item = String> + Send + 'static) -> Flood {
        let mut stdin = self.stdin.take().unwrap();
        let written = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&written);
        let writing = std::thread::spawn(move || {
            for line in lines {
                stdin.write_all(line.as_bytes()).unwrap();
                stdin.write_all(b"\n").unwrap();
                counter.fetch_add(1, Ordering::Relaxed);
            }
            stdin
        });
        Flood { written, writing }
    }

    /// The memory that the process has now, in bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        status_bytes(self.process(), "VmRSS:")
    }

    pub(crate) fn send(&mut self, message: &Value) {
        self.send_line(message.to_string().as_bytes());
    }

    /// Writes any line. The server may be gone.
    pub(crate) fn send_line(&mut self, line: &[u8]) {
        self.send_bytes(line);
        self.send_bytes(b"\n");
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        if let Some(stdin) = &mut self.stdin {
            let _gone = stdin.write_all(bytes);
        }
    }

    /// Sends a request and returns its id.
    pub(crate) fn begin(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = json!(self.last_id);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Begins the call of a tool and returns its id.
    pub(crate) fn begin_call(&mut self, tool: &str, arguments: Value) -> Value {
        self.begin("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// A request's whole answer.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(&id)
    }

    /// The result of a tool call. Its fields must be those of the tool's output schema.
    pub(crate) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert!(answer.get("result").is_some(), "{tool}: {answer}");
        check_fields(tool, &answer["result"]);
        answer["result"].clone()
    }

    /// The structured content of a script's answer.
    pub(crate) fn run(&mut self, source: &str) -> Value {
        self.call("executeTypescript", json!({ "code": source }))["structuredContent"].clone()
    }

    pub(crate) fn health(&mut self) -> Value {
        self.call("health", json!({}))["structuredContent"].clone()
    }

    /// The answer to a request. Other messages are kept in [`seen`](Self::take_seen).
    pub(crate) fn answer(&mut self, id: &Value) -> Value {
        let is_answer = |message: &Value| message["id"] == *id && message.get("method").is_none();
        if let Some(position) = self.seen.iter().position(is_answer) {
            return self.seen.remove(position).unwrap();
        }
        loop {
            let message = self.receive();
            if is_answer(&message) {
                return message;
            }
            self.seen.push_back(message);
        }
    }

    /// The next message, which must be one.
    pub(crate) fn receive(&mut self) -> Value {
        self.receive_within(WATCHDOG).expect("the server says something")
    }

    pub(crate) fn receive_within(&mut self, most: Duration) -> Option<Value> {
        let line = match self.lines.as_ref().unwrap().recv_timeout(most) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => return None,
            Err(RecvTimeoutError::Disconnected) => panic!("the server has gone"),
        };
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        Some(message)
    }

    /// The next message of this method. Those before it are dropped.
    pub(crate) fn receive_method(&mut self, method: &str) -> Value {
        loop {
            let message = self.receive();
            if message["method"] == method {
                return message;
            }
        }
    }

    /// Returns all messages so far that were not the awaited answers.
    pub(crate) fn take_seen(&mut self) -> Vec<Value> {
        self.seen.drain(..).collect()
    }

    pub(crate) fn ping(&mut self) -> Duration {
        let start = Instant::now();
        let answer = self.request("ping", json!({}));
        assert_eq!(answer["result"], json!({}), "{answer}");
        start.elapsed()
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// The workspace, which also has the person's files.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The notes of a server of `tests/chaos`.
    pub(crate) fn notes(&self, server: &str) -> String {
        std::fs::read_to_string(self.directory.path().join(server)).unwrap_or_default()
    }

    /// What the server wrote to stderr, if it is kept.
    pub(crate) fn stderr(&self) -> String {
        self.notes("stderr")
    }

    /// The processes that a server's notes name, by the word before their number.
    pub(crate) fn noted_processes(&self, server: &str, word: &str) -> Vec<String> {
        let notes = self.notes(server);
        let lines = notes.lines().filter_map(|line| line.strip_prefix(word));
        lines.map(|process| process.trim().to_owned()).collect()
    }

    /// Waits until `condition` holds, asking for the server's health again and again.
    pub(crate) fn wait_for_health(&mut self, condition: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let health = self.health();
            if condition(&health) {
                return health;
            }
            assert!(start.elapsed() < WATCHDOG, "it never happened: {health:#}");
            // The server needs the processor as well.
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    pub(crate) fn close_stdout(&mut self) {
        self.stdout = None;
        self.lines = None;
    }

    /// Waits for the process to end.
    pub(crate) fn wait(&mut self, most: Duration) -> ExitStatus {
        wait_for_end(&mut self.child, most)
    }

    /// Closes stdin and expects exit status 0.
    pub(crate) fn end(mut self) {
        self.close_stdin();
        assert_eq!(self.wait(END).code(), Some(0));
    }

    pub(crate) fn signal(&self, name: &str) {
        let kill = Command::new("kill").args([&format!("-{name}"), &self.process().to_string()]).status();
        assert!(kill.unwrap().success());
    }

    /// The peak memory of the process, in bytes.
    pub(crate) fn peak_bytes(&self) -> u64 {
        status_bytes(self.process(), "VmHWM:")
    }
}

/// A line of `/proc/PROCESS/status` with an amount of memory, in bytes.
pub(crate) fn status_bytes(process: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().strip_suffix("kB").unwrap().trim().parse::<u64>().unwrap() * 1024
}

impl Drop for Client {
    fn drop(&mut self) {
        // A failed test leaves the process behind.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// The `_meta` of a client without a handshake.
pub(crate) fn meta(more: Value) -> Value {
    let mut meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for (name, value) in more.as_object().unwrap() {
        meta[name] = value.clone();
    }
    meta
}

/// Runs another command of the person whose files are in the directory of a server. Its cache is empty at first.
pub(crate) fn run_cx(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cx"))
        .args(arguments)
        .current_dir(directory)
        .env("HOME", directory)
        .env("XDG_STATE_HOME", directory)
        .env("XDG_CONFIG_HOME", directory)
        .env("XDG_CACHE_HOME", directory.join("cache"))
        .output()
        .unwrap()
}

/// Waits at most this long for a process to end.
pub(crate) fn wait_for_end(child: &mut Child, most: Duration) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if start.elapsed() >= most {
            let _ended = child.kill();
            panic!("it does not end");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The first text block.
pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

/// The bytes of a client's stdout, where it is not read line by line.
pub(crate) fn drain(client: &mut Client) -> usize {
    let mut bytes = Vec::new();
    client.stdout.take().unwrap().read_to_end(&mut bytes).unwrap();
    bytes.len()
}
