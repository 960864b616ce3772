//! One run as plain data: the input ([`Script`]) and the output ([`ExecuteResult`]).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::json::Json;
use crate::run::limits::Limits;
use crate::storage::state::DefaultScope;
use crate::tools::approval::Approver;
use crate::tools::{Approval, ApprovalRequest, Progress, ToolErrorCode};

/// A script and the options of its run.
///
/// ```
/// # use cx::{Limits, Script};
/// # use std::time::Duration;
/// let script = Script::typescript("return input.a + 1")
///     .named("add.ts")
///     .input(serde_json::json!({ "a": 1 }))
///     .allow(["weather.*"])
///     .limits(Limits { wall_time: Duration::from_secs(5), ..Limits::default() });
/// ```
#[derive(Clone)]
pub struct Script {
    pub(crate) language: Language,
    pub(crate) source: String,
    pub(crate) name: String,
    pub(crate) input: Option<Json>,
    pub(crate) limits: Option<Limits>,
    pub(crate) allow: Option<Vec<String>>,
    pub(crate) deny: Vec<String>,
    pub(crate) ask: Vec<String>,
    pub(crate) approver: Option<Approver>,
    pub(crate) is_dry_run: bool,
    pub(crate) session: Option<String>,
    pub(crate) default_scope: DefaultScope,
    pub(crate) owner: Option<String>,
    pub(crate) cancel: Option<CancellationToken>,
    pub(crate) on_output: Option<OutputListener>,
    pub(crate) on_progress: Option<CallProgressListener>,
    pub(crate) on_call: Option<CallListener>,
}

/// The language of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Language {
    /// TypeScript or JavaScript, in V8.
    TypeScript,
    /// Python, in CPython compiled to WebAssembly.
    Python,
}

/// Called with each output entry when it is printed, on the script's own thread.
pub(crate) type OutputListener = Arc<dyn Fn(&Output) + Send + Sync>;

/// Called with each progress report of a tool.
pub(crate) type CallProgressListener = Arc<dyn Fn(&CallProgress) + Send + Sync>;

/// Called with each call that has ended.
pub(crate) type CallListener = Arc<dyn Fn(&ToolCallRecord) + Send + Sync>;

/// The progress of one of a script's calls, as its tool reports it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CallProgress {
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The reported progress.
    pub progress: Progress,
}

impl Script {
    /// A script from TypeScript or JavaScript source, in any of the forms that docs/scripts.md
    /// lists.
    pub fn typescript(source: impl Into<String>) -> Self {
        Self::new(Language::TypeScript, source.into())
    }

    /// A script from Python source, in any of the forms that docs/python.md lists.
    pub fn python(source: impl Into<String>) -> Self {
        Self::new(Language::Python, source.into())
    }

    fn new(language: Language, source: String) -> Self {
        let name = match language {
            Language::TypeScript => "script.ts",
            Language::Python => "script.py",
        };
        Self {
            language,
            source,
            name: name.to_owned(),
            input: None,
            limits: None,
            allow: None,
            deny: Vec::new(),
            ask: Vec::new(),
            approver: None,
            is_dry_run: false,
            session: None,
            default_scope: DefaultScope::default(),
            owner: None,
            cancel: None,
            on_output: None,
            on_progress: None,
            on_call: None,
        }
    }

    /// Sets the name that stack traces show instead of `script.ts` or `script.py`.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the JSON value that the script sees as `input` (Python: `inputs`). It is a [`Value`],
    /// or JSON text ([`Json::parse`]), which takes a fraction of the memory. The default is `null`
    /// (`None`).
    #[must_use]
    pub fn input(mut self, input: impl Into<Json>) -> Self {
        self.input = Some(input.into());
        self
    }

