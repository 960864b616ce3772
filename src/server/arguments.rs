//! The arguments of a call of a tool that runs a script: parsed, checked, and made a script.

mod foreign;
pub(crate) mod parameters;
mod permissions;
mod problem;

use std::time::Duration;

use serde_json::{Map, Value};

use self::foreign::ForeignParameter;
use self::parameters::{MAX_TIMEOUT, RunParameter};
use self::problem::{ArgumentProblem, InvalidArguments};
use crate::error::Error;
use crate::json::Json;
use crate::llm::LlmOptions;
use crate::run::grants::Permissions;
use crate::run::limits::Limits;
use crate::run::sampling::SamplingOptions;
use crate::run::script::{Language, Script};
use crate::run::time_zone::TimeZone;
use crate::storage::state::StateScope;
use crate::tools::policy::pattern_work;

/// Maximum number of patterns of `allowedTools`, and maximum bytes of one. Each is compared with the names of all tools
/// when a script lists or searches them.
const MAX_PATTERNS: usize = 500;
const MAX_PATTERN_BYTES: usize = 512;

/// Maximum work of comparing all patterns with one name: see [`pattern_work`]. There are up to ten thousand names, and
/// servers choose them.
const MAX_PATTERN_WORK: usize = 500;

/// The validated arguments of a call.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct RunArguments {
    pub(crate) code: String,
    /// The name of a saved script, instead of code.
    pub(crate) script: Option<String>,
    pub(crate) input: Option<Json>,
    pub(crate) allowed_tools: Option<Vec<String>>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_tool_calls: Option<u32>,
    pub(crate) session: Option<String>,
    pub(crate) is_dry_run: bool,
    pub(crate) time_zone: Option<String>,
    /// The grants that the script asks for, within those of the executor.
    pub(crate) permissions: Permissions,
    /// Time after which the call is answered although the run continues; zero for never.
    pub(crate) yield_after: Option<Duration>,
    pub(crate) sampling: SamplingOptions,
}

impl RunArguments {
    /// Parses the arguments of a call. `input` is the value of the `input` parameter, if it was
    /// detached from the message.
    ///
    /// `null`, and the empty value of a parameter that has no use for one, mean that the parameter
    /// was not given: strict modes of models fill in every parameter.
    ///
    /// # Errors
    ///
    /// All problems of the arguments.
    pub(crate) fn read(arguments: Map<String, Value>, input: Option<Json>) -> Result<Self, InvalidArguments> {
        let mut read = Self::default();
        let mut problems = InvalidArguments::default();
        let mut has_code = false;
        for (name, value) in arguments {
            if let Some(parameter) = RunParameter::from_name(&name) {
                has_code |= parameter == RunParameter::Code;
                if let Err(problem) = read.set(parameter, value) {
                    problems.push(problem);
                }
            } else if let Some(parameter) = ForeignParameter::from_name(&name) {
                if !parameter.asks_for_nothing(&value) {
                    problems.push(ArgumentProblem::Unsupported(parameter));
                }
            } else {
                problems.push(ArgumentProblem::unknown(&name));
            }
        }
        if let Some(input) = input.filter(|input| !input.is_null()) {
            read.input = Some(input);
        }
        // Strict modes fill in both parameters.
        if read.script.is_some() && !read.code.is_empty() {
            problems.push(ArgumentProblem::CodeAndScript);
        }
        if !has_code && read.script.is_none() {
            problems.push(ArgumentProblem::CodeMissing);
        }
        if problems.is_empty() { Ok(read) } else { Err(problems) }
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
        let mut script = Script::new(language, self.code);
        if let Some(input) = self.input {
            script = script.input(input);
        }
        if let Some(patterns) = self.allowed_tools {
            script = script.allow(patterns);
        }
        if let Some(handle) = self.session {
            script = script.session(handle);
        }
        if let Some(name) = self.time_zone {
            script = script.time_zone(name);
        }
        if self.is_dry_run {
            script = script.dry_run();
        }
        script.permissions(self.permissions).sampling(self.sampling)
    }

