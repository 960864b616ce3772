//! Turns what V8 and the guest report into an [`Outcome`]. The host assigns the error codes, and
//! locations are mapped to the author's text.

use serde::Deserialize;

use super::instead;
use super::isolate::RawOutcome;
use super::stack_traces::first_location;
use super::transpile::{Location, Positions, TranspileError, TranspileErrorKind};
use crate::engine::failure;
use crate::engine::host::RunHost;
use crate::engine::stack::without_message;
use crate::engine::stop::StopReason;
use crate::json::Json;
use crate::run::result::{ErrorCode, Outcome, ScriptError};
use crate::tools::ToolErrorCode;

/// The report of a thrown value, from `describe` in the guest.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Thrown {
    name: Option<String>,
    message: String,
    stack: Option<String>,
    /// Error code of a failed tool call, if the host created the error.
    code: Option<String>,
    /// Whether the thrown value is not an error object.
    thrown: bool,
}

/// What the host knows about a run's end, in addition to the engine's report.
pub(crate) struct Evidence<'a> {
    pub(crate) host: &'a dyn RunHost,
    pub(crate) source: &'a str,
    pub(crate) positions: &'a Positions,
    pub(crate) stopped: Option<StopReason>,
    /// Whether an array buffer was refused during the run.
    pub(crate) buffer_refused: bool,
}

impl Evidence<'_> {
    /// The run's outcome.
    pub(crate) fn outcome(&self, raw: RawOutcome) -> Outcome {
        match raw {
            RawOutcome::Value(text) => match Json::parse(&text) {
                Ok(value) => Outcome::Returned(value),
                Err(error) => Outcome::Failed(failure::not_json(&error)),
            },
            RawOutcome::Threw(report) => Outcome::Failed(self.thrown(&report)),
            RawOutcome::Refused { message, line, column } => {
                let mut error = ScriptError::new(
                    ErrorCode::SyntaxError,
                    message.trim_start_matches("Uncaught SyntaxError: ").to_owned(),
                );
                self.locate(&mut error, self.positions.original(line, column));
                Outcome::Failed(error)
            }
            RawOutcome::NeverSettles => Outcome::Failed(
                ScriptError::new(
                    ErrorCode::RuntimeError,
                    "the script waits for a promise that can never settle",
                )
                .with_hint("no timer and no tool call is left that could settle it"),
            ),
            RawOutcome::TooLarge(bytes) => Outcome::Failed(failure::too_large(bytes, self.host)),
            RawOutcome::Stopped => Outcome::Failed(failure::stopped(self.stopped, self.host)),
            RawOutcome::Broken(message) => {
                Outcome::Failed(ScriptError::new(ErrorCode::RuntimeError, message))
            }
        }
    }

    fn thrown(&self, report: &str) -> ScriptError {
        let thrown: Thrown = serde_json::from_str(report).unwrap_or_else(|error| Thrown {
            message: format!("the error cannot be read: {error}"),
            ..Thrown::default()
        });
        let tool_code = thrown.code.as_deref().and_then(ToolErrorCode::from_name);
        let code = if tool_code == Some(ToolErrorCode::MaxToolCallsExceeded) {
            ErrorCode::MaxToolCallsExceeded
        } else if self.buffer_refused && thrown.message == "Array buffer allocation failed" {
            // Only if the host has refused one; a script can throw an error with the same text.
            ErrorCode::MemoryLimit
        } else {
            ErrorCode::RuntimeError
        };
        let stack = thrown.stack.as_deref().map(|stack| without_message(stack, &thrown.message));
        let script = self.host.script_name();
        let first_location = stack.as_ref().and_then(|stack| first_location(stack, script));
        // The script may have written the trace.
        let first_location = first_location.filter(|location| self.has_line(location.line));
        let mut error = ScriptError {
            hint: hint(&thrown),
            name: thrown.name,
            stack: stack.filter(|text| !text.is_empty()),
            tool_code,
            ..ScriptError::new(code, thrown.message)
        };
        self.locate(&mut error, first_location);
        error
    }

    fn has_line(&self, line: u32) -> bool {
        let index = line.checked_sub(1).and_then(|index| usize::try_from(index).ok());
        index.is_some_and(|index| self.source.lines().nth(index).is_some())
    }

    fn locate(&self, error: &mut ScriptError, location: Option<Location>) {
        set_location(error, self.source, location);
    }
}

/// The error for a source that could not be transpiled.
pub(crate) fn transpile_failed(error: TranspileError, source: &str) -> ScriptError {
    let code = match error.kind {
        TranspileErrorKind::Syntax => ErrorCode::SyntaxError,
        TranspileErrorKind::Transpile => ErrorCode::TranspileError,
        // The engine creates this error itself, because it knows which limit was reached.
        TranspileErrorKind::Stopped => ErrorCode::Cancelled,
    };
    let mut failed = ScriptError { hint: error.hint, ..ScriptError::new(code, error.message) };
    set_location(&mut failed, source, error.location);
    failed
}

/// Sets the error's source location and the text of that line.
pub(crate) fn set_location(error: &mut ScriptError, source: &str, location: Option<Location>) {
    if let Some(location) = location {
        failure::set_location(error, source, location.line, location.column);
    }
}

/// A hint for an error whose cause is a missing feature of browsers or Node.
fn hint(thrown: &Thrown) -> Option<String> {
    if thrown.thrown {
        return Some("throw an Error to get a stack and a line".to_owned());
    }
    match thrown.name.as_deref()? {
        "ReferenceError" => {
            let missing = thrown.message.strip_suffix(" is not defined")?;
            instead::of_global(missing).map(str::to_owned)
        }
        "EvalError" => Some("code cannot be made from text here; write it into the script".to_owned()),
        _ => None,
    }
}
