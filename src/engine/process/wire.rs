//! The messages between an executor and a worker process, and their conversion to the values of a
//! run. Everything that a worker sends is checked here, because a script may have taken it over.

mod measures;
mod terms;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub(crate) use self::terms::WireTerms;
#[cfg(any(feature = "http", feature = "mcp", feature = "nats", test))]
use super::frames::{self, RunNumber};
use crate::durations::nanoseconds;
use crate::files::{Access, FileAnswer, FileError, FileOperation};
use crate::json::Json;
use crate::run::calls::resolve::ToolName;
use crate::run::limits::Limits;
use crate::run::recording::GuestClock;
use crate::run::result::{ErrorCode, Outcome, ScriptError};
use crate::run::script::Language;
use crate::run::tape::Wait;
use crate::text::{preview, preview_bytes};
use crate::tools::{ToolError, ToolErrorCode};

/// The version of these messages. Executor and worker are the same program unless another one is
/// configured.
pub(crate) const PROTOCOL: u32 = 7;

/// Bytes of a message beside the text that a limit bounds: numbers, names, the parts of an error.
const OVERHEAD: usize = 256 * 1024;

/// Maximum bytes of the messages of a run, in both directions.
pub(crate) fn message_bytes(limits: &Limits) -> usize {
    /// Bytes that a message may always have, whatever the run's limits are: for a query, or an error with its stack.
    const MIN: usize = 16 << 20;
    let longest = limits.argument_bytes.max(limits.result_bytes).max(limits.output_bytes);
    longest.max(MIN).saturating_add(OVERHEAD)
}

/// Maximum bytes of the message that begins a run. Sources are small; an input can have any size.
pub(crate) const MAX_START_BYTES: usize = 256 << 20;

/// Maximum bytes of the message that a worker is ready, the only one that it sends before a run.
pub(crate) const MAX_READY_BYTES: usize = 64 << 10;

/// Maximum random bytes of one request of a worker.
pub(crate) const MAX_RANDOM: usize = 1 << 20;

/// A message of an executor to a worker.
#[derive(Serialize, Deserialize)]
pub(crate) enum ToWorker {
    /// The first message.
    Hello(Hello),
    /// Begins a run.
    Start(Box<Start>),
    /// Continues the run after the survey.
    Proceed,
    /// The answer to a call. Those of a run are numbered by the worker.
    Answer { call: u64, answer: Result<String, CallError> },
    /// The names of tools.
    Names { call: u64, names: Result<Vec<String>, CallError> },
    /// The result of an operation on granted directories.
    File { call: u64, answer: Result<FileAnswer, FileError> },
    /// The reply to a message for which the script's thread waits.
    Reply(Reply),
}

/// The settings of a worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) protocol: u32,
    pub(crate) is_python: bool,
    pub(crate) counts_fuel: bool,
    /// The memory limit of runs that set none of their own.
    pub(crate) memory_bytes: u64,
    /// Cache directories for machine code, best first.
    pub(crate) caches: Vec<std::path::PathBuf>,
    /// Whether the worker has to end if a measure of its sandbox is missing.
    pub(crate) requires_sandbox: bool,
    /// The process that has started it: the executor or a fork server. The worker ends when it is no longer its parent.
    pub(crate) parent: i32,
    /// Whether it is a fork server, and no worker.
    pub(crate) forks: bool,
}

