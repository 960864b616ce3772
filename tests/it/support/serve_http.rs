//! `cx serve --http` as a process, and requests to it, written by hand.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::answers::check_fields;
use super::serve::{Start, meta, status_bytes, wait_for_end};

/// Fails a test that would hang.
pub(crate) const WATCHDOG: Duration = Duration::from_secs(120);

/// Long enough for any address.
pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A server at an address of this machine.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    directory: Arc<TempDir>,
}

impl Server {
    pub(crate) fn plain() -> Self {
        Self::start(Start::new())
    }

    pub(crate) fn start(start: Start) -> Self {
        Self::start_at("127.0.0.1:0", start)
    }

    pub(crate) fn start_at(address: &str, start: Start) -> Self {
        // Most tests run more scripts than a client may run by default.
        Self::start_with(&["--http", address, "--client-rate", "0"], start)
    }

    /// Starts it with exactly these arguments.
    pub(crate) fn start_with(arguments: &[&str], start: Start) -> Self {
        let (command, directory) = start.arguments(arguments).command();
        Self::start_command(command, directory)
    }

    /// Starts a command of [`Start::command`], or a program that executes it.
    pub(crate) fn start_command(mut command: Command, directory: Arc<TempDir>) -> Self {
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        // Warnings may come first.
        let address = loop {
            let mut line = String::new();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "it does not listen: {said}");
            if let Some(address) = line.trim().strip_prefix("listening on http://") {
                break address.strip_suffix("/mcp").unwrap().to_owned();
            }
            said.push_str(&line);
        };
        let mut address: SocketAddr = address.parse().unwrap();
        if address.ip().is_unspecified() {
            address.set_ip([127, 0, 0, 1].into());
        }
        Self { child, address, directory }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(WATCHDOG)).unwrap();
        stream.set_write_timeout(Some(WATCHDOG)).unwrap();
        stream
    }

    /// Sends a request and reads the head of its answer.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut stream = self.connect();
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            request.push_str(&format!("Host: {}\r\n", self.address));
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        stream.write_all(request.as_bytes()).unwrap();
        // The server need not read the body of a refused request.
        let _gone = stream.write_all(body.as_bytes());
        Reply::read(stream)
    }

    pub(crate) fn get(&self, path: &str, headers: &[(&str, &str)]) -> Reply {
        self.send("GET", path, headers, "")
    }

    pub(crate) fn post(&self, headers: &[(&str, &str)], message: &Value) -> Reply {
        let mut all =
            vec![("Accept", "application/json, text/event-stream"), ("Content-Type", "application/json")];
        all.extend(headers);
        self.send("POST", "/mcp", &all, &message.to_string())
    }

    /// A request without a session, with everything that such a request needs.
    pub(crate) fn stateless(&self, method: &str, mut params: Value) -> Reply {
        if params.get("_meta").is_none() {
            params["_meta"] = meta(json!({}));
        }
        let name = params["name"].as_str().or(params["uri"].as_str()).or(params["taskId"].as_str());
        let name = name.unwrap_or_default().to_owned();
        let mut headers = vec![("Mcp-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        if !name.is_empty() {
            headers.push(("Mcp-Name", &name));
        }
        self.post(&headers, &json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
    }

    pub(crate) fn initialize(&self, headers: &[(&str, &str)], version: &str, capabilities: &Value) -> Reply {
        let info = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": version, "capabilities": capabilities, "clientInfo": info });
        self.post(headers, &json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }))
    }

    /// A session, after the handshake.
    pub(crate) fn session(&self) -> Session<'_> {
        self.session_with(&json!({}))
    }

    pub(crate) fn session_with(&self, capabilities: &Value) -> Session<'_> {
        self.session_of("2025-11-25", capabilities)
    }

    /// A session whose requests end with their connections: in later revisions they go on for a while.
    pub(crate) fn session_without_resumption(&self) -> Session<'_> {
        self.session_of("2025-06-18", &json!({}))
    }

    fn session_of(&self, version: &'static str, capabilities: &Value) -> Session<'_> {
        let reply = self.initialize(&[], version, capabilities);
        assert_eq!(reply.status, 200);
        let id = reply.header("mcp-session-id").unwrap().to_owned();
        assert!(reply.message()["result"]["serverInfo"]["name"] == "cx");
        let session = Session { server: self, id, version };
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(session.post(&initialized).status, 202);
        session
    }

    pub(crate) fn health(&self) -> Value {
        serde_json::from_str(&self.get("/healthz", &[]).body()).unwrap()
    }

    pub(crate) fn wait_for_health(&self, condition: impl Fn(&Value) -> bool) -> Value {
        wait_for(|| Some(self.health()).filter(&condition))
    }

    /// Its workspace, and the person's directories.
    pub(crate) fn directory(&self) -> &std::path::Path {
        self.directory.path()
    }

    /// The notes of a server of `tests/chaos`.
    pub(crate) fn notes(&self, server: &str) -> String {
        std::fs::read_to_string(self.directory.path().join(server)).unwrap_or_default()
    }

    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// The memory that the process has now, in bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        status_bytes(self.process(), "VmRSS:")
    }

    /// As [`resident_bytes`](Self::resident_bytes), once it has stayed about the same for a moment.
    pub(crate) fn settled_bytes(&self) -> u64 {
        const SAME: u64 = 1 << 20;
        wait_for(|| {
            let before = self.resident_bytes();
            std::thread::sleep(Duration::from_millis(300));
            let now = self.resident_bytes();
            (now.abs_diff(before) < SAME).then_some(now)
        })
    }

    pub(crate) fn signal(&self, name: &str) {
        let kill = Command::new("kill").args([&format!("-{name}"), &self.process().to_string()]).status();
        assert!(kill.unwrap().success());
    }

    pub(crate) fn wait(&mut self, most: Duration) -> ExitStatus {
        wait_for_end(&mut self.child, most)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A failed test leaves the process behind.
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Checks again and again until there is a value.
pub(crate) fn wait_for<T>(look: impl Fn() -> Option<T>) -> T {
    wait_within(WATCHDOG, look)
}

/// As [`wait_for`], within a time in which it would not happen by itself.
pub(crate) fn wait_within<T>(most: Duration, look: impl Fn() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < most, "it did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// An answer as it comes.
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    reader: BufReader<TcpStream>,
}

impl Reply {
    pub(crate) fn read(stream: TcpStream) -> Self {
        Self::try_read(stream).unwrap()
    }

    pub(crate) fn try_read(stream: TcpStream) -> std::io::Result<Self> {
        let mut reader = BufReader::new(stream);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            if line.trim().is_empty() {
                break;
            }
            lines.push(line.trim().to_owned());
        }
        let status = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines[1..].iter().map(|line| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_lowercase(), value.trim().to_owned())
        });
        Ok(Self { status, headers: headers.collect(), reader })
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The next piece of the body; `None` at its end.
    fn piece(&mut self) -> Option<String> {
        let mut size = String::new();
        self.reader.read_line(&mut size).unwrap();
        let size = usize::from_str_radix(size.trim(), 16).ok().filter(|&size| size > 0)?;
        let mut bytes = vec![0; size + 2];
        self.reader.read_exact(&mut bytes).unwrap();
        bytes.truncate(size);
        Some(String::from_utf8(bytes).unwrap())
    }

    pub(crate) fn body(mut self) -> String {
        if self.header("transfer-encoding").is_some() {
            return std::iter::from_fn(|| self.piece()).collect();
        }
        let length = self.header("content-length").map(|length| length.parse::<u64>().unwrap());
        let mut body = String::new();
        // What follows may be a reset, if the server has not read the whole request.
        self.reader.take(length.unwrap_or(u64::MAX)).read_to_string(&mut body).unwrap();
        assert!(length.is_none_or(|length| body.len() as u64 == length), "{body}");
        body
    }

    /// The id of the next event of a stream and its message, if it has them; `None` at the end of the stream.
    pub(crate) fn event(&mut self) -> Option<(Option<String>, Option<Value>)> {
        assert_eq!(self.header("content-type"), Some("text/event-stream"));
        let mut event = String::new();
        // A comment is no event: it keeps the connection open.
        while event.is_empty() || event.starts_with(':') {
            event.clear();
            while !event.ends_with("\n\n") {
                event.push_str(&self.piece()?);
            }
        }
        let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        let data = field("data").filter(|data| !data.is_empty());
        let message = data.map(|data| serde_json::from_str(data).unwrap());
        Some((field("id").map(str::to_owned), message))
    }

    /// The next message of a stream; `None` at its end.
    pub(crate) fn next(&mut self) -> Option<Value> {
        loop {
            if let (_, Some(message)) = self.event()? {
                return Some(message);
            }
        }
    }

    /// The last message: the answer, whatever came before it.
    pub(crate) fn message(mut self) -> Value {
        if matches!(self.header("content-type"), Some("application/json" | "application/problem+json")) {
            return serde_json::from_str(&self.body()).unwrap();
        }
        let mut last = Value::Null;
        while let Some(message) = self.next() {
            last = message;
        }
        last
    }

    /// The result of a tool call.
    pub(crate) fn result(self) -> Value {
        let message = self.message();
        assert!(message.get("result").is_some(), "{message}");
        message["result"].clone()
    }
}

