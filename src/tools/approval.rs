//! Approval of calls: the request, the answer, and the reasons to ask.

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Map, Value};

use crate::json::numbers;
use crate::text::{code_lines, is_hidden, one_line};

/// A request to approve one call. An approval covers exactly this call: these arguments are sent,
/// and nothing is read or resolved again after the answer.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The server's name as configured.
    pub server: String,
    /// The tool's name as its server lists it, or the method of a request for resources or prompts.
    pub tool: String,
    /// The server's description of the tool. Untrusted text.
    pub description: Option<String>,
    /// The server's hints (`readOnlyHint` and the like). Untrusted.
    pub annotations: Option<Value>,
    /// The arguments as they will be sent. Untrusted, because a script made them. Integers beyond
    /// 64 bits are the nearest `f64` here; [`arguments_text`](Self::arguments_text) has their digits.
    pub arguments: Map<String, Value>,
    /// The original digits of the numbers that lost precision in the tree, in their order.
    pub(crate) exact_numbers: Vec<Box<str>>,
    /// Why approval is needed.
    pub reason: AskReason,
    /// The script's name, as in stack traces.
    pub script: String,
    /// The tenant whose client asked for the run, in a server with tenants.
    pub tenant: Option<String>,
    /// Time limit for the answer. After it the future is dropped and the call is refused.
    pub time: Duration,
}

impl ApprovalRequest {
    /// `server.tool` on one line, with every invisible character escaped.
    pub fn call_text(&self) -> String {
        one_line(&format!("{}.{}", self.server, self.tool))
    }

    /// The complete arguments as indented JSON, for display. Invisible characters (control,
    /// zero-width, bidirectional and tag characters) are written as JSON escapes, so that nothing
    /// can be hidden and the text is still the same JSON.
    pub fn arguments_text(&self) -> String {
        // A map of JSON values can always be serialized.
        let text = serde_json::to_string_pretty(&self.arguments).unwrap_or_default();
        let text = numbers::with_exact_numbers(text, &self.exact_numbers);
        let mut shown = String::with_capacity(text.len());
        for character in text.chars() {
            // Line breaks of the indentation; those inside strings are already escaped.
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

    /// The code that a call saves, line by line, with every hidden character escaped, because arguments show a text of
    /// many lines as one line. `None` for calls that save no code.
    pub fn code_lines(&self) -> Option<Vec<String>> {
        if self.reason != AskReason::ScriptChange {
            return None;
        }
        let code = self.arguments.get("code")?.as_str()?;
        Some(code_lines(code).collect())
    }
}

impl fmt::Debug for ApprovalRequest {
    /// Omits the arguments: they may contain secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ApprovalRequest")
            .field("server", &self.server)
            .field("tool", &self.tool)
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}

/// The user's answer to an [`ApprovalRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Approval {
    /// Permits this one call.
    Approve,
    /// Refuses the call.
    Deny {
        /// The user's reason, which is passed to the script. At most [`Approval::MAX_REASON`] bytes
        /// are kept.
        reason: Option<String>,
    },
    /// Approval could not be requested: there is no terminal, or the client is gone or does not
    /// support elicitation.
    Unavailable,
}

impl Approval {
    /// Maximum bytes of a reason that are passed on.
    pub const MAX_REASON: usize = 1_000;
}

/// Requests an approval. Polled on the executor's own runtime and not on the script's thread, so
/// that a script cannot delay it. Dropped when the run ends or the time limit for the answer is
/// over.
pub(crate) type Approver = Arc<dyn Fn(ApprovalRequest) -> BoxFuture<'static, Approval> + Send + Sync>;

/// Why a call needs approval.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AskReason {
    /// A pattern of an `ask` list matches the tool.
    Pattern(String),
    /// `ask` contains a keyword for an annotation that applies to the tool.
    Annotation(AskAnnotation),
    /// The call changes the saved scripts ([`ToolKind::ScriptChange`](crate::ToolKind::ScriptChange)),
    /// whose code is shown.
    ScriptChange,
    /// The arguments have a private address, or too many addresses to examine
    /// ([`PrivateAddresses::Ask`](crate::PrivateAddresses::Ask)). The text says which.
    PrivateAddress(String),
}

