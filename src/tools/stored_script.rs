//! Scripts that are called like tools: what a dispatcher stores of one, and how a run executes it.
//!
//! A dispatcher knows the text of a stored script. Only the run that calls it can run it, within its
//! own limits. So a request for such a tool carries a [`ScriptCaller`].

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use super::arguments::ArgumentCheck;
use super::error::{ToolError, ToolErrorCode};
use super::names::kind;
use super::schema::Schema;
use crate::json::Json;

/// The server whose tools are the saved scripts.
pub(crate) const SCRIPTS_SERVER: &str = "scripts";

/// The language of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Language {
    /// TypeScript or JavaScript, in V8.
    TypeScript,
    /// Python, in CPython compiled to WebAssembly.
    Python,
}

/// What a call of a tool does, as the policy of the caller has to know it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolKind {
    /// It does something, and its annotations say what.
    #[default]
    Ordinary,
    /// It runs a stored script ([`ToolRequest::caller`](super::ToolRequest::caller)) and does nothing
    /// else. Every call that the script makes is decided about by itself, so this one needs no
    /// approval because of annotations, and a dry run makes it, as a dry run.
    Script,
    /// It changes the stored scripts. It always needs an approval, whatever the rules say.
    ScriptChange,
}

/// A saved script, as it was read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SavedScript {
    /// The name by which it is called: its file's name without the extension.
    pub name: String,
    /// What it says that it does. Untrusted text.
    pub description: Option<String>,
    /// Its language.
    pub language: Language,
    /// JSON Schema of its input, an object, if it declares one.
    pub input: Option<Schema>,
    /// Its complete source.
    pub source: String,
    /// Its file.
    pub path: PathBuf,
    /// SHA-256 of the source, in hexadecimal.
    pub sha256: String,
    /// Whether it is in the workspace, and not in the user's own folder.
    pub is_of_workspace: bool,
    /// The compiled schema.
    pub(crate) check: Option<Arc<ArgumentCheck>>,
}

impl SavedScript {
    /// Checks an input against the script's schema and returns what the script gets: without fields
    /// that are null where they may be missing but not null. A script without a schema takes any JSON.
    ///
    /// # Errors
    ///
    /// `InvalidArguments` with up to three reasons.
    pub fn check_input(&self, input: Option<Json>) -> Result<Json, ToolError> {
        let Some(check) = &self.check else { return Ok(input.unwrap_or_else(|| Value::Null.into())) };
        let input = input
            .filter(|input| !input.is_null())
            .unwrap_or_else(|| Value::Object(serde_json::Map::new()).into());
        let invalid = |message: String| ToolError::new(ToolErrorCode::InvalidArguments, message);
        let value = input.value().ok_or_else(|| invalid("the input has too many values".to_owned()))?;
        let Value::Object(fields) = value else {
            return Err(invalid(format!("expected the input as one object: {}", kind(value))));
        };
        if check.problem(value).is_none() {
            // As it is written: a tree has lost digits of long numbers.
            return Ok(input);
        }
        check.check(fields.clone()).map(|fields| Value::Object(fields).into())
    }
}

/// A stored script and the input of one run of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoredScript {
    /// Its name, which stack traces show.
    pub name: String,
    /// Its language.
    pub language: Language,
    /// Its source.
    pub source: String,
    /// What it sees as `input` (Python: `inputs`).
    pub input: Json,
}

impl StoredScript {
    /// A script and its input.
    pub fn new(name: impl Into<String>, language: Language, source: impl Into<String>, input: Json) -> Self {
        Self { name: name.into(), language, source: source.into(), input }
    }
}

/// Runs a stored script for the run that has called it.
pub(crate) type RunStored =
    Arc<dyn Fn(StoredScript) -> BoxFuture<'static, Result<Json, ToolError>> + Send + Sync>;

/// The run that calls a stored script.
#[derive(Clone)]
pub struct ScriptCaller {
    /// The language of the calling script.
    pub(crate) language: Language,
    pub(crate) run: RunStored,
}

impl ScriptCaller {
    /// The language of the calling script.
    pub fn language(&self) -> Language {
        self.language
    }

    /// Runs a stored script as a run of its own, within what is left of the caller's limits, and by its
    /// rules. Returns the script's value. Dropping the future stops the script.
    ///
    /// # Errors
    ///
    /// `ToolError` if the script fails, `ToolTimeout`, `MaxToolCallsExceeded`, `QueueFull` or
    /// `Cancelled` if it is stopped, `ToolDenied` beyond the permitted depth of such calls.
    pub async fn run(&self, script: StoredScript) -> Result<Json, ToolError> {
        (self.run)(script).await
    }
}

impl fmt::Debug for ScriptCaller {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ScriptCaller").field("language", &self.language).finish_non_exhaustive()
    }
}
