//! A recording: everything that a run got from its host, so that the script can run again without
//! servers.
//!
//! A recording is plain data. `src/run/tape.rs` makes it during a run and plays it back;
//! `src/run/recording/file.rs` reads and writes it; `mask.rs` masks secrets in the file.

mod clock;
mod error;
mod explain;
mod file;
mod mask;
mod wire;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

pub(crate) use self::clock::{Cursor, GuestClock, Readings};
pub use self::error::RecordingError;
pub(crate) use self::mask::{is_same_text, looks_equal, mask_data};
use crate::json::{self, Json};
use crate::run::limits::Limits;
use crate::run::result::{LogLevel, Outcome, Output, PlannedCall, ReturnedShape, ToolCallRecord, Usage};
use crate::run::sampling::SamplingReport;
use crate::run::script::{Language, Script};
use crate::tools::ToolError;

/// Maximum bytes of requests and answers that a recording keeps: twice what one result has at most by default. Beyond it
/// answers are left out: the recording says which, and a replay ends at the first of them.
pub(crate) const MAX_KEPT_BYTES: usize = 32 << 20;

/// Maximum number of calls in a recording.
pub(crate) const MAX_CALLS: usize = 50_000;

/// Maximum number of turns in a recording: deliveries of answers and timers.
pub(crate) const MAX_TURNS: usize = 200_000;

/// The recording of one run, from [`Executor::record`](crate::Executor::record) or a file.
///
/// It contains the script and its input, the limits, every answer of the host in the order in which the script received
/// it, the readings of clocks, the seed of the random numbers, and the outcome. The recording in memory is exact;
/// secrets are masked when it is [written](Self::to_text).
#[derive(Clone)]
pub struct Recording {
    pub(crate) header: Header,
    /// The calls in the order in which the script made them.
    pub(crate) calls: Vec<RecordedCall>,
    /// The delays of the timers of a TypeScript script, in the order in which they were started.
    pub(crate) timers: Vec<f64>,
    /// The turns in order. The last one is the time from the last delivery to the end.
    pub(crate) turns: Vec<Turn>,
    pub(crate) end: RecordedEnd,
}

/// The facts of a run that are known when it begins.
#[derive(Clone)]
pub(crate) struct Header {
    /// The version of cx that recorded.
    pub(crate) version: String,
    pub(crate) language: Language,
    /// The script's name, as in stack traces.
    pub(crate) name: String,
    pub(crate) source: String,
    pub(crate) input: Option<Json>,
    pub(crate) limits: Limits,
    pub(crate) time_zone: String,
    /// Resolution of the clocks that the script could read; zero for the system's own.
    pub(crate) clock_resolution: Duration,
    /// The names of the servers that the script could see.
    pub(crate) servers: Vec<Arc<str>>,
    /// Whether the script had `fetch`.
    pub(crate) has_network: bool,
    /// The seed of all random numbers of the script.
    pub(crate) seed: [u8; 32],
    pub(crate) is_dry_run: bool,
    /// The time of the start, since 1970.
    pub(crate) started: Duration,
    /// How many secrets were masked when the recording was written.
    pub(crate) masked: u64,
}

/// One thing that a script asked its host for.
#[derive(Clone)]
pub(crate) struct RecordedCall {
    pub(crate) request: Request,
    pub(crate) answer: RecordedAnswer,
    /// Lines that the host printed for the script before it answered.
    pub(crate) lines: Vec<(LogLevel, String)>,
    /// Whether the script had the answer before it could do anything else, because the host had it at once or the
    /// script blocked. Such an answer takes no turn.
    pub(crate) is_immediate: bool,
    /// When the call was made, since the start of the run.
    pub(crate) made: Duration,
    /// Time from the call until the host had the answer.
    pub(crate) took: Duration,
    /// Whether a secret in the request or the answer was masked.
    pub(crate) is_masked: bool,
}

/// A request as the script wrote it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Request {
    /// A tool by `server` and `tool`.
    Tool { server: String, tool: String, arguments: String },
    /// A tool by its full name.
    FullName { name: String, arguments: String },
    /// Anything else: lists and searches of tools, resources, prompts, state, language models. JSON text.
    Query { text: String },
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RecordedAnswer {
    /// The answer as the script received it.
    Given(Result<String, ToolError>),
    /// The run ended before the script received an answer.
    None,
    /// The answer, of this many bytes, did not fit into the recording.
    LeftOut(usize),
}

/// One turn of the script's event loop: the clock readings during the turn, and what was delivered at its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Turn {
    /// Number of waits of a Python script during the turn that ended without a delivery.
    pub(crate) waits: u64,
    pub(crate) delivered: Delivered,
    pub(crate) wall: Readings,
    pub(crate) monotonic: Readings,
}

/// What was delivered at the end of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Delivered {
    /// The script ended or was stopped.
    #[default]
    End,
    /// The answer to the call at this position.
    Call(usize),
    /// The timer at this position.
    Timer(usize),
}

