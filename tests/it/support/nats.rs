//! A real NATS server, machines that execute the runs of its queue, and another client of the server.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::serve::wait_for_end;
use super::serve_http::{WATCHDOG, wait_for};
use super::{chaos, own_files, write_secret};

/// Longer than any queue takes.
pub(crate) const KEY: &str = "a key that all machines of the queue share";

/// The variable that leaves out tests that need `nats-server`, where it cannot be installed.
const WITHOUT: &str = "CX_WITHOUT_NATS_SERVER";

/// Its configuration.
const CONFIG: &str = "server.conf";

/// `nats-server` with JetStream, on a free port of this machine.
pub(crate) struct NatsServer {
    child: Child,
    directory: TempDir,
    pub(crate) port: u16,
    is_tls: bool,
}

impl NatsServer {
    /// Starts one. `None` if the variable says that there is none.
    ///
    /// # Panics
    ///
    /// If it is not installed.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(|_directory| String::new())
    }

    /// Starts one with a configuration that may name files of its directory.
    pub(crate) fn start_with(config: impl FnOnce(&Path) -> String) -> Option<Self> {
        if std::env::var_os(WITHOUT).is_some() {
            skip();
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let config = config(directory.path());
        let is_tls = config.contains("cert_file");
        std::fs::write(directory.path().join(CONFIG), config).unwrap();
        let child = spawn(directory.path(), "-1");
        let ports = directory.path().join(format!("nats-server_{}.ports", child.id()));
        let read = || serde_json::from_str::<Value>(&std::fs::read_to_string(&ports).ok()?).ok();
        let ports: Value = wait_for(read);
        let port = ports["nats"][0].as_str().unwrap().rsplit(':').next().unwrap().parse().unwrap();
        let server = Self { child, directory, port, is_tls };
        write_secret(&server.key(), KEY);
        Some(server)
    }

    pub(crate) fn url(&self) -> String {
        format!("{}://127.0.0.1:{}", if self.is_tls { "tls" } else { "nats" }, self.port)
    }

    /// Its log.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap()
    }

    /// The file with the key of the queue.
    pub(crate) fn key(&self) -> PathBuf {
        self.directory.path().join("key")
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again at the same port, with the same files, and waits until it listens. Another process may have the
    /// port meanwhile: it is started again until that one has gone.
    pub(crate) fn restart(&mut self) {
        let port = self.port.to_string();
        self.child = spawn(self.directory.path(), &port);
        let began = Instant::now();
        while !self.log().contains("Listening for client connections") {
            assert!(began.elapsed() < WATCHDOG, "it does not listen: {}", self.log());
            std::thread::sleep(Duration::from_millis(20));
            if self.child.try_wait().unwrap().is_some() {
                self.child = spawn(self.directory.path(), &port);
            }
        }
    }

    /// Ends it, and starts it again with another configuration.
    pub(crate) fn restart_with(&mut self, config: &str) {
        self.kill();
        std::fs::write(self.directory.path().join(CONFIG), config).unwrap();
        self.restart();
    }

    /// Another client of the server, without the key.
    pub(crate) fn outsider(&self) -> Outsider {
        wait_for(|| Outsider::connect(self.port).ok())
    }

    /// A machine that executes this many runs at a time.
    pub(crate) fn worker(&self, concurrency: usize) -> Worker {
        self.worker_with(concurrency, &[])
    }

    pub(crate) fn worker_with(&self, concurrency: usize, more: &[&str]) -> Worker {
        Worker::start(&self.url(), &self.key(), concurrency, more)
    }
}

#[expect(clippy::print_stderr, reason = "the user has to know what was not tested")]
fn skip() {
    eprintln!("skipped: {WITHOUT} is set");
}

