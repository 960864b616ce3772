//! The host interface of one run, as engines see it. Everything that crosses it is text or a number, so that the
//! host can be in this process ([`ExecutionContext`](crate::run::context::ExecutionContext), implemented in
//! `host_calls.rs`) or behind a connection (`process/guest.rs`).

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::files::RunFiles;
use crate::json::Json;
use crate::run::call_terms::CallTerms;
use crate::run::calls::resolve::ToolName;
use crate::run::limits::Limits;
use crate::run::recording::GuestClock;
use crate::run::result::LogLevel;
use crate::run::script::Language;
use crate::run::tape::Wait;
use crate::run::time_zone::TimeZone;
use crate::tools::ToolError;

/// Maximum number of calls of every kind, tool calls among them, of a run in flight at once. Tool calls alone are at
/// most [`calls_in_flight`](Limits::calls_in_flight) and the 10,000 that wait for those; with the default limits this
/// leaves room for other calls.
pub(crate) const MAX_CALLS: usize = 11_000;

/// Maximum bytes of the names and queries of a run's calls in flight: as for the arguments of tools, which have a bound
/// of their own. Queries are small, except those that write the state of scripts.
pub(crate) const MAX_QUERY_BYTES: usize = 32 << 20;

/// Prefix that marks an answer as an error. No JSON text begins with it.
const FAILURE: char = '!';

/// What a host call returns.
pub(crate) type Answer = Result<String, ToolError>;

/// What an engine needs of the host during one run. The host makes every check: an engine only passes on what the
/// script asks for.
pub(crate) trait RunHost: Send + Sync {
    /// The language of the script.
    fn language(&self) -> Language;
    /// The name under which the script appears in stack traces.
    fn script_name(&self) -> &str;
    /// The script's input, if it has one.
    fn input(&self) -> Option<&Json>;
    /// The limits in force. Operators can lower them while the run is in flight.
    fn limits(&self) -> Limits;
    /// The most that a run can be given. A worker process does not know it, and need not: the executor says why it has
    /// stopped a run.
    fn max_limits(&self) -> Limits {
        Limits::CEILING
    }
    /// Says how much fuel the run has used, and returns whether that is more than the limit in force. In a worker
    /// process the executor decides.
    fn exceeds_fuel(&self, used: u64) -> bool;
    /// The servers that the script may see, in order.
    fn server_names(&self) -> Vec<Arc<str>>;
    /// The time zone that the script sees as the local one.
    fn time_zone(&self) -> TimeZone;
    /// Resolution of the clocks that the script can read; zero for the system's own.
    fn clock_resolution(&self) -> Duration;
    /// The run's current deadline.
    fn deadline(&self) -> Instant;
    /// Cancelled when the run has to end.
    fn cancelled(&self) -> &CancellationToken;
    /// What records the run or plays one back.
    fn tape(&self) -> Option<Arc<dyn RunTape>>;
    /// The script's files, as far as they are in this process.
    fn files(&self) -> &Arc<RunFiles>;
    /// Whether a person has granted the script requests to any host.
    fn has_network(&self) -> bool;
    /// Whether the script is only compiled.
    fn is_check(&self) -> bool;
    /// How many runs this one is nested in.
    fn depth(&self) -> usize;
    /// The client whose run it is; `None` for the embedder's own.
    fn tenant(&self) -> Option<String>;
    /// Whether the script computes in another process, so that a future which waits for it does not mean that the
    /// run waits.
    fn compute_elsewhere(&self, is_computing: bool);
    /// Calls a tool. Checks that need no waiting are made before this returns, as is the request.
    fn call(
        self: Arc<Self>,
        name: ToolName,
        arguments: String,
        terms: CallTerms,
    ) -> BoxFuture<'static, Answer>;
    /// Answers a query about servers and tools, or reads and changes the script's persistent state. Engines poll
    /// the future once immediately, so that checks that need no waiting are made at once.
    fn query(self: Arc<Self>, request: &str) -> BoxFuture<'static, Answer>;
    /// The names of a server's tools.
    fn tool_names(self: Arc<Self>, server: String) -> BoxFuture<'static, Result<Vec<String>, ToolError>>;
    /// Logs text, from which the newline of the print function was removed.
    fn log(&self, level: LogLevel, text: String);
    /// Emits a content block, which is JSON text. An empty answer means success.
    fn emit(&self, block: &str) -> Answer;
    /// Completes a future of this host's on the script's thread, which blocks meanwhile.
    fn block_on(&self, future: Pin<&mut dyn Future<Output = ()>>);
}