/// How the run ended, without its times.
#[derive(Clone)]
pub(crate) struct RecordedEnd {
    pub(crate) outcome: Outcome,
    pub(crate) logs: Vec<Output>,
    /// Lines that the host added to `logs` after the outcome.
    pub(crate) closing: Vec<(LogLevel, String)>,
    pub(crate) tool_calls: Vec<ToolCallRecord>,
    pub(crate) returned: Vec<ReturnedShape>,
    pub(crate) planned_calls: Option<Vec<PlannedCall>>,
    pub(crate) sampling: Option<SamplingReport>,
    pub(crate) usage: Usage,
    /// What the recording lacks, if it reached a bound.
    pub(crate) missing: Option<String>,
    /// Whether the script used granted directories in a way that is not recorded.
    pub(crate) has_unrecorded_files: bool,
}

impl fmt::Debug for Recording {
    /// Hides what the script sent and received.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Recording")
            .field("script", &self.header.name)
            .field("calls", &self.calls.len())
            .finish_non_exhaustive()
    }
}

impl Recording {
    /// The script's name, as in stack traces.
    pub fn script_name(&self) -> &str {
        &self.header.name
    }

    /// The script's source.
    pub fn source(&self) -> &str {
        &self.header.source
    }

    /// The script's language.
    pub fn language(&self) -> Language {
        self.header.language
    }

    /// The limits of the recorded run.
    pub fn limits(&self) -> Limits {
        self.header.limits
    }

    /// The limits for the replay of an untrusted recording: those of the recorded run, with at most the times of
    /// `most`.
    pub fn limits_within(&self, most: Limits) -> Limits {
        let recorded = self.limits();
        Limits {
            wall_time: recorded.wall_time.min(most.wall_time),
            cpu_time: recorded.cpu_time.min(most.cpu_time),
            ..recorded
        }
    }

    /// Whether the script used granted directories and the recording lacks what it found there. This concerns Python
    /// scripts, whose file operations are not host calls. A replay has no granted directories and behaves differently
    /// at such operations.
    pub fn has_unrecorded_files(&self) -> bool {
        self.end.has_unrecorded_files
    }

    /// How many secrets were masked when the recording was written. A replay uses the masked values.
    pub fn masked(&self) -> u64 {
        self.header.masked
    }

    /// The script as it was run, without tools and listeners.
    pub(crate) fn script(&self) -> Script {
        let header = &self.header;
        let script = Script::new(header.language, header.source.as_str());
        let mut script =
            script.named(header.name.as_str()).limits(header.limits).time_zone(header.time_zone.as_str());
        if header.is_dry_run {
            script = script.dry_run();
        }
        match &header.input {
            Some(input) => script.input(input.clone()),
            None => script,
        }
    }
}

impl Request {
    /// Bytes of its text.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Tool { server, tool, arguments } => server.len() + tool.len() + arguments.len(),
            Self::FullName { name, arguments } => name.len() + arguments.len(),
            Self::Query { text } => text.len(),
        }
    }

    /// Whether an edited script still makes the same request.
    pub(crate) fn is_same(&self, recorded: &Self) -> bool {
        match (self, recorded) {
            (
                Self::Tool { server, tool, arguments },
                Self::Tool { server: other_server, tool: other_tool, arguments: other },
            ) => server == other_server && tool == other_tool && looks_equal(arguments, other),
            (Self::FullName { name, arguments }, Self::FullName { name: other_name, arguments: other }) => {
                name == other_name && looks_equal(arguments, other)
            }
            (Self::Query { text }, Self::Query { text: other }) => looks_equal(text, other),
            _ => false,
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool { server, tool, arguments } => {
                write!(formatter, "{server}.{tool} with {}", or_empty(arguments))
            }
            Self::FullName { name, arguments } => write!(formatter, "{name} with {}", or_empty(arguments)),
            Self::Query { text } => match query_in_words(text) {
                Some(words) => formatter.write_str(&words),
                None => write!(formatter, "the query {text}"),
            },
        }
    }
}

/// A query as a script calls it: `state.set with {"key":"a"}` of `{"kind":"state","call":{"set":{"key":"a"}}}`. `None` if
/// the text has another form, or would take much memory: a recording is untrusted.
fn query_in_words(text: &str) -> Option<String> {
    let Value::Object(mut query) = json::tree(text, json::budget(text.len())).ok()? else { return None };
    let kind = query.shift_remove("kind")?;
    let kind = kind.as_str()?;
    let (name, arguments) = match query.shift_remove("call") {
        Some(Value::Object(mut call)) => {
            let (operation, arguments) = match call.shift_remove("op") {
                Some(operation) => (operation.as_str()?.to_owned(), call.into()),
                // The only field.
                None => call.into_iter().next()?,
            };
            (format!("{kind}.{operation}"), arguments)
        }
        Some(_) => return None,
        None => (kind.to_owned(), query.into()),
    };
    Some(match arguments {
        Value::Object(none) if none.is_empty() => name,
        // The questions of `llm` are JSON as text.
        Value::String(text) => format!("{name} with {text}"),
        other => format!("{name} with {other}"),
    })
}

/// Empty arguments count as an empty object.
fn or_empty(arguments: &str) -> &str {
    if arguments.is_empty() { "{}" } else { arguments }
}

#[cfg(test)]
mod tests;