/// One client's session.
pub(crate) struct Session<'a> {
    pub(crate) server: &'a Server,
    pub(crate) id: String,
    version: &'static str,
}

impl Session<'_> {
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn post(&self, message: &Value) -> Reply {
        self.server.post(&[("Mcp-Session-Id", &self.id), ("Mcp-Protocol-Version", self.version)], message)
    }

    pub(crate) fn begin(&self, id: impl Into<Value>, method: &str, params: Value) -> Reply {
        self.post(&json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params }))
    }

    pub(crate) fn begin_run(&self, id: impl Into<Value>, source: &str) -> Reply {
        let arguments = json!({ "code": source });
        self.begin(id, "tools/call", json!({ "name": "executeTypescript", "arguments": arguments }))
    }

    pub(crate) fn run(&self, source: &str) -> Value {
        let result = self.begin_run(7, source).result();
        check_fields("executeTypescript", &result);
        result["structuredContent"].clone()
    }

    pub(crate) fn listen(&self) -> Reply {
        let headers = [("Accept", "text/event-stream"), ("Mcp-Session-Id", self.id.as_str())];
        self.server.get("/mcp", &headers)
    }

    /// Asks for the rest of a stream after the event with this id.
    pub(crate) fn resume(&self, event: &str) -> Reply {
        let headers =
            [("Accept", "text/event-stream"), ("Mcp-Session-Id", self.id.as_str()), ("Last-Event-ID", event)];
        self.server.get("/mcp", &headers)
    }

    pub(crate) fn delete(&self) -> u16 {
        self.server.send("DELETE", "/mcp", &[("Mcp-Session-Id", &self.id)], "").status
    }
}
