//! A server that breaks one rule, beside one that breaks none, for the tests in `chaos_*`.
//!
//! Whatever the faulty server does, the other one is called continuously and has to answer soon, and no process may
//! remain when the executor is closed.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cx::{Executor, ExecutorBuilder, Limits, McpServer, Script};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::alone;
use super::stopwatch::Stopwatch;

/// How much longer a call of the other server may take as a rule than four scripts without calls. It needs a
/// millisecond; the rest is for a busy machine.
const SOON: Duration = Duration::from_secs(1);

/// Fails a test that would hang.
const WATCHDOG: Duration = Duration::from_secs(120);

/// How long closing may take: both grace periods of a server, and killing it, which is less than five seconds. The rest
/// is for a busy machine.
pub(crate) const CLOSING_TIME: Duration = Duration::from_secs(15);

/// The timeout of a call that gets no answer: see [`impatient`]. All others have the default one, because a busy
/// machine may need long for an answer.
pub(crate) const CALL_TIME: Duration = Duration::from_secs(3);

/// The timeout of connecting to a server that does not answer.
pub(crate) const CONNECT_TIME: Duration = Duration::from_millis(1_500);

/// That of the other servers, which start slowly on a busy machine.
const START_TIME: Duration = Duration::from_secs(20);

/// The server of `tests/chaos`.
pub(crate) fn program() -> PathBuf {
    let test_binary = std::env::current_exe().unwrap();
    let program = test_binary.parent().unwrap().parent().unwrap().join("examples/chaos");
    assert!(program.exists(), "cargo builds the examples with the tests: {}", program.display());
    program
}

/// Writes `mcp.json` with the server `well`, whose notes are beside it.
pub(crate) fn configure_well(directory: &Path) {
    let notes = directory.join("notes").display().to_string();
    let servers = json!({ "mcpServers": { "well": {
        "command": program(), "args": ["stdio", "--notes", notes, "well"],
    } } });
    std::fs::write(directory.join("mcp.json"), servers.to_string()).unwrap();
}

/// An executor with the servers `faulty` and `well`.
pub(crate) struct Stage {
    pub(crate) executor: Executor,
    directory: TempDir,
    /// The faulty server, if it has an address.
    _listener: Option<Listener>,
}

/// The outcome of a call, as its script saw it.
#[derive(Debug)]
pub(crate) struct Called {
    /// The result, if there was one.
    pub(crate) value: Value,
    /// The error's code, or nothing.
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) retry_after_ms: Option<u64>,
    took: Duration,
    stopwatch: Stopwatch,
}

impl Stage {
    /// The faulty server as a child process. `arguments` are the mode and its variant.
    pub(crate) fn stdio(arguments: &[&str]) -> Self {
        Self::stdio_with(arguments, |server| server)
    }