fn spawn(directory: &Path, port: &str) -> Child {
    let mut command = Command::new("nats-server");
    let config = std::fs::read_to_string(directory.join(CONFIG)).unwrap();
    if !config.contains("store_dir") {
        command.args(["-js", "-sd"]).arg(directory.join("jetstream"));
    }
    let spawned = command
        .args(["-a", "127.0.0.1", "-p", port])
        .arg("-c")
        .arg(directory.join(CONFIG))
        .arg("--ports_file_dir")
        .arg(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(directory.join("log")).unwrap())
        .spawn();
    spawned.unwrap_or_else(|error| {
        panic!(
            "`nats-server` cannot be started: {error}: install it (`apt-get install nats-server`), or set {WITHOUT}=1 to \
             leave out the tests that need it"
        )
    })
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// A `cx worker`.
pub(crate) struct Worker {
    child: Child,
    directory: TempDir,
}

impl Worker {
    /// Starts it, and waits until it takes runs.
    pub(crate) fn start(url: &str, key: &Path, concurrency: usize, more: &[&str]) -> Self {
        let worker = Self::start_unjoined(url, key, concurrency, more);
        worker.wait_for_line("taking scripts from");
        worker
    }

    pub(crate) fn start_unjoined(url: &str, key: &Path, concurrency: usize, more: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cx"));
        command
            .args(["worker", "--nats", url, "--nats-key-file"])
            .arg(key)
            .args(["--concurrency", &concurrency.to_string()])
            .args(more);
        own_files(&mut command, directory.path());
        Self::within(command, directory)
    }

    /// A worker that is started by this command.
    pub(crate) fn new(command: Command) -> Self {
        Self::within(command, tempfile::tempdir().unwrap())
    }

    fn within(mut command: Command, directory: TempDir) -> Self {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(directory.path().join("stderr")).unwrap());
        Self { child: command.spawn().unwrap(), directory }
    }

    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("stderr")).unwrap()
    }

    pub(crate) fn wait_for_line(&self, text: &str) {
        wait_for(|| self.said().contains(text).then_some(()));
    }

    /// The page of metrics of a worker with `--metrics 127.0.0.1:0`.
    pub(crate) fn metrics(&self) -> String {
        let address = wait_for(|| {
            let said = self.said();
            let lines = said.lines().find_map(|line| line.strip_prefix("metrics at http://"));
            lines.and_then(|address| address.strip_suffix("/metrics")).map(str::to_owned)
        });
        let mut stream = TcpStream::connect(&address).unwrap();
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        std::io::read_to_string(stream).unwrap()
    }

    /// The worker processes that this machine has started.
    pub(crate) fn processes(&self) -> Vec<PathBuf> {
        super::descendants_of(self.child.id())
    }

    pub(crate) fn signal(&self, name: &str) {
        let kill = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(kill.unwrap().success());
    }

    pub(crate) fn wait(&mut self, most: Duration) -> ExitStatus {
        wait_for_end(&mut self.child, most)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// The front end: a workspace with a server of `tests/chaos`, and `cx run --nats`.
pub(crate) struct Front {
    directory: TempDir,
    url: String,
    key: PathBuf,
}

impl Front {
    pub(crate) fn new(server: &NatsServer, mode: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let notes = directory.path().join("notes");
        let upstream = json!({ "command": chaos::program(), "args": ["stdio", "--notes", notes, mode] });
        let config = json!({ "mcpServers": { "here": upstream } });
        std::fs::write(directory.path().join("mcp.json"), config.to_string()).unwrap();
        Self { directory, url: server.url(), key: server.key() }
    }

    pub(crate) fn notes(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("notes")).unwrap_or_default()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn command_at(&self, url: &str, key: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cx"));
        command
            .args(["run", "--json", "--mcp-config"])
            .arg(self.path("mcp.json"))
            .args(["--nats", url, "--nats-key-file"])
            .arg(key)
            .args(arguments);
        own_files(&mut command, self.directory.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.command_at(&self.url, &self.key, arguments)
    }

    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().unwrap()
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Value {
        result(&self.command(arguments).output().unwrap())
    }
}

/// The output of `cx run --json`.
pub(crate) fn result(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// The output of a process of [`Front::spawn`], at its end.
pub(crate) fn end(mut child: Child, most: Duration) -> Value {
    wait_for_end(&mut child, most);
    let said = std::io::read_to_string(child.stdout.take().unwrap()).unwrap();
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
}

/// A client that is connected to a NATS server, and speaks its protocol directly.
pub(crate) struct Outsider {
    writer: TcpStream,
    reader: BufReader<TcpStream>,
    /// The beginning of a line whose rest has not come yet.
    begun: String,
    subscriptions: u32,
}

impl Outsider {
    fn connect(port: u16) -> std::io::Result<Self> {
        let mut writer = TcpStream::connect(("127.0.0.1", port))?;
        writer.set_read_timeout(Some(Duration::from_millis(100)))?;
        let reader = BufReader::new(writer.try_clone()?);
        // Its own messages do not come back to it.
        writer.write_all(b"CONNECT {\"verbose\":false,\"echo\":false}\r\n")?;
        Ok(Self { writer, reader, begun: String::new(), subscriptions: 0 })
    }

    /// Subscribes to a subject, and waits until the server knows it. No messages may have been subscribed to before.
    pub(crate) fn subscribe(&mut self, subject: &str) {
        self.subscriptions += 1;
        let subscribe = format!("SUB {subject} {}\r\nPING\r\n", self.subscriptions);
        self.writer.write_all(subscribe.as_bytes()).unwrap();
        self.reader.get_mut().set_read_timeout(Some(WATCHDOG)).unwrap();
        let mut line = String::new();
        while line.trim() != "PONG" {
            line.clear();
            assert!(self.reader.read_line(&mut line).unwrap() > 0, "the server has gone");
            if line.trim() == "PING" {
                self.writer.write_all(b"PONG\r\n").unwrap();
            }
        }
        self.reader.get_mut().set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    }

    pub(crate) fn publish(&mut self, subject: &str, payload: &[u8]) {
        let mut message = format!("PUB {subject} {}\r\n", payload.len()).into_bytes();
        message.extend(payload);
        message.extend(b"\r\n");
        self.writer.write_all(&message).unwrap();
    }

    /// The subject and payload of the next message; `None` if none comes for a while.
    pub(crate) fn next(&mut self) -> Option<(String, Vec<u8>)> {
        loop {
            if self.reader.read_line(&mut self.begun).ok()? == 0 {
                return None;
            }
            let line = std::mem::take(&mut self.begun);
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.first() {
                Some(&"PING") => self.writer.write_all(b"PONG\r\n").unwrap(),
                Some(&"MSG" | &"HMSG") => {
                    let mut payload = vec![0; words.last()?.parse::<usize>().ok()? + 2];
                    self.reader.get_mut().set_read_timeout(None).ok()?;
                    let read = self.reader.read_exact(&mut payload);
                    self.reader.get_mut().set_read_timeout(Some(Duration::from_millis(100))).ok()?;
                    read.ok()?;
                    payload.truncate(payload.len() - 2);
                    // The headers of the message come before the payload.
                    if words[0] == "HMSG" {
                        payload.drain(..words[words.len() - 2].parse::<usize>().ok()?);
                    }
                    return Some((words[1].to_owned(), payload));
                }
                _ => {}
            }
        }
    }
}
