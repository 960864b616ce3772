//! Turns what the guest and wasmtime report into an [`Outcome`]. The host assigns the error codes.
//!
//! A script can overwrite the whole guest half, so a report is untrusted text. A reported tool
//! error is trusted only if the host has returned such an error to the run; a reported memory
//! error, only if the host has refused memory.

use serde::Deserialize;

use crate::engine::failure;
use crate::engine::host::RunHost;
use crate::engine::stack::without_message;
use crate::engine::stop::StopReason;
use crate::json::Json;
use crate::run::result::{ErrorCode, Outcome, ScriptError};
use crate::text::preview_bytes;
use crate::tools::ToolErrorCode;

/// Maximum lengths of a report's texts in bytes. The guest half stays below them.
const MAX_TEXT: usize = 32 << 10;
const MAX_NAME: usize = 1 << 10;

/// How a guest's run ended.
pub(super) enum GuestExit {
    /// The script is not valid Python. Reported before any of it ran.
    Refused(String),
    /// What `run` returned.
    Answered(String),
    /// WebAssembly trapped: stack overflow, an exit, or an import that must not be called.
    Trapped(wasmtime::Error),
    /// The run was stopped.
    Stopped,
}

/// What the host knows about a run's end, in addition to the guest's report.
pub(super) struct Evidence<'a> {
    pub(super) host: &'a dyn RunHost,
    pub(super) source: &'a str,
    pub(super) stopped: Option<StopReason>,
    /// Whether memory was refused during the run.
    pub(super) memory_refused: bool,
    /// Whether the run was given a tool error with this code.
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

/// Checks that a source is at most `most` bytes.
pub(super) fn check_size(source: &str, most: usize) -> Result<(), Box<ScriptError>> {
    if source.len() <= most {
        return Ok(());
    }
    let message = format!("the source is {} bytes, at most {most} can be run", source.len());
    let error = ScriptError::new(ErrorCode::SyntaxError, message);
    Err(Box::new(error.with_hint("pass data as `inputs`, not as source")))
}

/// The run's outcome.
pub(super) fn outcome(exit: GuestExit, evidence: &Evidence<'_>) -> Outcome {
    let error = match exit {
        GuestExit::Stopped => failure::stopped(evidence.stopped, evidence.host),
        GuestExit::Refused(report) => described(ErrorCode::SyntaxError, &report, evidence),
        GuestExit::Trapped(trap) => trapped(&trap, evidence),
        GuestExit::Answered(answer) => match answer.split_at_checked(1) {
            Some(("+", value)) => match value_of(value, evidence.host) {
                Ok(value) => return Outcome::Returned(value),
                Err(error) => *error,
            },
            Some(("-", report)) => described(ErrorCode::RuntimeError, report, evidence),
            _ => ScriptError::new(ErrorCode::RuntimeError, "the interpreter's answer cannot be read"),
        },
    };
    Outcome::Failed(error)
}

fn value_of(text: &str, host: &dyn RunHost) -> Result<Json, Box<ScriptError>> {
    if text.len() > host.limits().result_bytes {
        return Err(Box::new(failure::too_large(text.len(), host)));
    }
    Json::parse(text).map_err(|error| Box::new(failure::not_json(&error)))
}

fn described(code: ErrorCode, report: &str, evidence: &Evidence<'_>) -> ScriptError {
    let report = serde_json::from_str(report).unwrap_or_else(|error| Report {
        message: format!("the error cannot be read: {error}"),
        ..Report::default()
    });
    let tool_code = report.code.as_deref().and_then(ToolErrorCode::from_name);
    let tool_code = tool_code.filter(|code| (evidence.has_given)(*code));
    // What the compiler has no memory for is reported as a syntax error without a location.
    let is_unlocated = code == ErrorCode::SyntaxError && report.line.is_none();
    let code = if tool_code == Some(ToolErrorCode::MaxToolCallsExceeded) {
        ErrorCode::MaxToolCallsExceeded
    } else if evidence.memory_refused && (report.name.as_deref() == Some("MemoryError") || is_unlocated) {
        return memory_limit(evidence.host);
    } else {
        code
    };
    let message = match report.name.as_deref() {
        // CPython raises it without a message for a request that is too large to try.
        Some("MemoryError") if report.message.is_empty() => {
            "more memory was asked for at once than there can be".to_owned()
        }
        _ => preview_bytes(&report.message, MAX_TEXT).into_owned(),
    };
    let stack = report.stack.map(|stack| without_message(&preview_bytes(&stack, MAX_TEXT), &message));
    let mut error = ScriptError {
        name: report.name.map(|name| preview_bytes(&name, MAX_NAME).into_owned()),
        stack: stack.filter(|stack| !stack.is_empty()),
        hint: report.hint.map(|hint| preview_bytes(&hint, MAX_NAME).into_owned()),
        tool_code,
        ..ScriptError::new(code, message)
    };
    if let Some(line) = report.line {
        failure::set_location(&mut error, evidence.source, line, report.column.unwrap_or(1));
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
    if trap.downcast_ref::<wasmtime::Trap>() == Some(&wasmtime::Trap::OutOfFuel) {
        return failure::out_of_fuel(evidence.host);
    }
    if trap.downcast_ref::<wasmtime_wasi::I32Exit>().is_some() {
        // WASI reports only whether the exit code was zero.
        return ScriptError::new(ErrorCode::RuntimeError, "the script ended its interpreter")
            .with_hint("`os._exit` and `os.abort` lose the value; end with `return` or the last line");
    }
    // C code that cannot continue without memory aborts. A script that has caught its `MemoryError`
    // may do so too.
    if evidence.memory_refused {
        return memory_limit(evidence.host);
    }
    if trap.downcast_ref::<wasmtime::Trap>() == Some(&wasmtime::Trap::UnreachableCodeReached) {
        // The result of C's `abort`: called by the script, or by CPython after it has printed the
        // reason, or by WASI's C library where the only thread would wait for itself.
        return ScriptError::new(ErrorCode::RuntimeError, "the script aborted its interpreter").with_hint(
            "`os.abort` does that, and waiting without a timeout for a lock that the script holds itself; end with \
             `return` or the last line",
        );
    }
    tracing::debug!(?trap, "a Python script trapped");
    // Only the first line; the others are locations in the interpreter.
    let reason = trap.root_cause().to_string();
    let message = format!("the script broke its interpreter: {}", preview_bytes(&reason, MAX_NAME));
    ScriptError::new(ErrorCode::RuntimeError, message)
}

fn memory_limit(host: &dyn RunHost) -> ScriptError {
    failure::stopped(Some(StopReason::Memory), host)
}