    pub(crate) fn stdio_with(arguments: &[&str], change: impl FnOnce(McpServer) -> McpServer) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let faulty = stdio("faulty", arguments, &directory.path().join("notes"));
        Self::build(builder(), directory, change(faulty), None)
    }

    /// The faulty server as a child process of an executor that keeps lists and pinned definitions in `directory`,
    /// where another executor may have left some. A strict executor does not use lists from there.
    pub(crate) fn kept_in(directory: TempDir, arguments: &[&str], strict: bool) -> Self {
        let (state, cache) = (directory.path().join("state"), directory.path().join("cache"));
        let builder = builder().state_directory(state).cache_directory(cache).strict(strict);
        let faulty = stdio("faulty", arguments, &directory.path().join("notes"));
        Self::build(builder, directory, faulty, None)
    }

    /// The faulty server at an address. `arguments` begin with `http` or `sse`.
    pub(crate) fn http(arguments: &[&str]) -> Self {
        Self::http_with(arguments, |server| server)
    }

    pub(crate) fn http_with(arguments: &[&str], change: impl FnOnce(McpServer) -> McpServer) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = Listener::new(arguments, &directory.path().join("notes"));
        let faulty = change(McpServer::http("faulty", listener.url.parse().unwrap()));
        Self::build(builder(), directory, faulty, Some(listener))
    }

    /// Over HTTP if the first argument says so, and otherwise over pipes.
    pub(crate) fn over(way: &[&str], change: impl FnOnce(McpServer) -> McpServer) -> Self {
        if way[0] == "http" { Self::http_with(way, change) } else { Self::stdio_with(way, change) }
    }

    fn build(
        builder: ExecutorBuilder,
        directory: TempDir,
        mut faulty: McpServer,
        listener: Option<Listener>,
    ) -> Self {
        if faulty.connect_timeout == McpServer::DEFAULT_CONNECT_TIMEOUT {
            faulty = faulty.connect_timeout(START_TIME);
        }
        let well = stdio("well", &["well"], &directory.path().join("well"));
        let executor = builder.mcp_server(faulty).mcp_server(well).build().unwrap();
        Self { executor, directory, _listener: listener }
    }

    /// Does `work` while the other server is called continuously, and once before and after it.
    pub(crate) async fn beside<T>(&self, work: impl Future<Output = T>) -> T {
        let stopwatch = Stopwatch::start();
        let mut times = vec![self.other_server_answers().await];
        let other_server = async {
            loop {
                times.push(self.other_server_answers().await);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let began = Instant::now();
        let value = tokio::select! {
            value = tokio::time::timeout(WATCHDOG, work) => value.expect("the work ends before the watchdog"),
            () = other_server => unreachable!("it has no end"),
        };
        // If it waited for the faulty server, it would not answer meanwhile. On a busy machine a script that calls
        // nothing takes long too.
        let (took, answers) = (began.elapsed(), times.len() - 1);
        let enough = CALL_TIME.max(20 * times[0].1);
        assert!(answers > 0 || took < enough, "the other server did not answer in {took:?}, of {enough:?}");
        times.push(self.other_server_answers().await);
        let (mut of_calls, mut of_scripts): (Vec<_>, Vec<_>) = times.into_iter().unzip();
        of_calls.sort();
        of_scripts.sort();
        let most = SOON + 4 * of_scripts[of_scripts.len() / 2];
        let median = of_calls[of_calls.len() / 2];
        stopwatch.promise_of(median, most, "the median of answers of the other server");
        value
    }

    /// How long the other server takes to answer a script, and how long a script takes that calls nothing, which shows
    /// what the machine takes.
    async fn other_server_answers(&self) -> (Duration, Duration) {
        let of_call = self.time_of_one("return (await tools.well.echo({ n: 1 })).n").await;
        (of_call, self.time_of_one("return 1").await)
    }

    /// How long a script takes that returns 1.
    async fn time_of_one(&self, source: &str) -> Duration {
        let started = Instant::now();
        let value = tokio::time::timeout(WATCHDOG, self.value(source)).await;
        assert_eq!(value.expect("the script ends"), 1, "{source}");
        started.elapsed()
    }

    /// Runs a script and returns its value.
    pub(crate) async fn value(&self, script: impl Into<Script>) -> Value {
        let result = self.executor.run(script).await.unwrap();
        result.value().cloned().unwrap_or_else(|| panic!("{}", result.to_json()))
    }

    /// Evaluates one expression, which is a call.
    pub(crate) async fn call(&self, expression: &str) -> Called {
        let stopwatch = Stopwatch::start();
        let source = format!(
            "try {{ return {{ value: await {expression} }} }}
             catch (error) {{
                 if (!(error instanceof McpToolError)) throw error;
                 return {{ code: error.code, message: error.message, retryAfterMs: error.retryAfterMs }};
             }}"
        );
        // The call has its own time, and the run has more than any call.
        let limits = Limits { wall_time: Duration::from_secs(100), ..Limits::default() };
        let seen = self.value(Script::typescript(source).limits(limits)).await;
        let text = |name: &str| seen[name].as_str().unwrap_or_default().to_owned();
        Called {
            value: seen["value"].clone(),
            code: text("code"),
            message: text("message"),
            retry_after_ms: seen["retryAfterMs"].as_u64(),
            took: stopwatch.elapsed(),
            stopwatch,
        }
    }

    /// Calls the tool in which the fault shows.
    pub(crate) async fn target(&self) -> Called {
        self.call("tools.faulty.target({})").await
    }

    /// The faulty server's notes.
    pub(crate) fn notes(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("notes")).unwrap_or_default()
    }

    /// How many lines of the notes begin with this text.
    pub(crate) fn noted(&self, beginning: &str) -> usize {
        self.notes().lines().filter(|line| line.starts_with(beginning)).count()
    }

    /// The processes of the faulty server: those that its notes name after `word`.
    pub(crate) fn processes(&self, word: &str) -> Vec<String> {
        let notes = self.notes();
        let processes = notes.lines().filter_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
        processes.map(str::to_owned).collect()
    }

    /// Closes the executor; after that all children are gone, and their descendants no longer run. Returns the notes
    /// and the stored files.
    pub(crate) async fn close(self) -> TempDir {
        let stopwatch = Stopwatch::start();
        self.executor.close().await;
        stopwatch.promise(CLOSING_TIME, "closing");
        if self._listener.is_none() {
            for process in self.processes("started") {
                assert!(!is_there(&process), "{process} is left: {}", self.notes());
            }
        }
        for process in self.processes("grandchild") {
            super::wait_until(|| !runs(&process)).await;
        }
        self.directory
    }
}

impl Called {
    /// Asserts that the call failed with `code` and a message that contains all `parts`.
    pub(crate) fn failed(&self, code: &str, parts: &[&str]) -> &Self {
        let is_told = parts.iter().all(|part| self.message.contains(part));
        assert!(self.code == code && is_told, "expected {code} {parts:?}, found {self:?}");
        self
    }