/// A run.
#[derive(Serialize, Deserialize)]
pub(crate) struct Start {
    /// The number of the run, which its frames have from now on.
    pub(crate) number: u64,
    /// How many runs it is nested in. A process that stands for a worker elsewhere reads the message up to here
    /// (`depth_of_run`).
    pub(crate) depth: u8,
    pub(crate) is_check: bool,
    pub(crate) source: String,
    pub(crate) name: String,
    pub(crate) input: Option<String>,
    pub(crate) servers: Vec<String>,
    pub(crate) time_zone: String,
    pub(crate) clock_resolution_ns: u64,
    pub(crate) has_tape: bool,
    pub(crate) has_network: bool,
    /// Whether the worker may look for the executor's answer instead of sleeping: no other run of the engine was in a
    /// worker when this one began.
    pub(crate) is_alone: bool,
    /// Whether the worker serves no other run: it waits until it is killed.
    pub(crate) is_last: bool,
    /// The granted directories of a script of Python. For those of TypeScript the executor has all files.
    pub(crate) directories: Vec<(String, Access)>,
    /// What is left until the run's deadline.
    pub(crate) time_left_ns: u64,
    pub(crate) limits: WireLimits,
}

/// How many runs the run is nested in that an executor starts with these messages: its first one, and the beginning of
/// `Start`. `None` if not enough of them has arrived.
#[cfg(any(feature = "mcp", feature = "nats", test))]
pub(crate) fn depth_of_run(orders: &[u8]) -> Option<usize> {
    let (_number, depth) = start_of_run(orders.get(frames::length(orders)?..)?)?;
    Some(depth)
}

/// The number of the run that a frame starts, and how many runs it is nested in. `None` if not enough of the frame has
/// arrived, or it starts no run.
#[cfg(any(feature = "http", feature = "mcp", feature = "nats", test))]
pub(super) fn start_of_run(frame: &[u8]) -> Option<(RunNumber, usize)> {
    /// The number of the variant `Start`.
    const START: u32 = 1;
    let (kind, number, depth) = frames::beginning::<(u32, u64, u8)>(frame)?;
    (kind == START).then_some((RunNumber(number), usize::from(depth)))
}

/// The limits that an engine enforces.
#[derive(Serialize, Deserialize)]
pub(crate) struct WireLimits {
    wall_time_ns: u64,
    cpu_time_ns: u64,
    fuel: Option<u64>,
    memory_bytes: u64,
    source_bytes: u64,
    argument_bytes: u64,
    result_bytes: u64,
    output_bytes: u64,
    written_bytes: u64,
    created_files: u64,
    file_bytes: u64,
}

/// The reply to a message for which the script's thread waits.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    Done,
    /// A call has been begun. With a tape, its answer may have been sent before.
    Begun,
    Emitted(Result<(), CallError>),
    Wait(WireWait),
    Clock(u64),
    Random(Vec<u8>),
}

/// See [`Wait`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum WireWait {
    Real,
    Empty,
    Delivers,
}

/// A message of a worker to its executor.
#[derive(Serialize, Deserialize)]
pub(crate) enum FromWorker {
    /// The worker is warm, with these measures of its sandbox.
    Ready {
        protocol: u32,
        #[serde(deserialize_with = "measures::read")]
        active: Vec<String>,
        #[serde(deserialize_with = "measures::read")]
        missing: Vec<String>,
    },
    /// The worker cannot start, for this reason.
    Failed(String),
    /// The survey of the script's calls, as JSON text.
    Surveyed {
        survey: String,
        took_ns: u64,
    },
    /// Calls a tool.
    Call {
        call: u64,
        name: WireName,
        arguments: String,
        terms: WireTerms,
    },
    /// Answers a query.
    Query {
        call: u64,
        text: String,
    },
    /// Requests the names of a server's tools.
    ToolNames {
        call: u64,
        server: String,
    },
    /// Performs an operation on granted directories.
    File {
        call: u64,
        operation: FileOperation,
    },
    /// Closes a file. Not answered.
    CloseFile(u64),
    /// The script computes, and has used this much fuel. Not answered.
    Fuel(u64),
    /// Prints a line.
    Log {
        level: u8,
        text: String,
    },
    /// Emits a block. Replied to.
    Emit(String),
    /// These are about the tape. All are replied to.
    OpenTurn,
    OpenWait(Option<f64>),
    CloseWait(bool),
    SetBlocking(bool),
    ReadClock {
        is_wall: bool,
        real: u64,
    },
    Random(u32),
    /// The script's thread is idle, and has read this number of messages of the run.
    Waiting {
        seen: u64,
    },
    /// The script computes again. Not answered.
    Computing,
    /// The run has ended.
    Done(Done),
}

