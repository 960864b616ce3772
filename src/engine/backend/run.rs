//! A run that a back end executes.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::host_client::{HostClient, unreadable};
use super::reported::ReportedUsage;
use crate::engine::host::RunHost;
use crate::json::Json;
use crate::run::call_terms::CallTerms;
use crate::run::calls::resolve::ToolName;
use crate::run::limits::Limits;
use crate::run::result::{ErrorCode, LogLevel, Outcome, ScriptError};
use crate::run::script::Language;
use crate::tools::{ToolError, ToolErrorCode};

/// The first number of the requests that [`BackendRun::fetch`] begins: above those that a script in JavaScript can
/// choose for requests of its own.
const FIRST_FETCH: u64 = 1 << 53;

/// A run that a [`Backend`](crate::Backend) executes, and its host interface: what the built-in engines have.
///
/// What a script asks for goes to the executor, which checks, counts, records and bounds it as for any script: a
/// sandbox that was taken over gets no more than its script may have. All futures can be dropped, which cancels what
/// they do; they do nothing before they are polled, and they end with the run at the latest. At most 11,000 calls and
/// queries are in flight at once, with 32 MiB of queries; what is more fails with `QUEUE_FULL`.
///
/// Methods are here for what sandboxes of any language need. [`query`](Self::query) has all the rest.
pub struct BackendRun {
    pub(super) client: HostClient,
    source: String,
    usage: Arc<ReportedUsage>,
    tenant: Option<String>,
    next_fetch: AtomicU64,
}

impl fmt::Debug for BackendRun {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("BackendRun").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl BackendRun {
    pub(super) fn new(host: &Arc<dyn RunHost>, source: &str, usage: &Arc<ReportedUsage>) -> Self {
        Self {
            client: HostClient::new(Arc::clone(host)),
            source: source.to_owned(),
            usage: Arc::clone(usage),
            tenant: host.tenant(),
            next_fetch: AtomicU64::new(FIRST_FETCH),
        }
    }

    fn host(&self) -> &Arc<dyn RunHost> {
        &self.client.host
    }

    /// The number of the next request of [`fetch`](Self::fetch).
    pub(super) fn next_fetch(&self) -> u64 {
        self.next_fetch.fetch_add(1, Ordering::Relaxed)
    }

    /// The language of the script.
    pub fn language(&self) -> Language {
        self.host().language()
    }

    /// The text of the script.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The name of the script, for stack traces.
    pub fn name(&self) -> &str {
        self.host().script_name()
    }

    /// The script's input, if it has one.
    pub fn input(&self) -> Option<&Json> {
        self.host().input()
    }

    /// The limits in force. An operator who [changes the configuration](crate::Executor::reconfigure) can lower them
    /// while the run is in flight.
    pub fn limits(&self) -> Limits {
        self.host().limits()
    }

    /// When the run's wall-clock time ends. Approval prompts pause that time, so this moves: read it again.
    pub fn deadline(&self) -> Instant {
        self.host().deadline()
    }

    /// Cancelled when the run has to stop or has ended, for what is not part of the future of
    /// [`Backend::execute`](crate::Backend::execute), such as a thread. Cancelling it has no effect on the run.
    pub fn cancelled(&self) -> CancellationToken {
        self.host().cancelled().child_token()
    }

    /// Whether the script is only to be compiled: [`Executor::check`](crate::Executor::check).
    pub fn is_check(&self) -> bool {
        self.host().is_check()
    }

    /// Whose run it is: a client's name, or `None` for the embedder's own. A sandbox that has executed a run of one
    /// tenant must not execute one of another. Each run of clients that cannot be told apart has a name of its own.
    pub fn tenant(&self) -> Option<&str> {
        self.tenant.as_deref()
    }

    /// The name of the time zone that the script has to see as the local one, in the IANA database.
    pub fn time_zone(&self) -> &'static str {
        self.host().time_zone().name()
    }

    /// The least time between two readings of a clock that differ; `None` for the resolution of the system's own
    /// clocks. Coarse clocks make it harder to measure what others do on the machine.
    pub fn clock_resolution(&self) -> Option<Duration> {
        Some(self.host().clock_resolution()).filter(|resolution| !resolution.is_zero())
    }

    /// Whether a person has granted the script requests to any host. Without that a script has no `fetch`, and
    /// [`fetch`](Self::fetch) fails.
    pub fn has_network(&self) -> bool {
        self.host().has_network()
    }

    /// The servers that the script may see, in order.
    pub fn servers(&self) -> Vec<String> {
        self.host().server_names().iter().map(|name| name.to_string()).collect()
    }

