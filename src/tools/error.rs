//! The error of a failed tool call, which a script can catch.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::durations::milliseconds;
use crate::json::Json;
use crate::text::preview_bytes;

/// Maximum bytes of the reason why arguments cannot be read.
const MAX_UNREADABLE: usize = 1_000;

/// Why a tool call failed: a closed set of codes that scripts can branch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolErrorCode {
    /// There is no such server or tool.
    ToolNotFound,
    /// The policy does not permit the run to call this tool.
    ToolDenied,
    /// The arguments are not a JSON object, are too large, or do not match the tool's schema.
    InvalidArguments,
    /// The tool reported a failure.
    ToolError,
    /// The tool did not answer within its time limit. The call may have taken effect.
    ToolTimeout,
    /// The call exceeds the server's rate limit.
    RateLimited,
    /// The server's circuit breaker is open: it failed too often, and calls are refused for a
    /// while.
    CircuitOpen,
    /// Too many calls are waiting.
    QueueFull,
    /// The server cannot be reached or started, or it died during the call.
    UpstreamUnavailable,
    /// The server's response violates the protocol.
    UpstreamProtocol,
    /// The result is larger than a script may receive.
    ResultTooLarge,
    /// The run has used up its call limit.
    MaxToolCallsExceeded,
    /// The requesting client has no run record with that id.
    RunNotFound,
    /// The state store has no space left for what the script wants to store.
    StateFull,
    /// The state that scripts keep between runs cannot be used, or state is not enabled.
    StateUnavailable,
    /// There is no language model for this run, or it cannot be reached.
    ModelUnavailable,
    /// The model or the system prompt is not on the operator's list, an observer refused the call,
    /// or the content filter refused the answer.
    ModelDenied,
    /// The run has used up its calls of language models, or their tokens.
    ModelBudgetExceeded,
    /// The provider of a language model failed.
    ModelError,
    /// A language model did not answer within its time limit.
    ModelTimeout,
    /// A language model's answer does not fit the schema, twice.
    ModelAnswerInvalid,
    /// The host or the address of a request is not granted to the run.
    NetDenied,
    /// A host cannot be reached, or its response cannot be read.
    NetFailed,
    /// A host did not respond within its time limit.
    NetTimeout,
    /// The run has ended, or the script has ended the call.
    Cancelled,
}

impl ToolErrorCode {
    /// Every code.
    pub const ALL: &[Self] = &[
        Self::ToolNotFound,
        Self::ToolDenied,
        Self::InvalidArguments,
        Self::ToolError,
        Self::ToolTimeout,
        Self::RateLimited,
        Self::CircuitOpen,
        Self::QueueFull,
        Self::UpstreamUnavailable,
        Self::UpstreamProtocol,
        Self::ResultTooLarge,
        Self::MaxToolCallsExceeded,
        Self::RunNotFound,
        Self::StateFull,
        Self::StateUnavailable,
        Self::ModelUnavailable,
        Self::ModelDenied,
        Self::ModelBudgetExceeded,
        Self::ModelError,
        Self::ModelTimeout,
        Self::ModelAnswerInvalid,
        Self::NetDenied,
        Self::NetFailed,
        Self::NetTimeout,
        Self::Cancelled,
    ];

    /// Whether a dispatcher that fails with this code has certainly not sent the call, because the limits of the server
    /// refused it.
    pub(crate) const fn is_before_sending(self) -> bool {
        matches!(self, Self::RateLimited | Self::CircuitOpen | Self::QueueFull)
    }

    /// The code that [`as_str`](Self::as_str) names so.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == name)
    }

    /// The code as it appears in scripts and responses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ToolNotFound => "TOOL_NOT_FOUND",
            Self::ToolDenied => "TOOL_DENIED",
            Self::InvalidArguments => "INVALID_ARGUMENTS",
            Self::ToolError => "TOOL_ERROR",
            Self::ToolTimeout => "TOOL_TIMEOUT",
            Self::RateLimited => "RATE_LIMITED",
            Self::CircuitOpen => "CIRCUIT_OPEN",
            Self::QueueFull => "QUEUE_FULL",
            Self::UpstreamUnavailable => "UPSTREAM_UNAVAILABLE",
            Self::UpstreamProtocol => "UPSTREAM_PROTOCOL",
            Self::ResultTooLarge => "RESULT_TOO_LARGE",
            Self::MaxToolCallsExceeded => "MAX_TOOL_CALLS_EXCEEDED",
            Self::RunNotFound => "RUN_NOT_FOUND",
            Self::StateFull => "STATE_FULL",
            Self::StateUnavailable => "STATE_UNAVAILABLE",
            Self::ModelUnavailable => "MODEL_UNAVAILABLE",
            Self::ModelDenied => "MODEL_DENIED",
            Self::ModelBudgetExceeded => "MODEL_BUDGET_EXCEEDED",
            Self::ModelError => "MODEL_ERROR",
            Self::ModelTimeout => "MODEL_TIMEOUT",
            Self::ModelAnswerInvalid => "MODEL_ANSWER_INVALID",
            Self::NetDenied => "NET_DENIED",
            Self::NetFailed => "NET_FAILED",
            Self::NetTimeout => "NET_TIMEOUT",
            Self::Cancelled => "CANCELLED",
        }
    }
}