    /// Asserts that the call returned `value`.
    pub(crate) fn returned(&self, value: impl Into<Value>) -> &Self {
        assert!(self.code.is_empty() && self.value == value.into(), "{self:?}");
        self
    }

    /// Asserts that the call ended within this time, which is promised: the timeout of a call or of a start.
    pub(crate) fn within(&self, most: Duration) -> &Self {
        self.stopwatch.promise_of(self.took, most, format_args!("{self:?}"));
        self
    }
}

/// A server at an address. Dropping this ends it.
struct Listener {
    process: Child,
    url: String,
}

impl Listener {
    fn new(arguments: &[&str], notes: &Path) -> Self {
        let mut process = Command::new(program())
            .args(arguments)
            .arg("--notes")
            .arg(notes)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening ").expect("an address").to_owned();
        Self { process, url }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _gone = self.process.kill();
        let _reaped = self.process.wait();
    }
}

pub(crate) fn builder() -> ExecutorBuilder {
    Executor::builder().warm_instances(2)
}

/// The server, whose calls have [`CALL_TIME`].
pub(crate) fn impatient(server: McpServer) -> McpServer {
    server.call_timeout(CALL_TIME)
}

/// The server as a child process under any name.
pub(crate) fn stdio(name: &str, arguments: &[&str], notes: &Path) -> McpServer {
    let server = McpServer::stdio(name, program().to_str().unwrap()).args(["stdio"]);
    server.args(arguments.iter().copied()).args(["--notes", notes.to_str().unwrap()])
}

fn is_there(process: &str) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

/// Whether the process exists and is no zombie.
pub(crate) fn runs(process: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    status.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

/// What a whole command reported about a call of the faulty server, and its peak memory.
#[derive(Debug)]
pub(crate) struct Measured {
    /// The code of the call's failure, `well`, or `pending` after the patience of the script.
    pub(crate) seen: String,
    pub(crate) peak_megabytes: u64,
}

/// Runs `cx run` with both servers in a separate process, so that its memory is that of the run only. The script calls
/// the other server continuously.
pub(crate) fn measured(arguments: &[&str], expression: &str) -> Measured {
    measured_for(arguments, expression, 3_000)
}

/// The same with a script that waits for the call for so many milliseconds.
pub(crate) fn measured_for(arguments: &[&str], expression: &str, patience: u32) -> Measured {
    measured_with(entry(arguments), expression, patience)
}

/// The same with the faulty server at an address.
pub(crate) fn measured_http(arguments: &[&str], expression: &str) -> Measured {
    let directory = tempfile::tempdir().unwrap();
    let listener = Listener::new(arguments, &directory.path().join("notes"));
    measured_with(json!({ "type": "http", "url": listener.url }), expression, 3_000)
}

/// The configuration of the server as a child process.
pub(crate) fn entry(arguments: &[&str]) -> Value {
    let arguments = [&["stdio"], arguments].concat();
    json!({ "command": program(), "args": arguments })
}

fn measured_with(faulty: Value, expression: &str, patience: u32) -> Measured {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("mcp.json");
    let servers = json!({ "faulty": faulty, "well": entry(&["well"]) });
    std::fs::write(&config, json!({ "mcpServers": servers }).to_string()).unwrap();
    let source = format!(
        "await tools.well.echo({{}});
         const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
         let isOver = false;
         const other_server = (async () => {{
             while (!isOver) {{
                 await tools.well.echo({{}});
                 await pause(50);
             }}
         }})();
         const call = {expression}.then(() => 'well', (error) => error.code);
         const seen = await Promise.race([call, pause({patience}).then(() => 'pending')]);
         isOver = true;
         await other_server;
         await tools.well.echo({{}});
         return {{ seen }};"
    );
    let mut process = alone(&mut Command::new(env!("CARGO_BIN_EXE_cx")), directory.path())
        .args(["run", "--timeout", "60s", "--mcp-config"])
        .arg(config)
        .args(["-e", &source])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", process.id());
    let started = Instant::now();
    let mut peak_kilobytes = 0;
    while process.try_wait().unwrap().is_none() {
        assert!(started.elapsed() < WATCHDOG || process.kill().is_err(), "it does not end");
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        // `spawn` returns a moment before the kernel has replaced the memory of this process in the child; until the
        // child has the name of its program, the peak is that of all tests of this process.
        if text.starts_with("Name:\tcx\n") {
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let now = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
            peak_kilobytes = peak_kilobytes.max(now.unwrap_or(0));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_ne!(peak_kilobytes, 0, "its memory was never read");
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    Measured { seen: value["seen"].as_str().unwrap().to_owned(), peak_megabytes: peak_kilobytes >> 10 }
}