/// The end of a run, as its worker reports it.
#[derive(Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) outcome: Result<String, WireError>,
    pub(crate) memory_bytes: u64,
    pub(crate) fuel: Option<u64>,
}

/// See [`ToolName`].
#[derive(Serialize, Deserialize)]
pub(crate) enum WireName {
    Pair { server: String, tool: String },
    Full(String),
}

/// See [`ToolError`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CallError {
    code: String,
    message: String,
    server: Option<String>,
    tool: Option<String>,
    content: Option<String>,
    retry_after_ns: Option<u64>,
}

/// See [`ScriptError`].
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct WireError {
    code: String,
    message: String,
    name: Option<String>,
    stack: Option<String>,
    line: Option<u32>,
    column: Option<u32>,
    source_line: Option<String>,
    hint: Option<String>,
    tool_code: Option<String>,
}

/// The codes that a worker may report. Only the executor can assign the others.
const WORKER_CODES: [ErrorCode; 9] = [
    ErrorCode::SyntaxError,
    ErrorCode::TranspileError,
    ErrorCode::RuntimeError,
    ErrorCode::CpuLimit,
    ErrorCode::FuelLimit,
    ErrorCode::MemoryLimit,
    ErrorCode::MaxToolCallsExceeded,
    ErrorCode::ResultTooLarge,
    ErrorCode::Cancelled,
];

/// Maximum bytes of the message and of the stack of an error. Engines stay below it.
const MAX_TEXT: usize = 128 << 10;

/// Maximum characters of each other text of an error.
const MAX_SAID: usize = 1_000;

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

impl WireLimits {
    pub(crate) fn from_limits(limits: &Limits) -> Self {
        Self {
            wall_time_ns: nanoseconds(limits.wall_time),
            cpu_time_ns: nanoseconds(limits.cpu_time),
            fuel: limits.fuel,
            memory_bytes: limits.memory_bytes as u64,
            source_bytes: limits.source_bytes as u64,
            argument_bytes: limits.argument_bytes as u64,
            result_bytes: limits.result_bytes as u64,
            output_bytes: limits.output_bytes as u64,
            written_bytes: limits.written_bytes,
            created_files: limits.created_files,
            file_bytes: limits.file_bytes,
        }
    }

    /// The limits of the run. Those of calls and prompts are the executor's.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            wall_time: Duration::from_nanos(self.wall_time_ns),
            cpu_time: Duration::from_nanos(self.cpu_time_ns),
            fuel: self.fuel,
            memory_bytes: size(self.memory_bytes),
            source_bytes: size(self.source_bytes),
            argument_bytes: size(self.argument_bytes),
            result_bytes: size(self.result_bytes),
            output_bytes: size(self.output_bytes),
            written_bytes: self.written_bytes,
            created_files: self.created_files,
            file_bytes: self.file_bytes,
            ..Limits::default()
        }
    }
}

impl From<ToolName> for WireName {
    fn from(name: ToolName) -> Self {
        match name {
            ToolName::Pair { server, tool } => Self::Pair { server, tool },
            ToolName::Full(name) => Self::Full(name),
        }
    }
}

impl From<WireName> for ToolName {
    fn from(name: WireName) -> Self {
        match name {
            WireName::Pair { server, tool } => Self::Pair { server, tool },
            WireName::Full(name) => Self::Full(name),
        }
    }
}

impl From<Wait> for WireWait {
    fn from(wait: Wait) -> Self {
        match wait {
            Wait::Real => Self::Real,
            Wait::Empty => Self::Empty,
            Wait::Delivers => Self::Delivers,
        }
    }
}

impl From<WireWait> for Wait {
    fn from(wait: WireWait) -> Self {
        match wait {
            WireWait::Real => Self::Real,
            WireWait::Empty => Self::Empty,
            WireWait::Delivers => Self::Delivers,
        }
    }
}