impl fmt::Display for ToolErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A failed tool call. Scripts catch it as `McpToolError`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{code}: {message}")]
#[non_exhaustive]
pub struct ToolError {
    /// The reason.
    pub code: ToolErrorCode,
    /// What went wrong and, if possible, what to do about it.
    pub message: String,
    /// The server that was called, if known.
    pub server: Option<String>,
    /// The tool that was called, if known.
    pub tool: Option<String>,
    /// The content blocks of a tool that reported a failure, as an array.
    pub content: Option<Json>,
    /// How long to wait before a retry can succeed.
    pub retry_after: Option<Duration>,
    /// Details of the failure of an MCP server beyond the message. Scripts do not see them.
    pub server_failure: Option<Box<ServerFailure>>,
    /// The code of the JSON-RPC error with which the server answered, if it did. Scripts do not see it.
    pub json_rpc_code: Option<i32>,
}

/// Why an MCP server cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerFailure {
    /// The kind of failure, for code that branches on it.
    pub kind: ServerFailureKind,
    /// The error's message without the stderr tail.
    pub problem: String,
    /// The last lines that the server's process wrote to its stderr, without control characters: at most
    /// 12 of 200 characters each. Empty if there is no process, or if it wrote nothing.
    pub stderr_tail: String,
}

/// The kind of a [`ServerFailure`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ServerFailureKind {
    /// The system does not start the server's program.
    NotStarted,
    /// The server did not answer the handshake within its time for connecting.
    ConnectTimeout,
    /// The user has to sign in.
    SignInRequired {
        /// The command that signs in, with the scopes to request.
        command: String,
    },
    /// Another failure.
    Other,
}

impl ToolError {
    /// An error with only a code and a message.
    pub fn new(code: ToolErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            server: None,
            tool: None,
            content: None,
            retry_after: None,
            server_failure: None,
            json_rpc_code: None,
        }
    }

    /// The error for arguments that a tool or a host function cannot accept.
    pub(crate) fn invalid_arguments(message: impl Into<String>) -> Self {
        Self::new(ToolErrorCode::InvalidArguments, message)
    }

    /// The error for arguments that cannot be read. Of the reason only the beginning is kept: an error of serde quotes
    /// what it did not expect, which can have the length of the arguments.
    pub(crate) fn unreadable(reason: &impl fmt::Display) -> Self {
        let reason = reason.to_string();
        Self::invalid_arguments(preview_bytes(&reason, MAX_UNREADABLE))
    }

    /// The error for a server that cannot be reached or used.
    pub(crate) fn of_server(kind: ServerFailureKind, problem: String, stderr_tail: &str) -> Self {
        let message = match stderr_tail {
            "" => problem.clone(),
            tail => format!("{problem}; the end of its stderr:\n{tail}"),
        };
        let failure = ServerFailure { kind, problem, stderr_tail: stderr_tail.to_owned() };
        Self {
            server_failure: Some(Box::new(failure)),
            ..Self::new(ToolErrorCode::UpstreamUnavailable, message)
        }
    }

    /// Sets the server and the tool, unless the error has them already.
    #[must_use]
    pub fn for_tool(mut self, server: &str, tool: &str) -> Self {
        self.server.get_or_insert_with(|| server.to_owned());
        self.tool.get_or_insert_with(|| tool.to_owned());
        self
    }

    /// The object from which the guest builds its `McpToolError`, as JSON text. It is also the
    /// `error` field of `call_tool`.
    pub(crate) fn to_guest_json(&self) -> String {
        let error = GuestError {
            code: self.code.as_str(),
            message: &self.message,
            server: self.server.as_deref(),
            tool: self.tool.as_deref(),
            content: self.content.as_ref(),
            retry_after_ms: self.retry_after.map(milliseconds),
        };
        // Strings and numbers can always be serialized.
        serde_json::to_string(&error).unwrap_or_else(|_| "{}".to_owned())
    }
}

/// The JSON form of a [`ToolError`] that the guest receives.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GuestError<'a> {
    code: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}
