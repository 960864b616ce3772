//! The result of a run as plain data.

use std::fmt;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::json::Json;
use crate::run::finding::Finding;
use crate::run::frames;
use crate::run::sampling::SamplingReport;
use crate::tools::ToolErrorCode;

/// The result of a run: its outcome, and everything it did up to that point.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ExecuteResult {
    /// The value, or why there is none.
    pub outcome: Outcome,
    /// What the script printed and emitted, in order, up to
    /// [`Limits::output_bytes`](crate::Limits::output_bytes). Beyond the first 10,000 entries,
    /// consecutive lines of one level are merged into one entry, separated by newlines.
    pub logs: Vec<Output>,
    /// The tool calls, in the order in which the calls were made. Calls beyond the first
    /// [`ToolCallRecord::KEPT`], and those that were refused before they were recorded, are only
    /// counted in [`Usage`].
    pub tool_calls: Vec<ToolCallRecord>,
    /// If the script failed, the shapes of its tools' results: of the first results of the first 50 tools, at most
    /// 4,000 characters together. Else empty.
    pub returned: Vec<ReturnedShape>,
    /// The calls that a [dry run](crate::Script::dry_run) would have made, in order; `None` if this was
    /// not a dry run. Calls beyond the first [`PlannedCall::KEPT`], or beyond
    /// [`PlannedCall::KEPT_BYTES`] of arguments, are only counted in
    /// [`Usage::planned_calls_dropped`].
    pub planned_calls: Option<Vec<PlannedCall>>,
    /// The calls of language models; `None` if the run made none.
    pub sampling: Option<SamplingReport>,
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

    /// The script's return value as a Rust type.
    ///
    /// # Errors
    ///
    /// The script's error if it failed. `RUNTIME_ERROR` if the value is not of this type.
    pub fn value_as<T: DeserializeOwned>(&self) -> Result<T, Box<ScriptError>> {
        let error = match &self.outcome {
            Outcome::Returned(value) => match value.deserialize() {
                Ok(value) => return Ok(value),
                Err(error) => {
                    let wanted = std::any::type_name::<T>();
                    let message = format!("the value is not a `{wanted}`: {error}");
                    ScriptError::new(ErrorCode::RuntimeError, message)
                }
            },
            Outcome::Failed(error) => error.clone(),
        };
        Err(Box::new(error))
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
    /// The text of `line`.
    pub source_line: Option<String>,
    /// What the author can do about it.
    pub hint: Option<String>,
    /// The error code of the tool call whose uncaught error ended the script.
    pub tool_code: Option<ToolErrorCode>,
    /// Suggested delay before a retry.
    pub retry_after: Option<Duration>,
    /// Findings of the check in the order of the source. If the script was not run because it cannot succeed
    /// (`CHECK_FAILED`, or a syntax error that is not the only mistake): all errors and warnings, including this error.
    /// If a script that was run has failed: up to ten findings about other parts of it.
    pub problems: Vec<Finding>,
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

    /// What [`stack`](Self::stack) says beyond the name, the message and the location of the error: frames
    /// of other lines, causes, notes. `None` if that is nothing.
    pub fn stack_beyond_message(&self) -> Option<String> {
        let at = self.line.map(|line| (line, self.column.unwrap_or(1)));
        frames::beyond_message(self.stack.as_deref()?, self.name.as_deref(), &self.message, at)
    }

    /// The same for a model.
    pub(crate) fn stack_for_model(&self) -> Option<String> {
        self.stack_beyond_message().map(|stack| frames::without_marks(&stack))
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for ScriptError {}

/// Why a run failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorCode {
    /// The source is not TypeScript, or not Python.
    SyntaxError,
    /// The source is TypeScript that cannot be transpiled to JavaScript without type information.
    TranspileError,
    /// The script was not run, because it cannot succeed. [`ScriptError::problems`] lists the mistakes in its calls.
    CheckFailed,
    /// The script threw, or its value is not JSON.
    #[default]
    RuntimeError,
    /// The wall-clock limit was exceeded.
    Timeout,
    /// The limit of the script's own CPU time was exceeded.
    CpuLimit,
    /// A Python script used up its [`Limits::fuel`](crate::Limits::fuel).
    FuelLimit,
    /// The memory limit was exceeded: V8's heap and array buffers, or the interpreter's memory.
    MemoryLimit,
    /// The script ended with the uncaught error of a call beyond
    /// [`Limits::tool_calls`](crate::Limits::tool_calls).
    MaxToolCallsExceeded,
    /// The script's value is larger than [`Limits::result_bytes`](crate::Limits::result_bytes).
    ResultTooLarge,
    /// The run was cancelled.
    Cancelled,
    /// Too many runs are in progress and queued.
    QueueFull,
    /// The worker process of the script crashed, was killed, or broke the protocol. Only with
    /// [`Isolation::Process`](crate::Isolation). No other run is affected.
    EngineCrashed,
    /// The engine accepts no runs for now: too many of its workers are hung in scripts that cannot
    /// be stopped. If that persists, restart the process.
    EngineUnavailable,
}

impl ErrorCode {
    /// Every code.
    pub(crate) const ALL: [Self; 14] = [
        Self::SyntaxError,
        Self::TranspileError,
        Self::CheckFailed,
        Self::RuntimeError,
        Self::Timeout,
        Self::CpuLimit,
        Self::FuelLimit,
        Self::MemoryLimit,
        Self::MaxToolCallsExceeded,
        Self::ResultTooLarge,
        Self::Cancelled,
        Self::QueueFull,
        Self::EngineCrashed,
        Self::EngineUnavailable,
    ];

    /// The code that [`as_str`](Self::as_str) names so.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == name)
    }

    /// The code as it is written in replies.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SyntaxError => "SYNTAX_ERROR",
            Self::TranspileError => "TRANSPILE_ERROR",
            Self::CheckFailed => "CHECK_FAILED",
            Self::RuntimeError => "RUNTIME_ERROR",
            Self::Timeout => "TIMEOUT",
            Self::CpuLimit => "CPU_LIMIT",
            Self::FuelLimit => "FUEL_LIMIT",
            Self::MemoryLimit => "MEMORY_LIMIT",
            Self::MaxToolCallsExceeded => "MAX_TOOL_CALLS_EXCEEDED",
            Self::ResultTooLarge => "RESULT_TOO_LARGE",
            Self::Cancelled => "CANCELLED",
            Self::QueueFull => "QUEUE_FULL",
            Self::EngineCrashed => "ENGINE_CRASHED",
            Self::EngineUnavailable => "ENGINE_UNAVAILABLE",
        }
    }

    /// Whether a limit ended the run, rather than an error of the script.
    pub const fn is_limit(self) -> bool {
        match self {
            Self::Timeout
            | Self::CpuLimit
            | Self::FuelLimit
            | Self::MemoryLimit
            | Self::MaxToolCallsExceeded
            | Self::ResultTooLarge
            | Self::QueueFull
            | Self::EngineUnavailable => true,
            Self::SyntaxError
            | Self::TranspileError
            | Self::CheckFailed
            | Self::RuntimeError
            | Self::EngineCrashed
            | Self::Cancelled => false,
        }
    }

    /// Whether the script could not be compiled.
    pub const fn is_of_compilation(self) -> bool {
        matches!(self, Self::SyntaxError | Self::TranspileError)
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

impl LogLevel {
    /// Every level, each at the index that is its number for guests and worker processes.
    pub(crate) const ALL: [Self; 4] = [Self::Debug, Self::Info, Self::Warn, Self::Error];

    /// The level with this number; [`LogLevel::Error`] for a number that no level has, because guests choose them.
    pub(crate) fn from_number(number: u8) -> Self {
        Self::ALL.get(usize::from(number)).copied().unwrap_or(Self::Error)
    }

    /// Its number: its index in `ALL`, because the variants have the same order.
    pub(crate) const fn number(self) -> u8 {
        self as u8
    }

    /// The level that [`as_str`](Self::as_str) names so.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == name)
    }

    /// Its name in events and recordings: `debug`, `info`, `warn`, `error`.
    ///
    /// ```
    /// assert_eq!(cx::LogLevel::Warn.to_string(), "warn");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
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
    /// It was only simulated, because the run was a [dry run](crate::Script::dry_run).
    Simulated,
}