impl From<ToolError> for CallError {
    fn from(error: ToolError) -> Self {
        Self {
            code: error.code.as_str().to_owned(),
            message: error.message,
            server: error.server,
            tool: error.tool,
            content: error.content.map(Json::into_text),
            retry_after_ns: error.retry_after.map(nanoseconds),
        }
    }
}

impl From<CallError> for ToolError {
    fn from(error: CallError) -> Self {
        let code = ToolErrorCode::from_name(&error.code).unwrap_or(ToolErrorCode::ToolError);
        let mut result = Self::new(code, error.message);
        result.server = error.server;
        result.tool = error.tool;
        result.content = error.content.and_then(|text| Json::parse(&text).ok());
        result.retry_after = error.retry_after_ns.map(Duration::from_nanos);
        result
    }
}

/// A language, as far as a message says which.
pub(crate) fn language(is_python: bool) -> Language {
    if is_python { Language::Python } else { Language::TypeScript }
}

pub(crate) fn clock(is_wall: bool) -> GuestClock {
    if is_wall { GuestClock::Wall } else { GuestClock::Monotonic }
}

impl Done {
    /// The end of a run, as the worker reports it.
    pub(crate) fn from_outcome(outcome: Outcome, memory_bytes: usize, fuel: Option<u64>) -> Self {
        let outcome = match outcome {
            Outcome::Returned(value) => Ok(value.into_text()),
            Outcome::Failed(error) => Err(WireError {
                code: error.code.as_str().to_owned(),
                message: error.message,
                name: error.name,
                stack: error.stack,
                line: error.line,
                column: error.column,
                source_line: error.source_line,
                hint: error.hint,
                tool_code: error.tool_code.map(|code| code.as_str().to_owned()),
            }),
        };
        Self { outcome, memory_bytes: memory_bytes as u64, fuel }
    }

    /// The outcome, after its checks by the executor. `failure_codes` are those with which calls of the
    /// run have failed.
    pub(crate) fn outcome(self, limits: &Limits, failure_codes: &[ToolErrorCode]) -> Result<Outcome, String> {
        let error = match self.outcome {
            Ok(text) if text.len() > limits.result_bytes => {
                return Err(format!("its value has {} bytes, more than a script may return", text.len()));
            }
            Ok(text) => {
                let value = Json::parse(&text).map_err(|error| format!("its value is not JSON: {error}"))?;
                return Ok(Outcome::Returned(value));
            }
            Err(error) => error,
        };
        let code = WORKER_CODES.into_iter().find(|code| code.as_str() == error.code);
        let tool_code = error
            .tool_code
            .as_deref()
            .and_then(ToolErrorCode::from_name)
            .filter(|code| failure_codes.contains(code));
        let code = code.unwrap_or_default();
        // Only the executor can say that the run has exceeded its number of calls.
        let is_made_up = code == ErrorCode::MaxToolCallsExceeded
            && !failure_codes.contains(&ToolErrorCode::MaxToolCallsExceeded);
        let code = if is_made_up { ErrorCode::RuntimeError } else { code };
        Ok(Outcome::Failed(ScriptError {
            name: error.name.map(|name| preview(&name, MAX_SAID)),
            stack: error.stack.map(|stack| preview_bytes(&stack, MAX_TEXT).into_owned()),
            line: error.line,
            column: error.column,
            source_line: error.source_line.map(|line| preview(&line, MAX_SAID)),
            hint: error.hint.map(|hint| preview(&hint, MAX_SAID)),
            tool_code,
            ..ScriptError::new(code, preview_bytes(&error.message, MAX_TEXT).into_owned())
        }))
    }
}

impl Start {
    /// The servers that the script sees.
    pub(crate) fn servers(&self) -> Vec<Arc<str>> {
        self.servers.iter().map(|name| Arc::from(name.as_str())).collect()
    }
}

#[cfg(test)]
mod tests;