    /// Sets the limits of this run, instead of the executor's.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Restricts this run to tools that match one of `patterns` (see
    /// [`ExecutorBuilder::allow`](crate::ExecutorBuilder::allow)), in addition to the executor's
    /// restrictions. An empty list allows nothing.
    #[must_use]
    pub fn allow<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.allow.get_or_insert_default().extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Denies tools that match one of `patterns`. Denial takes precedence over allowance.
    #[must_use]
    pub fn deny<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.deny.extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Requires approval for tools that match one of `patterns` too (see
    /// [`ExecutorBuilder::ask`](crate::ExecutorBuilder::ask)), in addition to those of the
    /// executor.
    #[must_use]
    pub fn ask<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.ask.extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Sets the approver of this run, instead of the executor's
    /// [`approver`](crate::ExecutorBuilder::approver).
    #[must_use]
    pub fn approver<Answer>(
        mut self,
        approver: impl Fn(ApprovalRequest) -> Answer + Send + Sync + 'static,
    ) -> Self
    where
        Answer: Future<Output = Approval> + Send + 'static,
    {
        self.approver = Some(Arc::new(move |request| approver(request).boxed()));
        self
    }

    /// Makes this a dry run: it calls only read-only tools. For any other call the script gets a
    /// sample of the tool's result, with the text `dry run` in place of every string, and the
    /// result lists the call in [`ExecuteResult::planned_calls`]. Writes to the script's state can
    /// be read back during the run and are discarded at its end. Everything else is as in a real
    /// run: limits, policy, checks of arguments, calls of read-only tools, and requests for
    /// resources and prompts. A call that is not made needs no approval.
    ///
    /// Read-only tools are those that
    /// [`ExecutorBuilder::read_only`](crate::ExecutorBuilder::read_only) names, and those that
    /// declare `readOnlyHint`, as long as their definition matches the pinned one. A malicious
    /// server can declare the hint for a tool that writes. If the server's own `read_only` list is
    /// set, its hints are ignored.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.is_dry_run = true;
        self
    }

    /// Uses the state of a session instead of the workspace's
    /// ([`ExecutorBuilder::state`](crate::ExecutorBuilder::state)). Scripts with the same handle
    /// share it. The handle is 1 to 128 visible characters; [`Executor::run`](crate::Executor::run)
    /// refuses others.
    #[must_use]
    pub fn session(mut self, handle: impl Into<String>) -> Self {
        self.session = Some(handle.into());
        self
    }

    /// Sets the scope of the script's state that applies if it names no session.
    pub(crate) fn default_scope(mut self, scope: DefaultScope) -> Self {
        self.default_scope = scope;
        self
    }

    /// Sets the client that requests the run. With `mcp.run(id)` the script can read the records of
    /// this client's earlier runs ([`History::keep`](crate::History::keep)). Without a client it
    /// can read none.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Ends the run with [`ErrorCode::Cancelled`] when `token` is cancelled.
    ///
    /// Dropping the run's future stops the script too, but then its result is lost.
    #[must_use]
    pub fn cancel_with(mut self, token: CancellationToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Calls `listener` with each output entry when the script prints it.
    ///
    /// It runs on the script's thread: a slow listener delays the script, but neither other runs
    /// nor this run's deadline.
    #[must_use]
    pub fn on_output(mut self, listener: impl Fn(&Output) + Send + Sync + 'static) -> Self {
        self.on_output = Some(Arc::new(listener));
        self
    }

    /// Calls `listener` with each progress report of a tool that the script calls. Servers are
    /// asked for progress reports only if there is a listener.
    ///
    /// It runs on the thread that reads the server's answers, so a slow listener delays those.
    #[must_use]
    pub fn on_progress(mut self, listener: impl Fn(&CallProgress) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Arc::new(listener));
        self
    }

    /// Calls `listener` with each tool call when it has ended, successfully or not, up to the first
    /// [`ToolCallRecord::KEPT`] calls of a run.
    ///
    /// It runs on the script's thread, so a slow listener delays the script.
    #[must_use]
    pub fn on_call(mut self, listener: impl Fn(&ToolCallRecord) + Send + Sync + 'static) -> Self {
        self.on_call = Some(Arc::new(listener));
        self
    }
}

impl From<&str> for Script {
    fn from(source: &str) -> Self {
        Self::typescript(source)
    }
}

impl From<String> for Script {
    fn from(source: String) -> Self {
        Self::typescript(source)
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Script")
            .field("language", &self.language)
            .field("name", &self.name)
            .field("source_bytes", &self.source.len())
            .field("limits", &self.limits)
            .field("allow", &self.allow)
            .field("deny", &self.deny)
            .field("ask", &self.ask)
            .field("is_dry_run", &self.is_dry_run)
            .finish_non_exhaustive()
    }
}

/// The result of a run: its outcome, and everything it did up to that point.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExecuteResult {
    /// The value, or why there is none.
    pub outcome: Outcome,
    /// What the script printed and emitted, in order, up to [`Limits::output_bytes`]. Beyond the
    /// first 10,000 entries, consecutive lines of one level are merged into one entry, separated by
    /// newlines.
    pub logs: Vec<Output>,
    /// Every tool call, in the order in which the calls were made. Calls beyond the first
    /// [`ToolCallRecord::KEPT`] are only counted in [`Usage::tool_calls`].
    pub tool_calls: Vec<ToolCallRecord>,
    /// The calls that a [dry run](Script::dry_run) would have made, in order; `None` if this was
    /// not a dry run. Calls beyond the first [`PlannedCall::KEPT`], or beyond
    /// [`PlannedCall::KEPT_BYTES`] of arguments, are only counted in
    /// [`Usage::planned_calls_dropped`].
    pub planned_calls: Option<Vec<PlannedCall>>,
    /// The resources that the run used.
    pub usage: Usage,
}

