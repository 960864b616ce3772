//! Scripts that are called like tools: what a dispatcher stores of one, and how a run executes it.
//!
//! A dispatcher stores the source of a script. Only the run that calls it can run it, within its own limits. So a
//! request for such a tool carries a [`ScriptCaller`].

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use super::arguments::ArgumentCheck;
use super::error::{ToolError, ToolErrorCode};
use super::names::kind;
use super::schema::Schema;
use crate::json::Json;
use crate::text::visible_preview;

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

/// The error for a text that is not the name of a [`Language`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected `typescript` or `python`: `{0}`")]
pub struct UnknownLanguage(String);

impl Language {
    /// Its name in results, recordings, metrics and the audit trail: `typescript`, `python`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TypeScript => "typescript",
            Self::Python => "python",
        }
    }

    /// Its name in text for people: `TypeScript`, `Python`.
    pub const fn title(self) -> &'static str {
        match self {
            Self::TypeScript => "TypeScript",
            Self::Python => "Python",
        }
    }

    /// The extension of files in the language, without the dot: `ts`, `py`.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::TypeScript => "ts",
            Self::Python => "py",
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Parses a name that [`Language::as_str`] returns, or the extension of a file or the name of a Markdown code fence:
/// `ts`, `js`, `javascript`, `py`. Case does not matter.
///
/// ```
/// use cx::Language;
///
/// assert_eq!("ts".parse(), Ok(Language::TypeScript));
/// assert_eq!("Python".parse(), Ok(Language::Python));
/// assert_eq!(Language::TypeScript.title().parse(), Ok(Language::TypeScript));
/// assert!("ruby".parse::<Language>().is_err());
/// ```
impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        const NAMES: [(&str, Language); 6] = [
            ("typescript", Language::TypeScript),
            ("ts", Language::TypeScript),
            ("javascript", Language::TypeScript),
            ("js", Language::TypeScript),
            ("python", Language::Python),
            ("py", Language::Python),
        ];
        let known = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        known.map(|(_, language)| *language).ok_or_else(|| UnknownLanguage(visible_preview(name, 40)))
    }
}

/// The kind of a tool, which determines how the caller's policy applies to its calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolKind {
    /// A tool whose effects its annotations describe.
    #[default]
    Ordinary,
    /// It runs a stored script ([`ToolRequest::caller`](super::ToolRequest::caller)) and has no other effect. The
    /// policy decides about every call of that script, so a call of this tool needs no approval because of annotations,
    /// and in a dry run the script is run as a dry run.
    Script,
    /// It changes the stored scripts. It always needs an approval, whatever the rules say.
    ScriptChange,
}

/// A saved script as it was read from its file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SavedScript {
    /// The name by which it is called: its file's name without the extension.
    pub name: String,
    /// Its description, by the script itself. Untrusted text.
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
    /// Whether it is in the workspace and not in the user's own folder.
    pub is_of_workspace: bool,
    /// The compiled schema.
    pub(crate) check: Option<Arc<ArgumentCheck>>,
}

impl SavedScript {
    /// Checks an input against the script's schema and returns the input for the script, without optional fields that
    /// are null although the schema does not allow null. A script without a schema accepts any JSON.
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
            // The text is returned as it was written: the tree has lost digits of long numbers.
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
    /// The value that it sees as `input` (Python: `inputs`).
    pub input: Json,
}

impl StoredScript {
    /// A script and its input.
    pub fn new(name: impl Into<String>, language: Language, source: impl Into<String>, input: Json) -> Self {
        Self { name: name.into(), language, source: source.into(), input }
    }
}

/// A script that a call would store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnsavedScript {
    /// The name that it would have.
    pub name: String,
    /// Its language.
    pub language: Language,
    /// Its source, as it would be stored.
    pub source: String,
    /// Lines of the source before those of the script's author, such as a front matter. The locations of mistakes are
    /// the author's.
    pub lines_before: u32,
}

impl UnsavedScript {
    /// A script whose source is its author's.
    pub fn new(name: impl Into<String>, language: Language, source: impl Into<String>) -> Self {
        Self { name: name.into(), language, source: source.into(), lines_before: 0 }
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

    /// Runs a stored script as a separate run, within the rest of the caller's limits and by its rules. Returns the
    /// script's value. Dropping the future stops the script.
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
