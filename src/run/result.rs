//! One run as plain data: what goes in ([`Script`]) and what comes out ([`ExecuteResult`]).

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

/// A script and what its run may use.
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

/// What a script is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Language {
    /// TypeScript or JavaScript, in V8.
    TypeScript,
    /// Python, in CPython compiled to WebAssembly.
    Python,
}

/// Is called with each piece of output as it is printed, on the script's own thread.
pub(crate) type OutputListener = Arc<dyn Fn(&Output) + Send + Sync>;

/// Is called with each report of a tool that says how far it has come.
pub(crate) type CallProgressListener = Arc<dyn Fn(&CallProgress) + Send + Sync>;

/// Is called with each call that has ended.
pub(crate) type CallListener = Arc<dyn Fn(&ToolCallRecord) + Send + Sync>;

/// How far one of a script's calls has come, as its tool reports it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CallProgress {
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// What it reports.
    pub progress: Progress,
}

impl Script {
    /// TypeScript or JavaScript source, in any of the forms that docs/scripts.md lists.
    pub fn typescript(source: impl Into<String>) -> Self {
        Self::new(Language::TypeScript, source.into())
    }

    /// Python source, in any of the forms that docs/python.md lists.
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

    /// The name that stack traces show instead of `script.ts` or `script.py`.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The JSON value that the script sees as `input` (Python: `inputs`): a [`Value`], or text that is JSON already
    /// ([`Json::parse`]), which takes a fraction of the memory. Without it that is `null` (`None`).
    #[must_use]
    pub fn input(mut self, input: impl Into<Json>) -> Self {
        self.input = Some(input.into());
        self
    }

    /// Limits of this run instead of the executor's.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Narrows the tools of this run to those that match one of `patterns` (see
    /// [`ExecutorBuilder::allow`](crate::ExecutorBuilder::allow)). Never widens what the executor
    /// allows. An empty list allows nothing.
    #[must_use]
    pub fn allow<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.allow.get_or_insert_default().extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Takes away the tools that match one of `patterns`. Denial wins over allowance.
    #[must_use]
    pub fn deny<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.deny.extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Asks a person about the tools that match one of `patterns` too (see
    /// [`ExecutorBuilder::ask`](crate::ExecutorBuilder::ask)). Takes nothing from what the executor asks about.
    #[must_use]
    pub fn ask<P: Into<String>>(mut self, patterns: impl IntoIterator<Item = P>) -> Self {
        self.ask.extend(patterns.into_iter().map(Into::into));
        self
    }

    /// Who asks a person for this run, instead of the executor's
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

    /// Makes no call of a tool that is not read-only. The script gets a sample of what the tool returns instead, with
    /// the text `dry run` wherever there is one, and the result lists the call in [`ExecuteResult::planned_calls`].
    /// What the script writes to its state it reads again, and it is forgotten with the run. Nothing else differs:
    /// limits, policy, checks of arguments, calls of tools that only read and requests for resources and prompts are
    /// those of a real run. About a call that is not made nobody is asked.
    ///
    /// Which tools only read: those that [`ExecutorBuilder::read_only`](crate::ExecutorBuilder::read_only) names, and
    /// those that say so themselves (`readOnlyHint`), as long as their definition is the one that was accepted. A
    /// server that lies about that does what it likes; `read_only` of a server says not to believe it.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.is_dry_run = true;
        self
    }

    /// Gives the script the state of a session instead of the workspace's
    /// ([`ExecutorBuilder::state`](crate::ExecutorBuilder::state)). Whoever names the same handle shares it. 1 to 128
    /// characters that can be seen; [`Executor::run`](crate::Executor::run) refuses others.
    #[must_use]
    pub fn session(mut self, handle: impl Into<String>) -> Self {
        self.session = Some(handle.into());
        self
    }

    /// Says whose state the script has if it names no session.
    pub(crate) fn default_scope(mut self, scope: DefaultScope) -> Self {
        self.default_scope = scope;
        self
    }