impl ExecuteResult {
    /// The script's return value as a tree. `None` if the script failed, or if the tree would take
    /// more memory than [`Json::value`] allows; [`ExecuteResult::value_json`] has the value in that
    /// case too.
    pub fn value(&self) -> Option<&Value> {
        self.value_json().and_then(Json::value)
    }

    /// The script's return value as JSON text, or `None` if the script failed.
    pub fn value_json(&self) -> Option<&Json> {
        match &self.outcome {
            Outcome::Returned(value) => Some(value),
            Outcome::Failed(_) => None,
        }
    }

    /// The script's error, or `None` if it returned.
    pub fn error(&self) -> Option<&ScriptError> {
        match &self.outcome {
            Outcome::Returned(_) => None,
            Outcome::Failed(error) => Some(error),
        }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// The script's value. `undefined` becomes `null`.
    Returned(Json),
    /// The script failed or reached a limit.
    Failed(ScriptError),
}

/// Why a script has no value.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ScriptError {
    /// The reason, from a closed set of codes. The host decides it; no text that a script throws
    /// can change it.
    pub code: ErrorCode,
    /// What went wrong, in one sentence, or the message of the thrown error.
    pub message: String,
    /// The thrown error's `name`, such as `TypeError`.
    pub name: Option<String>,
    /// The stack, with lines and columns of the author's source.
    pub stack: Option<String>,
    /// Line of the source, from 1.
    pub line: Option<u32>,
    /// Column of the source, from 1, in UTF-16 units as editors and V8 count.
    pub column: Option<u32>,
    /// The text of that line.
    pub source_line: Option<String>,
    /// What the author can do about it.
    pub hint: Option<String>,
    /// The error code of the tool call whose uncaught error ended the script.
    pub tool_code: Option<ToolErrorCode>,
    /// Suggested delay before a retry.
    pub retry_after: Option<Duration>,
}

impl ScriptError {
    /// An error that has only a code and a message.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), ..Self::default() }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code, self.message)
    }
}

/// Why a run failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorCode {
    /// The source is not TypeScript, or not Python.
    SyntaxError,
    /// The source is TypeScript that cannot be transpiled to JavaScript without type information.
    TranspileError,
    /// The script threw, or its value is not JSON.
    #[default]
    RuntimeError,
    /// The wall-clock limit was exceeded.
    Timeout,
    /// The limit of the script's own CPU time was exceeded.
    CpuLimit,
    /// The memory limit was exceeded: V8's heap and array buffers, or the interpreter's memory.
    MemoryLimit,
    /// The script ended with the uncaught error of a call beyond [`Limits::tool_calls`].
    MaxToolCallsExceeded,
    /// The script's value is larger than [`Limits::result_bytes`].
    ResultTooLarge,
    /// The run was cancelled.
    Cancelled,
    /// Too many runs are in progress and queued.
    QueueFull,
    /// The engine accepts no runs for now: too many of its workers are hung in scripts that cannot
    /// be stopped. If that persists, restart the process.
    EngineUnavailable,
}

impl ErrorCode {
    /// The code as it is written in replies.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SyntaxError => "SYNTAX_ERROR",
            Self::TranspileError => "TRANSPILE_ERROR",
            Self::RuntimeError => "RUNTIME_ERROR",
            Self::Timeout => "TIMEOUT",
            Self::CpuLimit => "CPU_LIMIT",
            Self::MemoryLimit => "MEMORY_LIMIT",
            Self::MaxToolCallsExceeded => "MAX_TOOL_CALLS_EXCEEDED",
            Self::ResultTooLarge => "RESULT_TOO_LARGE",
            Self::Cancelled => "CANCELLED",
            Self::QueueFull => "QUEUE_FULL",
            Self::EngineUnavailable => "ENGINE_UNAVAILABLE",
        }
    }

    /// Whether a limit ended the run, rather than an error of the script.
    pub const fn is_limit(self) -> bool {
        match self {
            Self::Timeout
            | Self::CpuLimit
            | Self::MemoryLimit
            | Self::MaxToolCallsExceeded
            | Self::ResultTooLarge
            | Self::QueueFull
            | Self::EngineUnavailable => true,
            Self::SyntaxError | Self::TranspileError | Self::RuntimeError | Self::Cancelled => false,
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// One entry of a run's output.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Output {
    /// A line that the script printed through `console` or `print`.
    Log {
        /// The severity, from the console method.
        level: LogLevel,
        /// The formatted text, without a trailing newline.
        text: String,
    },
    /// A content block that the script passed to `emit`: `{type: "text", text}`,
    /// `{type: "image", mimeType, data}` or another of MCP's kinds.
    Emit(Json),
}

/// The severity of a printed line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LogLevel {
    /// `console.debug`.
    Debug,
    /// `console.log`, `console.info`, other console methods that print like them, and Python's
    /// `sys.stdout`.
    Info,
    /// `console.warn`, and Python's `sys.stderr`.
    Warn,
    /// `console.error`.
    Error,
}