/// What an engine needs of the tape of a run. See `src/run/tape.rs`.
pub(crate) trait RunTape: Send + Sync {
    /// TypeScript: the event loop has nothing else to do, so one answer or timer can be delivered.
    fn open_turn(&self);
    /// Python: the same for a wait of at most `timeout_ms`.
    fn open_wait(&self, timeout_ms: Option<f64>) -> Wait;
    /// Ends a wait of Python.
    fn close_wait(&self, has_delivered: bool);
    /// A reading of a clock in nanoseconds; in a recording `real` is the machine's.
    fn read_clock(&self, clock: GuestClock, real: u64) -> u64;
    /// Time since the start of the run that is recorded.
    fn elapsed(&self) -> Duration;
    /// Fills `bytes` with random bytes.
    fn fill_random(&self, bytes: &mut [u8]);
    /// Sets whether the script's thread blocks while it waits for its calls. Can be nested.
    fn set_blocking(&self, is_blocking: bool);
}

/// The host functions of one run, shared by all engines.
pub(crate) struct HostCalls {
    host: Arc<dyn RunHost>,
}

impl HostCalls {
    pub(crate) fn new(host: Arc<dyn RunHost>) -> Self {
        Self { host }
    }

    /// Whether the run has used more fuel than the limit in force.
    pub(crate) fn exceeds_fuel(&self, used: u64) -> bool {
        self.host.exceeds_fuel(used)
    }

    /// Calls a tool.
    pub(crate) fn call(
        &self,
        name: ToolName,
        arguments: String,
        terms: CallTerms,
    ) -> BoxFuture<'static, Answer> {
        Arc::clone(&self.host).call(name, arguments, terms)
    }

    /// Answers a query.
    pub(crate) fn query(&self, request: &str) -> BoxFuture<'static, Answer> {
        Arc::clone(&self.host).query(request)
    }

    /// The names of a server's tools.
    pub(crate) fn tool_names(&self, server: &str) -> BoxFuture<'static, Result<Vec<String>, ToolError>> {
        Arc::clone(&self.host).tool_names(server.to_owned())
    }

    /// Completes a host call while the script's thread blocks.
    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut answer = None;
        let _blocking = self.blocking();
        {
            let future = std::pin::pin!(async { answer = Some(future.await) });
            self.host.block_on(future);
        }
        answer
    }

    /// While the returned value exists, the script's thread blocks for what it asks for.
    pub(crate) fn blocking(&self) -> Option<Blocking> {
        self.host.tape().map(|tape| {
            tape.set_blocking(true);
            Blocking(tape)
        })
    }

    /// Resolution of the clocks that the script can read.
    pub(crate) fn clock_resolution(&self) -> Duration {
        self.host.clock_resolution()
    }

    /// The tape of the run, if it has one.
    pub(crate) fn tape(&self) -> Option<Arc<dyn RunTape>> {
        self.host.tape()
    }

    /// Logs text. One trailing newline is removed.
    pub(crate) fn log(&self, level: LogLevel, mut text: String) {
        if text.ends_with('\n') {
            text.pop();
        }
        self.log_line(level, text);
    }

    /// Logs text, from which the newline of the print function was removed.
    pub(crate) fn log_line(&self, level: LogLevel, text: String) {
        self.host.log(level, text);
    }

    /// Emits a content block. An empty answer means success.
    pub(crate) fn emit(&self, block: &str) -> Answer {
        self.host.emit(block)
    }

    /// Cancels the run.
    pub(crate) fn cancel(&self) {
        self.host.cancelled().cancel();
    }
}

/// See [`HostCalls::blocking`].
pub(crate) struct Blocking(Arc<dyn RunTape>);

impl Drop for Blocking {
    fn drop(&mut self) {
        self.0.set_blocking(false);
    }
}

/// Encodes an answer for the guest.
pub(crate) fn encode_answer(answer: Answer) -> String {
    answer.unwrap_or_else(|error| format!("{FAILURE}{}", error.to_guest_json()))
}
