//! What a person is asked before a call is made, and what they may answer.

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use crate::text::{is_hidden, one_line};

/// One call that a person is asked about. An approval covers exactly this call: these arguments are the ones that are
/// sent, and nothing is read or resolved anew after the answer.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The server's name as configured.
    pub server: String,
    /// The tool's name as its server gave it, or the method of a request for something else than a tool.
    pub tool: String,
    /// What the server says that the tool does. Untrusted text.
    pub description: Option<String>,
    /// The server's hints (`readOnlyHint` and the like). Untrusted.
    pub annotations: Option<Value>,
    /// The arguments as they will be sent. A script made them: untrusted.
    pub arguments: Map<String, Value>,
    /// Why a person is asked.
    pub reason: AskReason,
    /// The script's name, as in stack traces.
    pub script: String,
    /// How long there is for an answer. After that the future is dropped and the call is refused.
    pub time: Duration,
}

impl ApprovalRequest {
    /// `server.tool` in one line, with every character that nobody sees written out.
    pub fn call_text(&self) -> String {
        one_line(&format!("{}.{}", self.server, self.tool))
    }

    /// The arguments as indented JSON for a person to read, in full. Characters that nobody sees (controls, zero
    /// width, direction, tags) are written as JSON's own escapes, so nothing can hide and the text is still the
    /// same JSON.
    pub fn arguments_text(&self) -> String {
        // A map of JSON values can always be written.
        let text = serde_json::to_string_pretty(&self.arguments).unwrap_or_default();
        let mut shown = String::with_capacity(text.len());
        for character in text.chars() {
            // The layout's own line ends; those of texts are escaped already.
            if character != '\n' && (is_hidden(character) || character == '\t' || character == '\r') {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _ = write!(shown, "\\u{unit:04x}");
                }
            } else {
                shown.push(character);
            }
        }
        shown
    }
}

impl fmt::Debug for ApprovalRequest {
    /// Hides the arguments: they may hold secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ApprovalRequest")
            .field("server", &self.server)
            .field("tool", &self.tool)
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}

/// A person's answer to an [`ApprovalRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Approval {
    /// Make this one call.
    Approve,
    /// Do not make it.
    Deny {
        /// Why, in the person's words, for the script's author. At most [`Approval::MAX_REASON`] bytes are kept.
        reason: Option<String>,
    },
    /// Nobody could be asked: there is no terminal, or the client has gone or cannot ask.
    Unavailable,
}

impl Approval {
    /// Bytes of a reason that are passed on.
    pub const MAX_REASON: usize = 1_000;
}

/// Asks a person. Is polled on the executor's own runtime and not on the script's thread, so that a script cannot hold
/// it up. Dropped when the run ends, or when the time for the answer is over.
pub(crate) type Approver = Arc<dyn Fn(ApprovalRequest) -> BoxFuture<'static, Approval> + Send + Sync>;

/// Why a person is asked about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskReason {
    /// A pattern of an `ask` list names the tool.
    Pattern(String),
    /// `ask` has an annotation's word, and the tool is of that kind.
    Annotation(AskAnnotation),
}

impl fmt::Display for AskReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pattern(pattern) => write!(formatter, "`ask` names it: `{pattern}`"),
            Self::Annotation(annotation) => {
                write!(formatter, "{}, and `ask` has `{annotation}`", annotation.effect())
            }
        }
    }
}

/// The words of an `ask` list that stand for what tools say of themselves in their annotations. Defaults are the MCP
/// specification's: a tool that says nothing writes, destroys and reaches out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AskAnnotation {
    /// `destructive`: `destructiveHint` is true, or absent in a tool that is not read-only.
    Destructive,
    /// `write`: the tool is not read-only.
    Write,
    /// `open-world`: `openWorldHint` is true or absent.
    OpenWorld,
}

impl AskAnnotation {
    /// Every word.
    pub const ALL: [Self; 3] = [Self::Destructive, Self::Write, Self::OpenWorld];

    /// The word in lists.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Destructive => "destructive",
            Self::Write => "write",
            Self::OpenWorld => "open-world",
        }
    }

    /// The annotation that a word means.
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|annotation| annotation.as_str() == word)
    }

    const fn effect(self) -> &'static str {
        match self {
            Self::Destructive => "it may destroy something",
            Self::Write => "it may change something",
            Self::OpenWorld => "it may reach beyond its server",
        }
    }

    pub(crate) const fn holds(self, effects: Effects) -> bool {
        match self {
            Self::Destructive => effects.destroys,
            Self::Write => effects.writes,
            Self::OpenWorld => effects.reaches_out,
        }
    }
}

impl fmt::Display for AskAnnotation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// What a call may do, as far as that is known. What is not known counts as the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Effects {
    pub(crate) writes: bool,
    pub(crate) destroys: bool,
    pub(crate) reaches_out: bool,
}

impl Effects {
    /// Of a tool of which nothing is known.
    pub(crate) const UNKNOWN: Self = Self { writes: true, destroys: true, reaches_out: true };

    /// Of the protocol's requests for resources and prompts: they read, from wherever the server likes.
    pub(crate) const OF_REQUESTS: Self = Self { writes: false, destroys: false, reaches_out: true };

    /// What a tool's annotations say. Where they contradict each other the worse counts.
    pub(crate) fn of(annotations: Option<&Value>) -> Self {
        let hint = |name: &str| annotations.and_then(|hints| hints.get(name)).and_then(Value::as_bool);
        let destructive = hint("destructiveHint");
        let reads_only = hint("readOnlyHint") == Some(true) && destructive != Some(true);
        Self {
            writes: !reads_only,
            destroys: !reads_only && destructive != Some(false),
            reaches_out: hint("openWorldHint") != Some(false),
        }
    }

    /// The same for a tool of which a person says that it only reads.
    pub(crate) fn read_only(self) -> Self {
        Self { writes: false, destroys: false, ..self }
    }

    /// The same where the server is not believed that the tool only reads.
    pub(crate) fn not_read_only(self) -> Self {
        // What said that it reads has not said what it would destroy.
        Self { writes: true, destroys: self.destroys || !self.writes, ..self }
    }
}

#[cfg(test)]
mod tests;