    /// Says who asks for the run: with `mcp.run(id)` the script reads what this owner's earlier runs left behind
    /// ([`History::keep`](crate::History::keep)). Without one it reads nobody's.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Ends the run with [`ErrorCode::Cancelled`] when `token` is cancelled.
    ///
    /// Dropping the run's future stops the script too, but then nobody gets its result.
    #[must_use]
    pub fn cancel_with(mut self, token: CancellationToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Calls `listener` with each piece of output at the time the script prints it.
    ///
    /// It runs on the script's thread: what it does slowly delays the script, not other runs, and
    /// not this run's deadline.
    #[must_use]
    pub fn on_output(mut self, listener: impl Fn(&Output) + Send + Sync + 'static) -> Self {
        self.on_output = Some(Arc::new(listener));
        self
    }

    /// Calls `listener` whenever a tool that the script calls reports how far it has come. Servers are
    /// asked for such reports only if there is a listener.
    ///
    /// It runs on the thread that reads the server's answers: what it does slowly delays those.
    #[must_use]
    pub fn on_progress(mut self, listener: impl Fn(&CallProgress) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(Arc::new(listener));
        self
    }

    /// Calls `listener` with each tool call when it has ended, well or not; of the calls of one run, with the first
    /// [`ToolCallRecord::KEPT`].
    ///
    /// It runs on the script's thread: what it does slowly delays the script.
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

/// What a run left behind: its outcome, and everything it did up to that point.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExecuteResult {
    /// The value, or why there is none.
    pub outcome: Outcome,
    /// What the script printed and emitted, in order, up to [`Limits::output_bytes`]. Beyond the first 10,000 pieces,
    /// lines of one level that follow each other are one piece, with newlines between them.
    pub logs: Vec<Output>,
    /// Every tool call, in the order in which the calls were made. Calls beyond the first
    /// [`ToolCallRecord::KEPT`] are only counted in [`Usage::tool_calls`].
    pub tool_calls: Vec<ToolCallRecord>,
    /// The calls that a [dry run](Script::dry_run) would have made, in order; `None` if it was none. Calls beyond the
    /// first [`PlannedCall::KEPT`], or [`PlannedCall::KEPT_BYTES`] of them, are only counted in
    /// [`Usage::planned_calls_dropped`].
    pub planned_calls: Option<Vec<PlannedCall>>,
    /// What the run used.
    pub usage: Usage,
}

impl ExecuteResult {
    /// The value that the script returned, as a tree. `None` if it failed, or if a tree of its value would take more
    /// than [`Json::value`] allows; [`ExecuteResult::value_json`] has any.
    pub fn value(&self) -> Option<&Value> {
        self.value_json().and_then(Json::value)
    }

    /// The value that the script returned, as text, or `None` if it failed.
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
pub enum Outcome {
    /// The script's value; `undefined` arrives as `null`.
    Returned(Json),
    /// The script failed or hit a limit.
    Failed(ScriptError),
}

/// Why a script has no value.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ScriptError {
    /// The reason as a closed code. It is decided by the host: no text that a script throws can
    /// change it.
    pub code: ErrorCode,
    /// What went wrong, in one sentence or the thrown error's own words.
    pub message: String,
    /// The thrown error's `name`, as `TypeError`.
    pub name: Option<String>,
    /// The stack in the author's own lines and columns.
    pub stack: Option<String>,
    /// Line of the source, from 1.
    pub line: Option<u32>,
    /// Column of the source, from 1, in UTF-16 units as editors and V8 count.
    pub column: Option<u32>,
    /// The text of that line.
    pub source_line: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// The code of the tool call whose error ended the script uncaught.
    pub tool_code: Option<ToolErrorCode>,
    /// When it is worth trying again.
    pub retry_after: Option<Duration>,
}

impl ScriptError {
    /// An error that is only a code and a message.
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
    /// The source is TypeScript that cannot be turned into JavaScript without type information.
    TranspileError,
    /// The script threw, or its value is not JSON.
    #[default]
    RuntimeError,
    /// The wall-clock limit passed.
    Timeout,
    /// The script's own CPU time passed its limit.
    CpuLimit,
    /// Memory passed its limit: V8's heap and array buffers, or the interpreter's memory.
    MemoryLimit,
    /// The script ended on the error of a call beyond [`Limits::tool_calls`].
    MaxToolCallsExceeded,
    /// The script's value is larger than [`Limits::result_bytes`].
    ResultTooLarge,
    /// The run was cancelled.
    Cancelled,
    /// Too many runs are running and waiting.
    QueueFull,
    /// The engine cannot take runs any more: too many of its threads were lost to scripts that
    /// cannot be stopped. Restart the process.
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

