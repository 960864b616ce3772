//! Prepares every run of a client, over MCP and over REST: admits it, and applies saved scripts and the operator's
//! limits.

use std::sync::Arc;
use std::time::Duration;

use super::answer::{self, Answer, INVALID_ARGUMENTS};
use super::arguments::RunArguments;
use super::metrics;
use super::session::McpSession;
use crate::error::Error;
use crate::run::limits::Limits;
use crate::run::result::ErrorCode;
use crate::run::script::{Language, Script};
use crate::tools::{SavedScript, ToolErrorCode};

/// The error for a run that is refused because the server is draining.
pub(crate) const ENDING: &str =
    "the server is being stopped and starts no more scripts; those that run go on";

/// When the client should try again. By then another process has probably replaced the server.
const RETRY_WHEN_ENDING: Duration = Duration::from_secs(5);

/// A script with the limits of its run.
pub(crate) struct PreparedRun {
    pub(crate) script: Script,
    /// The language of the saved script, if the call names one.
    pub(crate) language: Language,
    pub(crate) limits: Limits,
}

/// Makes a script of a call's arguments. `language` is that of the arguments' code.
///
/// # Errors
///
/// The answer to a call that asks for more than is granted, names a saved script that does not exist, or has an input
/// that the script does not take.
pub(crate) fn prepare(
    session: &McpSession,
    mut arguments: RunArguments,
    language: Language,
) -> Result<PreparedRun, Answer> {
    let executor = &session.shared.executor;
    if let Err(error) = executor.grants().of_run(&arguments.permissions) {
        let problem = match error {
            Error::InvalidOptions { option, problem } => format!("`{option}`: {problem}"),
            other => other.to_string(),
        };
        return Err(answer::refusal(session.shared.options.format, INVALID_ARGUMENTS, &problem, None));
    }
    let saved = saved_script(session, &mut arguments)?;
    let language = saved.as_ref().map_or(language, |script| script.language);
    let limits = arguments.limits(executor.limits(), &executor.max_limits());
    let mut script = arguments.into_script(language).limits(limits);
    if let Some(saved) = saved {
        script = script.named(format!("scripts/{}.{}", saved.name, language.extension()));
    }
    let script = script.default_scope(session.default_scope.clone());
    Ok(PreparedRun { script, language, limits })
}

/// Finds the saved script that a call names, and puts its code and input into the arguments.
///
/// # Errors
///
/// The answer to a call that names a script which does not exist, or has an input that it does not take.
fn saved_script(
    session: &McpSession,
    arguments: &mut RunArguments,
) -> Result<Option<Arc<SavedScript>>, Answer> {
    let Some(name) = arguments.script.take() else { return Ok(None) };
    let refuse =
        |problem: String| answer::refusal(session.shared.options.format, INVALID_ARGUMENTS, &problem, None);
    let saved = session.shared.executor.saved_script(&name);
    let saved = saved.map_err(|problem| refuse(format!("`script`: {problem}")))?;
    let input = saved.check_input(arguments.input.take());
    arguments.input = Some(input.map_err(|error| refuse(format!("`input`: {}", error.message)))?);
    arguments.code.clone_from(&saved.source);
    Ok(Some(saved))
}

/// Admits a run of `client`, and counts it against the rate limits.
///
/// # Errors
///
/// The answer to a run beyond a limit, or to any run while the server is draining.
pub(crate) fn admit_run(session: &McpSession, client: &str) -> Result<(), Answer> {
    if session.calls.is_closed() {
        let (format, code) = (session.shared.options.format, ErrorCode::EngineUnavailable.as_str());
        return Err(answer::refusal_for_now(format, code, ENDING, RETRY_WHEN_ENDING));
    }
    session.rates.acquire(client).map_err(|exceeded| {
        metrics::count_rate_limited();
        let code = ToolErrorCode::RateLimited.as_str();
        answer::refusal_for_now(session.shared.options.format, code, &exceeded.message, exceeded.retry_after)
    })
}