    fn set(&mut self, parameter: RunParameter, value: Value) -> Result<(), ArgumentProblem> {
        let wrong = |value: &Value| Err(ArgumentProblem::wrong_value(parameter, value));
        match (parameter, value) {
            (RunParameter::Code, Value::String(code)) => self.code = code,
            (RunParameter::Code, other) => return wrong(&other),
            (_, Value::Null) => {}
            (RunParameter::Script, Value::String(name)) => {
                self.script = Some(name).filter(|name| !name.is_empty());
            }
            (RunParameter::Script, other) => return wrong(&other),
            (RunParameter::Input, value) => self.input = Some(value.into()),
            // An empty list allows no tool. It is not taken for a list that was not given, because
            // that would allow all of them.
            (RunParameter::AllowedTools, Value::Array(items)) => {
                self.allowed_tools = Some(patterns(parameter, items)?);
            }
            (RunParameter::AllowedTools, other) => return wrong(&other),
            (RunParameter::TimeoutMs, value) => match time(&value) {
                // A script cannot do anything in zero time, so this means the default.
                Some(time) if time.is_zero() => {}
                Some(time) => self.timeout = Some(time),
                None => return wrong(&value),
            },
            (RunParameter::MaxToolCalls, value) => match whole(&value).map(u32::try_from) {
                Some(Ok(calls)) => self.max_tool_calls = Some(calls),
                _ => return wrong(&value),
            },
            // No session has an empty handle, so this means none.
            (RunParameter::Session, Value::String(handle)) if handle.is_empty() => {}
            (RunParameter::Session, Value::String(handle)) => {
                StateScope::session(&*handle).map_err(|error| invalid(parameter, error))?;
                self.session = Some(handle);
            }
            (RunParameter::Session, other) => return wrong(&other),
            (RunParameter::TimeZone, Value::String(name)) if name.is_empty() => {}
            (RunParameter::TimeZone, Value::String(name)) => {
                TimeZone::find(&name).map_err(|error| invalid(parameter, error))?;
                self.time_zone = Some(name);
            }
            (RunParameter::TimeZone, other) => return wrong(&other),
            (RunParameter::Permissions, value) => {
                self.permissions = permissions::read(value)
                    .map_err(|problem| ArgumentProblem::Invalid { parameter, problem })?;
            }
            (RunParameter::YieldAfterMs, value) => match time(&value) {
                Some(time) => self.yield_after = Some(time),
                None => return wrong(&value),
            },
            (RunParameter::DryRun, Value::Bool(is_dry_run)) => self.is_dry_run = is_dry_run,
            (RunParameter::DryRun, other) => return wrong(&other),
            (
                RunParameter::EnableSampling
                | RunParameter::MaxSamplingRounds
                | RunParameter::MaxSamplingTokens
                | RunParameter::SamplingSystemPrompt
                | RunParameter::AllowedSamplingModels,
                value,
            ) => self.set_sampling(parameter, value)?,
        }
        Ok(())
    }

    /// Sets a parameter about language models.
    fn set_sampling(&mut self, parameter: RunParameter, value: Value) -> Result<(), ArgumentProblem> {
        let wrong = |value: &Value| Err(ArgumentProblem::wrong_value(parameter, value));
        match (parameter, value) {
            // Strict modes fill in `false`, so it counts as not given.
            (RunParameter::EnableSampling, Value::Bool(enabled)) => {
                self.sampling.enabled = enabled.then_some(true);
            }
            (RunParameter::MaxSamplingRounds, value) => match whole(&value) {
                // Zero means the default: models in strict mode fill in a number for every
                // parameter.
                Some(0) => {}
                Some(rounds) if rounds <= u64::from(LlmOptions::MAX_ROUNDS) => {
                    self.sampling.max_rounds = u32::try_from(rounds).ok();
                }
                _ => return wrong(&value),
            },
            (RunParameter::MaxSamplingTokens, value) => match whole(&value) {
                Some(0) => {}
                Some(tokens) if tokens <= LlmOptions::MAX_TOKENS => self.sampling.max_tokens = Some(tokens),
                _ => return wrong(&value),
            },
            (RunParameter::SamplingSystemPrompt, Value::String(prompt)) => {
                self.sampling.system_prompt = Some(prompt).filter(|prompt| !prompt.is_empty());
            }
            (RunParameter::AllowedSamplingModels, Value::Array(items)) => {
                // Unlike for `allowedTools`, an empty list counts as not given: strict modes fill it in.
                self.sampling.allowed_models =
                    Some(texts(parameter, items)?).filter(|models| !models.is_empty());
            }
            (_, other) => return wrong(&other),
        }
        Ok(())
    }
}

/// The patterns of an array, within their bounds.
fn patterns(parameter: RunParameter, items: Vec<Value>) -> Result<Vec<String>, ArgumentProblem> {
    let refused = |problem: String| Err(ArgumentProblem::Invalid { parameter, problem });
    if items.len() > MAX_PATTERNS {
        return refused(format!("expected at most {MAX_PATTERNS} patterns: {}", items.len()));
    }
    let patterns = texts(parameter, items)?;
    if let Some(pattern) = patterns.iter().find(|pattern| pattern.len() > MAX_PATTERN_BYTES) {
        return refused(format!("a pattern has at most {MAX_PATTERN_BYTES} bytes: {}", pattern.len()));
    }
    if patterns.iter().map(|pattern| pattern_work(pattern)).sum::<usize>() > MAX_PATTERN_WORK {
        return refused(format!(
            "expected at most {MAX_PATTERN_WORK} `*` in all patterns together, besides the first one of each part \
             of a name, and few `?`"
        ));
    }
    Ok(patterns)
}

/// The strings of an array.
fn texts(parameter: RunParameter, items: Vec<Value>) -> Result<Vec<String>, ArgumentProblem> {
    let text = |item: Value| match item {
        Value::String(text) => Ok(text),
        other => Err(ArgumentProblem::wrong_value(parameter, &other)),
    };
    items.into_iter().map(text).collect()
}

/// The problem of a value that has the right type, and that an option of runs cannot have.
fn invalid(parameter: RunParameter, error: Error) -> ArgumentProblem {
    let problem = match error {
        Error::InvalidOptions { problem, .. } => problem,
        other => other.to_string(),
    };
    ArgumentProblem::Invalid { parameter, problem }
}

/// Reads a time in milliseconds, of at most [`MAX_TIMEOUT`].
fn time(value: &Value) -> Option<Duration> {
    whole(value).map(Duration::from_millis).filter(|time| *time <= MAX_TIMEOUT)
}

/// Reads an integer, including one that is written as `30000.0` or `3e4`.
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

#[cfg(test)]
mod tests;