impl AskReason {
    /// The rule that requires the approval, for records: as it is written in a configuration, without any part of the
    /// call's arguments.
    pub(crate) fn rule(&self) -> String {
        match self {
            Self::Pattern(pattern) => format!("ask: {pattern}"),
            Self::Annotation(annotation) => format!("ask: {annotation}"),
            Self::ScriptChange => "built in: changes of saved scripts".to_owned(),
            Self::PrivateAddress(_) => "privateAddresses: ask".to_owned(),
        }
    }

    /// The reason for records that must not contain any part of the call's arguments.
    pub(crate) fn without_arguments(&self) -> String {
        match self {
            Self::PrivateAddress(_) => Self::PrivateAddress("a private address".to_owned()).to_string(),
            Self::Pattern(_) | Self::Annotation(_) | Self::ScriptChange => self.to_string(),
        }
    }
}

impl fmt::Display for AskReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pattern(pattern) => write!(formatter, "`ask` names it: `{pattern}`"),
            Self::Annotation(annotation) => {
                write!(formatter, "{}, and `ask` has `{annotation}`", annotation.effect())
            }
            Self::PrivateAddress(found) => {
                write!(formatter, "its arguments have {found}, and `privateAddresses` is `ask`")
            }
            Self::ScriptChange => formatter.write_str("it saves code that later scripts and agents can run"),
        }
    }
}

/// The keywords of an `ask` list that refer to a tool's annotations. The defaults are those of the
/// MCP specification: a tool without annotations writes, is destructive and is open-world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AskAnnotation {
    /// `destructive`: `destructiveHint` is true, or absent for a tool that is not read-only.
    Destructive,
    /// `write`: the tool is not read-only.
    Write,
    /// `open-world`: `openWorldHint` is true or absent.
    OpenWorld,
}

impl AskAnnotation {
    /// Every keyword.
    pub const ALL: [Self; 3] = [Self::Destructive, Self::Write, Self::OpenWorld];

    /// The keyword as it appears in lists.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Destructive => "destructive",
            Self::Write => "write",
            Self::OpenWorld => "open-world",
        }
    }

    /// The annotation that a keyword refers to.
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

/// The effects that a call may have. Unknown effects count as the worst case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Effects {
    pub(crate) writes: bool,
    pub(crate) destroys: bool,
    pub(crate) reaches_out: bool,
}

impl Effects {
    /// The effects of a tool without known annotations.
    pub(crate) const UNKNOWN: Self = Self { writes: true, destroys: true, reaches_out: true };

    /// The effects of requests for resources and prompts: they only read, but from any source that
    /// the server chooses.
    pub(crate) const OF_REQUESTS: Self = Self { writes: false, destroys: false, reaches_out: true };

    /// The effects by a tool's annotations. If annotations contradict each other, the worse one
    /// counts.
    pub(crate) fn from_annotations(annotations: Option<&Value>) -> Self {
        let hint = |name: &str| annotations.and_then(|hints| hints.get(name)).and_then(Value::as_bool);
        let destructive = hint("destructiveHint");
        let reads_only = hint("readOnlyHint") == Some(true) && destructive != Some(true);
        Self {
            writes: !reads_only,
            destroys: !reads_only && destructive != Some(false),
            reaches_out: hint("openWorldHint") != Some(false),
        }
    }

    /// The union of both effects.
    pub(crate) fn worst(self, other: Self) -> Self {
        Self {
            writes: self.writes || other.writes,
            destroys: self.destroys || other.destroys,
            reaches_out: self.reaches_out || other.reaches_out,
        }
    }

    /// The effects of a call that has none itself: the calls that it leads to are judged separately.
    pub(crate) const NONE: Self = Self { writes: false, destroys: false, reaches_out: false };

    /// The same effects for a tool that the user has declared read-only.
    pub(crate) fn read_only(self) -> Self {
        Self { writes: false, destroys: false, ..self }
    }

    /// The same effects if the server's claim that the tool is read-only is ignored.
    pub(crate) fn not_read_only(self) -> Self {
        // A tool that was annotated as read-only made no claim about what it destroys as a writing
        // tool.
        Self { writes: true, destroys: self.destroys || !self.writes, ..self }
    }
}

#[cfg(test)]
mod tests;
