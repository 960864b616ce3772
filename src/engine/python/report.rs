//! From what the guest and wasmtime say to an [`Outcome`]: codes from the host.
//!
//! A script can overwrite all of the guest half, so a report is only text. What it says of a tool's error is believed
//! if the host has given the run such an error, what it says of memory if the host has refused some.

use serde::Deserialize;

use crate::engine::failure;
use crate::engine::watchdog::StopReason;
use crate::json::Json;
use crate::run::context::ExecutionContext;
use crate::run::result::{ErrorCode, Outcome, ScriptError};
use crate::tools::ToolErrorCode;

/// The longest texts of a report, in bytes. The guest keeps below them.
const MAX_TEXT: usize = 32 << 10;
const MAX_NAME: usize = 1 << 10;

/// How a guest came to its end.
pub(super) enum Ending {
    /// The script is not Python. Said before any of it ran.
    Refused(String),
    /// What `run` returned.
    Answered(String),
    /// WebAssembly ended: the stack, an exit, or an import that nobody may call.
    Trapped(wasmtime::Error),
    /// The run was stopped.
    Stopped,
}

/// What explains an end beside the guest's word.
pub(super) struct Evidence<'a> {
    pub(super) context: &'a ExecutionContext,
    pub(super) source: &'a str,
    pub(super) stopped: Option<StopReason>,
    /// Whether memory was refused during the run.
    pub(super) memory_refused: bool,
    /// Whether the run was given a tool's error of this code.
    pub(super) has_given: &'a dyn Fn(ToolErrorCode) -> bool,
}

/// The guest's report of an error.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Report {
    name: Option<String>,
    message: String,
    stack: Option<String>,
    code: Option<String>,
    line: Option<u32>,
    column: Option<u32>,
    hint: Option<String>,
}

/// Whether a source is short enough to be looked at.
pub(super) fn check_size(source: &str, most: usize) -> Result<(), Box<ScriptError>> {
    if source.len() <= most {
        return Ok(());
    }
    let message = format!("the source is {} bytes, at most {most} can be run", source.len());
    let error = ScriptError::new(ErrorCode::SyntaxError, message);
    Err(Box::new(error.with_hint("pass data as `inputs`, not as source")))
}

/// The run's outcome.
pub(super) fn outcome(ending: Ending, evidence: &Evidence<'_>) -> Outcome {
    let error = match ending {
        Ending::Stopped => failure::stopped(evidence.stopped, evidence.context),
        Ending::Refused(report) => described(ErrorCode::SyntaxError, &report, evidence),
        Ending::Trapped(trap) => trapped(&trap, evidence),
        Ending::Answered(answer) => match answer.split_at_checked(1) {
            Some(("+", value)) => match value_of(value, evidence.context) {
                Ok(value) => return Outcome::Returned(value),
                Err(error) => *error,
            },
            Some(("-", report)) => described(ErrorCode::RuntimeError, report, evidence),
            _ => ScriptError::new(ErrorCode::RuntimeError, "the interpreter's answer cannot be read"),
        },
    };
    Outcome::Failed(error)
}

fn value_of(text: &str, context: &ExecutionContext) -> Result<Json, Box<ScriptError>> {
    if text.len() > context.limits.result_bytes {
        return Err(Box::new(failure::too_large(text.len(), context)));
    }
    Json::parse(text).map_err(|error| Box::new(failure::not_json(&error)))
}

fn described(code: ErrorCode, report: &str, evidence: &Evidence<'_>) -> ScriptError {
    let report = serde_json::from_str(report).unwrap_or_else(|error| Report {
        message: format!("the error cannot be read: {error}"),
        ..Report::default()
    });
    let said = report.code.as_deref();
    let tool_code = ToolErrorCode::ALL
        .iter()
        .copied()
        .find(|code| said == Some(code.as_str()))
        .filter(|code| (evidence.has_given)(*code));
    let code = if tool_code == Some(ToolErrorCode::MaxToolCallsExceeded) {
        ErrorCode::MaxToolCallsExceeded
    } else if evidence.memory_refused && report.name.as_deref() == Some("MemoryError") {
        return memory_limit(evidence.context);
    } else {
        code
    };
    let message = match report.name.as_deref() {
        // CPython says so, without a word, of what is too large to be asked for at all.
        Some("MemoryError") if report.message.is_empty() => {
            "more memory was asked for at once than there can be".to_owned()
        }
        _ => shortened(report.message, MAX_TEXT),
    };
    let mut error = ScriptError {
        name: report.name.map(|name| shortened(name, MAX_NAME)),
        stack: report.stack.map(|stack| shortened(stack, MAX_TEXT)).filter(|stack| !stack.is_empty()),
        hint: report.hint.map(|hint| shortened(hint, MAX_NAME)),
        tool_code,
        ..ScriptError::new(code, message)
    };
    if let Some(line) = report.line {
        failure::set_place(&mut error, evidence.source, line, report.column.unwrap_or(1));
    }
    error
}

fn trapped(trap: &wasmtime::Error, evidence: &Evidence<'_>) -> ScriptError {
    if trap.downcast_ref::<wasmtime::Trap>() == Some(&wasmtime::Trap::StackOverflow) {
        return ScriptError {
            name: Some("RecursionError".to_owned()),
            ..ScriptError::new(
                ErrorCode::RuntimeError,
                "the script's calls are nested too deeply for the stack",
            )
        };
    }
    if trap.downcast_ref::<wasmtime_wasi::I32Exit>().is_some() {
        // WASI passes on only whether the code was zero.
        return ScriptError::new(ErrorCode::RuntimeError, "the script ended its interpreter")
            .with_hint("`os._exit` and `os.abort` lose the value; end with `return` or the last line");
    }
    // C code that cannot go on without memory aborts, and so may a script that has caught its `MemoryError`.
    if evidence.memory_refused {
        return memory_limit(evidence.context);
    }
    if trap.downcast_ref::<wasmtime::Trap>() == Some(&wasmtime::Trap::UnreachableCodeReached) {
        // What C's `abort` comes to: the script's, or CPython's own after it has printed why.
        return ScriptError::new(ErrorCode::RuntimeError, "the script aborted its interpreter")
            .with_hint("`os._exit` and `os.abort` lose the value; end with `return` or the last line");
    }
    tracing::debug!(?trap, "a Python script trapped");
    // The first line; the rest is places in the interpreter.
    let reason = trap.root_cause().to_string();
    let message = format!("the script broke its interpreter: {}", shortened(reason, MAX_NAME));
    ScriptError::new(ErrorCode::RuntimeError, message)
}

fn memory_limit(context: &ExecutionContext) -> ScriptError {
    failure::stopped(Some(StopReason::Memory), context)
}

fn shortened(mut text: String, most: usize) -> String {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most));
        text.push('…');
    }
    text
}