    /// The names of a server's tools that the script may call.
    ///
    /// # Errors
    ///
    /// `TOOL_NOT_FOUND` with similar names of servers, or why the server does not list its tools.
    pub fn tool_names(&self, server: &str) -> BoxFuture<'static, Result<Vec<String>, ToolError>> {
        let (client, server) = (self.client.clone(), server.to_owned());
        async move {
            let _permit = client.begin(server.len())?;
            client.host.tool_names(server).await
        }
        .boxed()
    }

    /// Calls a tool, `server.tool` or `mcp__server__tool`, with arguments as JSON text: an object, or empty text for
    /// none.
    ///
    /// # Errors
    ///
    /// What the script gets: the tool's own error, or why the executor refuses the call.
    pub fn call(&self, tool: &str, arguments: &str) -> BoxFuture<'static, Result<Json, ToolError>> {
        // The host counts the bytes of arguments.
        let (client, tool, arguments) = (self.client.clone(), tool.to_owned(), arguments.to_owned());
        async move {
            let _permit = client.begin(0)?;
            let answer = client.host.call(ToolName::of_text(&tool), arguments, CallTerms::default()).await?;
            Json::parse(&answer).map_err(|error| unreadable(&error))
        }
        .boxed()
    }

    /// Asks what a script can ask of its host beside calls of tools. `query` is JSON text of at most 32 MiB, an object
    /// with a `kind`: `{"kind":"state","call":{"get":{"key":"k","tagged":false}}}`. It may come from the sandbox as
    /// it is: the executor trusts nothing of it.
    ///
    /// `docs/backends.md` has all kinds with their fields and answers.
    ///
    /// # Errors
    ///
    /// What the script gets. `INVALID_ARGUMENTS` for text that is not a query; the message names
    /// all kinds.
    pub fn query(&self, query: &str) -> BoxFuture<'static, Result<Json, ToolError>> {
        let answer = self.client.ask_text(query.to_owned());
        async move { Json::parse(&answer.await?).map_err(|error| unreadable(&error)) }.boxed()
    }

    /// Prints a line. The result keeps [`Limits::output_bytes`] bytes of all lines together; bytes beyond that are only
    /// counted.
    pub fn print(&self, level: LogLevel, text: impl Into<String>) {
        self.host().log(level, text.into());
    }

    /// Emits a content block.
    ///
    /// # Errors
    ///
    /// `RESULT_TOO_LARGE` if all blocks together have more than [`Limits::result_bytes`] bytes, `CANCELLED` if the run
    /// has ended.
    pub fn emit(&self, block: &Json) -> Result<(), ToolError> {
        self.host().emit(block.text()).map(drop)
    }

    /// Says how many bytes of memory the sandbox uses for this run now. Together with the files in the run's scratch
    /// directory that may be [`Limits::memory_bytes`]; with more the run is stopped (`MEMORY_LIMIT`), and what is left
    /// bounds the scratch directory. [`Usage::memory_bytes`](crate::Usage::memory_bytes) has the most that was
    /// reported.
    ///
    /// Measure it from outside of the sandbox, which may be hostile.
    pub fn report_memory(&self, bytes: usize) {
        self.usage.set_memory(bytes);
        if self.usage.enforce(self.limits().memory_bytes) {
            // The watchdog would do it within some milliseconds.
            self.host().cancelled().cancel();
        }
    }

    /// Says how much CPU time the sandbox has used since the run began, outside of the thread that polls
    /// [`Backend::execute`](crate::Backend::execute), whose time is measured. Together they may be
    /// [`Limits::cpu_time`]; within 5 ms of more the run is stopped (`CPU_LIMIT`). Less than was reported before has
    /// no effect.
    pub fn report_cpu_time(&self, time: Duration) {
        self.usage.set_cpu_time(time);
    }

    /// The outcome of a script that has thrown.
    pub fn failed(&self, message: impl Into<String>) -> Outcome {
        Outcome::Failed(ScriptError { message: message.into(), ..ScriptError::default() })
    }

    /// The outcome of a script that a failed call or query has ended, because it did not catch the error.
    pub fn failed_by(&self, error: &ToolError) -> Outcome {
        let code = match error.code {
            ToolErrorCode::MaxToolCallsExceeded => ErrorCode::MaxToolCallsExceeded,
            _ => ErrorCode::RuntimeError,
        };
        Outcome::Failed(ScriptError {
            name: Some("McpToolError".to_owned()),
            tool_code: Some(error.code),
            retry_after: error.retry_after,
            ..ScriptError::new(code, error.message.clone())
        })
    }
}
