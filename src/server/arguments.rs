//! The arguments of a call of a tool that runs a script: parsed, checked, and made a script.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::error::Error;
use crate::json::Json;
use crate::run::limits::Limits;
use crate::run::script::{Language, Script};
use crate::storage::state::StateScope;
use crate::text::preview;
use crate::tools::names::{self, kind};

/// Maximum timeout of a run.
pub(crate) const MAX_TIMEOUT: Duration = Limits::CEILING.wall_time;

/// Maximum characters of a value that an error message shows.
const MAX_SHOWN: usize = 60;

/// A parameter of the tools that run scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunParameter {
    Code,
    Input,
    AllowedTools,
    TimeoutMs,
    MaxToolCalls,
    Session,
    DryRun,
}

impl RunParameter {
    pub(crate) const ALL: [Self; 7] = [
        Self::Code,
        Self::Input,
        Self::AllowedTools,
        Self::TimeoutMs,
        Self::MaxToolCalls,
        Self::Session,
        Self::DryRun,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Input => "input",
            Self::AllowedTools => "allowedTools",
            Self::TimeoutMs => "timeoutMs",
            Self::MaxToolCalls => "maxToolCalls",
            Self::Session => "session",
            Self::DryRun => "dryRun",
        }
    }
}

/// The validated arguments of a call.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct RunArguments {
    pub(crate) code: String,
    pub(crate) input: Option<Json>,
    pub(crate) allowed_tools: Option<Vec<String>>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_tool_calls: Option<u32>,
    pub(crate) session: Option<String>,
    pub(crate) is_dry_run: bool,
}

impl RunArguments {
    /// Parses the arguments of a call. `input` is the value of the `input` parameter, if it was
    /// detached from the message.
    ///
    /// # Errors
    ///
    /// All problems of the arguments. Each names the field, the expected type and the received
    /// value.
    pub(crate) fn read(arguments: Map<String, Value>, input: Option<Json>) -> Result<Self, String> {
        let mut read = Self::default();
        let mut problems = Vec::new();
        let mut has_code = false;
        for (name, value) in arguments {
            let Some(parameter) = RunParameter::ALL.into_iter().find(|known| known.name() == name) else {
                problems.push(unknown(&name));
                continue;
            };
            has_code |= parameter == RunParameter::Code;
            if let Err(problem) = read.set(parameter, value) {
                problems.push(problem);
            }
        }
        if input.is_some() {
            read.input = input;
        }
        if !has_code {
            problems.push("`code` is missing: expected the script's source, a string".to_owned());
        }
        if problems.is_empty() { Ok(read) } else { Err(problems.join("; ")) }
    }

    /// The limits that the client requested, or `default`, capped by the operator's `max`. The CPU
    /// time follows a requested timeout.
    pub(crate) fn limits(&self, default: Limits, max: &Limits) -> Limits {
        let tool_calls = self.max_tool_calls.unwrap_or(default.tool_calls);
        let limits = match self.timeout {
            Some(timeout) => default.with_wall_time(timeout.min(max.wall_time), max.cpu_time),
            None => Limits { wall_time: default.wall_time.min(max.wall_time), ..default },
        };
        Limits {
            // 0 means no limit, in both the request and the maximum.
            tool_calls: match (tool_calls, max.tool_calls) {
                (asked, 0) => asked,
                (0, max) => max,
                (asked, max) => asked.min(max),
            },
            ..limits
        }
    }

    /// The script, without its limits.
    pub(crate) fn into_script(self, language: Language) -> Script {
        let mut script = match language {
            Language::TypeScript => Script::typescript(self.code),
            Language::Python => Script::python(self.code),
        };
        if let Some(input) = self.input {
            script = script.input(input);
        }
        if let Some(patterns) = self.allowed_tools {
            script = script.allow(patterns);
        }
        if let Some(handle) = self.session {
            script = script.session(handle);
        }
        if self.is_dry_run {
            script = script.dry_run();
        }
        script
    }

    fn set(&mut self, parameter: RunParameter, value: Value) -> Result<(), String> {
        let expected = |what: &str, value: &Value| {
            Err(format!("`{}`: expected {what}: {}", parameter.name(), shown(value)))
        };
        match (parameter, value) {
            (RunParameter::Code, Value::String(code)) => self.code = code,
            (RunParameter::Code, other) => return expected("a string", &other),
            (RunParameter::Input, value) => self.input = Some(value.into()),
            // Optional parameters may be null.
            (_, Value::Null) => {}
            (RunParameter::AllowedTools, Value::Array(items)) => {
                let mut patterns = Vec::with_capacity(items.len());
                for item in items {
                    let Value::String(pattern) = item else {
                        return expected("an array of strings such as `server.tool` or `server.*`", &item);
                    };
                    patterns.push(pattern);
                }
                self.allowed_tools = Some(patterns);
            }
            (RunParameter::AllowedTools, other) => {
                return expected("an array of strings such as `server.tool` or `server.*`", &other);
            }
            (RunParameter::TimeoutMs, value) => match whole(&value) {
                Some(milliseconds) if (1..=MAX_TIMEOUT.as_millis()).contains(&milliseconds.into()) => {
                    self.timeout = Some(Duration::from_millis(milliseconds));
                }
                _ => {
                    let what =
                        format!("a whole number of milliseconds from 1 to {}", MAX_TIMEOUT.as_millis());
                    return expected(&what, &value);
                }
            },
            (RunParameter::MaxToolCalls, value) => match whole(&value).map(u32::try_from) {
                Some(Ok(calls)) => self.max_tool_calls = Some(calls),
                _ => {
                    let what = format!("a whole number from 0 (as many as allowed) to {}", u32::MAX);
                    return expected(&what, &value);
                }
            },
            (RunParameter::Session, Value::String(handle)) => match StateScope::session(&*handle) {
                Ok(_usable) => self.session = Some(handle),
                Err(Error::InvalidOptions { problem, .. }) => return Err(format!("`session`: {problem}")),
                Err(error) => return Err(format!("`session`: {error}")),
            },
            (RunParameter::Session, other) => return expected("a string", &other),
            (RunParameter::DryRun, Value::Bool(is_dry_run)) => self.is_dry_run = is_dry_run,
            (RunParameter::DryRun, other) => return expected("true or false", &other),
        }
        Ok(())
    }
}

fn unknown(name: &str) -> String {
    let name = preview(name, MAX_SHOWN);
    let known = RunParameter::ALL.map(RunParameter::name);
    let suggestion = names::suggestion(&name, "parameters", known.into_iter());
    format!("unknown parameter `{name}`{suggestion}")
}

/// Reads a whole number, also one that is written as `30000.0` or `3e4`.
fn whole(value: &Value) -> Option<u64> {
    if let Some(number) = value.as_u64() {
        return Some(number);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to fit")]
    value
        .as_f64()
        .filter(|number| number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(number))
        .map(|number| number as u64)
}

/// Renders a value for an error message: scalars as they were received, arrays and objects as their
/// type.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => kind(value).to_owned(),
        scalar => preview(&scalar.to_string(), MAX_SHOWN),
    }
}

#[cfg(test)]
mod tests;