    /// Whether a limit ended the run, rather than the script's own fault.
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

/// One piece of a run's output.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// A line that the script printed through `console` or `print`.
    Log {
        /// Which of the console's methods.
        level: LogLevel,
        /// The formatted text, without a newline at its end.
        text: String,
    },
    /// A content block that the script passed to `emit`: `{type: "text", text}`,
    /// `{type: "image", mimeType, data}` or another of MCP's kinds.
    Emit(Json),
}

/// The severity of a printed line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogLevel {
    /// `console.debug`.
    Debug,
    /// `console.log`, `console.info` and everything that prints like them, and Python's `sys.stdout`.
    Info,
    /// `console.warn`, and Python's `sys.stderr`.
    Warn,
    /// `console.error`.
    Error,
}

/// One tool call of a run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolCallRecord {
    /// The server's name as configured.
    pub server: String,
    /// The tool's name on that server.
    pub tool: String,
    /// How it ended, or that it had not when the run was over.
    pub status: ToolCallStatus,
    /// Whether a person was asked about this very call and approved it.
    pub approved: bool,
    /// From the call's start (not from its wait for a free slot or for a person) to its end or to the run's end. Of a
    /// call that was not approved: how long that took.
    pub duration: Duration,
    /// Bytes of the arguments as JSON.
    pub argument_bytes: usize,
    /// Bytes of the result as JSON, 0 if there is none.
    pub result_bytes: usize,
}

impl ToolCallRecord {
    /// How many records a run keeps. It bounds the reply of a run without a call limit.
    pub const KEPT: usize = 10_000;
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolCallStatus {
    /// It had not ended when the run was over. Whether it took effect is unknown.
    InFlight,
    /// It returned a result.
    Ok,
    /// It failed with this code.
    Failed(ToolErrorCode),
    /// A person was being asked, or was to be asked, when the run was over. It was not made.
    AwaitingApproval,
    /// It needed a person's approval and did not get it. It was not made.
    NotApproved(Refusal),
    /// It was not made, because the run was a [dry run](Script::dry_run).
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

/// Why a call that needed a person's approval was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// The person said no.
    Denied,
    /// There was no answer within [`Limits::answer_time`].
    NoAnswer,
    /// There is nobody who could be asked.
    NobodyToAsk,
    /// The run had asked [`Limits::questions`] already.
    TooManyQuestions,
    /// The arguments are longer than a person can be shown.
    TooLong,
    /// The tool's definition is not the one about which the person was asked, by what its server said afterwards.
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
    /// The arguments that would have been sent, an object.
    pub arguments: Json,
}

impl PlannedCall {
    /// How many a run keeps, and how many bytes of arguments as JSON.
    pub const KEPT: usize = 1_000;
    /// See [`PlannedCall::KEPT`].
    pub const KEPT_BYTES: usize = 1 << 20;
}

impl fmt::Debug for PlannedCall {
    /// Hides the arguments: they may hold secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PlannedCall({}.{})", self.server, self.tool)
    }
}

/// What a run used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// From the start on an isolate to the reply, `approval_time` included.
    pub wall_time: Duration,
    /// While a person was asked.
    pub approval_time: Duration,
    /// Waiting for admission and for a free isolate, before `wall_time` starts.
    pub queue_time: Duration,
    /// CPU time of the script's thread, parsing included.
    pub cpu_time: Duration,
    /// Bytes of V8 heap and array buffers when the script ended; in Python all of the interpreter's memory,
    /// its own part included.
    pub memory_bytes: usize,
    /// Tool calls in all, refused ones included.
    pub tool_calls: u64,
    /// Bytes of all results that tools gave to the script: what would have gone to the model had
    /// it called the tools itself.
    pub tool_result_bytes: u64,
    /// Bytes of output that did not fit into [`Limits::output_bytes`].
    pub output_bytes_dropped: u64,
    /// Calls of a dry run that are not in [`ExecuteResult::planned_calls`].
    pub planned_calls_dropped: u64,
}