/// Why a call that needed an approval was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refusal {
    /// The user denied it.
    Denied,
    /// There was no answer within [`Limits::answer_time`](crate::Limits::answer_time).
    NoAnswer,
    /// There is no approver, or none is available.
    NoApprover,
    /// The run had used up its [`Limits::questions`](crate::Limits::questions) approval prompts.
    TooManyQuestions,
    /// The arguments are longer than an approval prompt can show.
    TooLong,
    /// The tool's definition at the server changed after it was shown for approval.
    Changed,
}

/// The shape of what a tool returned to a script.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReturnedShape {
    /// The server's name as configured.
    pub server: String,
    /// The tool's name on that server, or the method of a request for resources or prompts.
    pub tool: String,
    /// Field names and types in the notation of TypeScript, such as `{content: string}`, in at most
    /// 300 characters; if that is too little, inner levels are left out. Never a value. The keys of
    /// an object that look like data are left out too.
    pub shape: String,
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
    /// Time from the start on a worker to the reply, including `approval_time`, and the time for which
    /// the first runs of a process wait until their engine is started.
    pub wall_time: Duration,
    /// Time during which approval prompts were open.
    pub approval_time: Duration,
    /// Time spent waiting for admission and for a free worker, which is not part of `wall_time`.
    pub queue_time: Duration,
    /// CPU time of the script's thread, including parsing, and what a [`Backend`](crate::Backend) has
    /// reported.
    pub cpu_time: Duration,
    /// Time for which the script was [checked](crate::Executor::check) before it ran, which is part of
    /// `wall_time`.
    pub check_time: Duration,
    /// Fuel that a Python script used, if its [`Limits::fuel`](crate::Limits::fuel) is limited.
    pub fuel: Option<u64>,
    /// Bytes of V8 heap and array buffers when the script ended; for Python all of the
    /// interpreter's memory, including its own part; for a [`Backend`](crate::Backend) the most
    /// that it has reported. With the files of the scratch directory.
    pub memory_bytes: usize,
    /// Number of calls that were sent to a server or a native tool, whether or not they succeeded.
    pub tool_calls: u64,
    /// Number of calls that failed before they were sent: unknown or denied tools, wrong arguments,
    /// calls beyond a limit, and calls that were not approved. Calls that a dry run simulates are in
    /// neither number.
    pub tool_calls_refused: u64,
    /// Bytes of all tool results that the script received. They would have gone to the model if it
    /// had called the tools itself.
    pub tool_result_bytes: u64,
    /// Bytes of output beyond [`Limits::output_bytes`](crate::Limits::output_bytes), which are not
    /// in [`ExecuteResult::logs`].
    pub output_bytes_dropped: u64,
    /// Calls of a dry run that are not in [`ExecuteResult::planned_calls`].
    pub planned_calls_dropped: u64,
}
