//! The body of `POST /v1/runs`: the parameters that only REST has, and the arguments of the run.

use serde_json::{Map, Value};

use crate::engine::engines;
use crate::json::Json;
use crate::run::script::Language;
use crate::server::arguments::RunArguments;
use crate::server::incoming::{self, Incoming};
use crate::text::{MAX_SHOWN_NAME, preview};

/// The language of `code`.
pub(super) const LANGUAGE: &str = "language";
/// Whether the answer is a stream of events.
pub(super) const STREAM: &str = "stream";
/// Whether the run continues without its request.
pub(super) const BACKGROUND: &str = "background";

/// A run that a client asks for.
pub(super) struct RunRequest {
    pub(super) arguments: RunArguments,
    /// The language of `code`; a saved script has its own.
    pub(super) language: Language,
    pub(super) stream: bool,
    pub(super) background: bool,
}

/// Reads the body of a request.
///
/// # Errors
///
/// A description of everything that is wrong with it, for the developer of the client.
pub(super) fn read(body: &[u8]) -> Result<RunRequest, String> {
    let Incoming { message, input } =
        incoming::detach_from_arguments(body).map_err(|problem| problem.to_string())?;
    let fields = serde_json::from_slice::<Value>(&message)
        .map_err(|error| format!("the body is not JSON that can be read: {error}"))?;
    let Value::Object(fields) = fields else {
        return Err("expected a JSON object, such as {\"language\": \"typescript\", \"code\": \"return 1\"}"
            .to_owned());
    };
    read_fields(fields, input.map(Json::from))
}

fn read_fields(mut fields: Map<String, Value>, input: Option<Json>) -> Result<RunRequest, String> {
    let language = language(fields.shift_remove(LANGUAGE))?;
    let stream = flag(STREAM, fields.shift_remove(STREAM))?;
    let background = flag(BACKGROUND, fields.shift_remove(BACKGROUND))?;
    let arguments = RunArguments::read(fields, input).map_err(|problems| problems.to_string())?;
    if arguments.yield_after.is_some_and(|after| !after.is_zero()) {
        return Err("`yieldAfterMs`: over REST a run goes on with `\"background\": true`".to_owned());
    }
    let language = match language {
        Some(language) => language,
        // Replaced by the language of the saved script.
        None if arguments.script.is_some() => Language::TypeScript,
        None => return Err(format!("`{LANGUAGE}` is missing: expected {}", languages())),
    };
    Ok(RunRequest { arguments, language, stream, background })
}

fn language(value: Option<Value>) -> Result<Option<Language>, String> {
    let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
    let known = engines::AVAILABLE.iter().find(|&&language| value == language.as_str());
    let shown = || preview(&value.to_string(), MAX_SHOWN_NAME);
    known.copied().map(Some).ok_or_else(|| format!("`{LANGUAGE}`: expected {}: {}", languages(), shown()))
}

/// The names of the languages of this build, as a message says it.
fn languages() -> String {
    let names: Vec<_> =
        engines::AVAILABLE.iter().map(|&language| format!("`{}`", language.as_str())).collect();
    names.join(" or ")
}

fn flag(name: &str, value: Option<Value>) -> Result<bool, String> {
    match value {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(flag),
        Some(other) => {
            Err(format!("`{name}`: expected true or false: {}", preview(&other.to_string(), MAX_SHOWN_NAME)))
        }
    }
}