/// The record of one tool call of a run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolCallRecord {
    /// The server's name as configured.
    pub server: String,
    /// The tool's name on that server.
    pub tool: String,
    /// How the call ended, or its state when the run ended.
    pub status: ToolCallStatus,
    /// Whether this call was approved through an approval prompt.
    pub approved: bool,
    /// Time from the call's start to its end or to the run's end. Waiting for a free slot or for an
    /// approval is not included. For a call that was not approved: how long the approval took.
    pub duration: Duration,
    /// Bytes of the arguments as JSON.
    pub argument_bytes: usize,
    /// Bytes of the result as JSON, 0 if there is none.
    pub result_bytes: usize,
}

impl ToolCallRecord {
    /// Maximum number of records of a run. It bounds the reply of a run without a call limit.
    pub const KEPT: usize = 10_000;
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolCallStatus {
    /// It had not ended when the run ended. Whether it took effect is unknown.
    InFlight,
    /// It returned a result.
    Ok,
    /// It failed with this code.
    Failed(ToolErrorCode),
    /// Its approval was pending when the run ended. It was not made.
    AwaitingApproval,
    /// It needed an approval and did not get it. It was not made.
    NotApproved(Refusal),
    /// It was only simulated, because the run was a [dry run](Script::dry_run).
    Stubbed,
}

impl ToolCallStatus {
    /// The status as replies write it: a few words, or the code of the call's error.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InFlight => "in flight",
            Self::Ok => "ok",
            Self::Failed(code) => code.as_str(),
            Self::AwaitingApproval => "awaiting approval",
            Self::NotApproved(_) => "not approved",
            Self::Stubbed => "stubbed",
        }
    }
}

/// Why a call that needed an approval was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// The user denied it.
    Denied,
    /// There was no answer within [`Limits::answer_time`].
    NoAnswer,
    /// There is no approver, or none is available.
    NobodyToAsk,
    /// The run had used up its [`Limits::questions`] approval prompts.
    TooManyQuestions,
    /// The arguments are longer than an approval prompt can show.
    TooLong,
    /// The tool's definition at the server changed after it was shown for approval.
    Changed,
}

/// A call that a dry run would have made.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct PlannedCall {
    /// The server's name as configured.
    pub server: String,
    /// The tool's name on that server.
    pub tool: String,
    /// The arguments that would have been sent: an object.
    pub arguments: Json,
}

impl PlannedCall {
    /// Maximum number of planned calls that a run keeps.
    pub const KEPT: usize = 1_000;
    /// Maximum bytes of their arguments together, as JSON.
    pub const KEPT_BYTES: usize = 1 << 20;
}

impl fmt::Debug for PlannedCall {
    /// Hides the arguments, because they may contain secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PlannedCall({}.{})", self.server, self.tool)
    }
}

/// The resources that a run used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Time from the start on a worker to the reply, including `approval_time`.
    pub wall_time: Duration,
    /// Time during which approval prompts were open.
    pub approval_time: Duration,
    /// Time spent waiting for admission and for a free worker, before `wall_time` starts.
    pub queue_time: Duration,
    /// CPU time of the script's thread, including parsing.
    pub cpu_time: Duration,
    /// Bytes of V8 heap and array buffers when the script ended; for Python all of the
    /// interpreter's memory, including its own part.
    pub memory_bytes: usize,
    /// Number of tool calls, including refused ones.
    pub tool_calls: u64,
    /// Bytes of all tool results that the script received. They would have gone to the model if it
    /// had called the tools itself.
    pub tool_result_bytes: u64,
    /// Bytes of output beyond [`Limits::output_bytes`], which were dropped.
    pub output_bytes_dropped: u64,
    /// Calls of a dry run that are not in [`ExecuteResult::planned_calls`].
    pub planned_calls_dropped: u64,
}
