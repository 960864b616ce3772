//! Errors of upstream servers as errors of a call. The transports report their own errors through
//! rmcp as JSON-RPC errors with reserved codes.

use std::time::Duration;

use rmcp::model::{ErrorCode, ErrorData};
use serde::Deserialize as _;
use serde_json::json;

use crate::durations::milliseconds;
use crate::text::start_bytes;
use crate::tools::{ServerFailureKind, ToolError, ToolErrorCode};

/// The error codes with which the transport reports its own errors through rmcp, which has no other
/// way to end one request. They are far from the codes of JSON-RPC. If a server uses one of them,
/// it is replaced.
pub(crate) const UNREADABLE_ANSWER: ErrorCode = ErrorCode(i32::MIN);
pub(crate) const OVERSIZED_ANSWER: ErrorCode = ErrorCode(i32::MIN + 1);

/// The error code with which an HTTP failure passes through rmcp. See [`UNREADABLE_ANSWER`].
const HTTP_FAILURE: ErrorCode = ErrorCode(i32::MIN + 2);

/// The end of the error of a request that was certainly not executed.
pub(crate) const DID_NOT_RUN: &str = "; the call did not run";

/// Maximum bytes of a server's own error message that are passed on.
pub(crate) const MESSAGE_BYTES: usize = 16 * 1024;

/// The error for a server that cannot be reached or used.
pub(crate) fn unavailable(message: String) -> ToolError {
    ToolError::new(ToolErrorCode::UpstreamUnavailable, message)
}

/// The error for a server that was closed by its owner.
pub(crate) fn closed(server: &str) -> ToolError {
    unavailable(format!("server `{server}` was closed"))
}

/// The error for a server that did not answer the handshake in time.
pub(crate) fn connect_timeout(problem: &str, stderr_tail: &str) -> ToolError {
    let problem = format!("{problem}; if it needs longer to start, set `connectTimeoutMs`");
    ToolError::of_server(ServerFailureKind::ConnectTimeout, problem, stderr_tail)
}

/// The error for a server that requires signing in. `after` ends the sentence.
pub(crate) fn sign_in(server: &str, after: &str) -> ToolError {
    sign_in_for(
        server,
        "",
        format!("server `{server}` requires signing in; run `cx auth login {server}`{after}"),
    )
}

/// The error for a server that requires signing in for the reason in `problem`, with the command. `scopes` are
/// arguments of the command.
pub(crate) fn sign_in_for(server: &str, scopes: &str, problem: String) -> ToolError {
    let command = format!("cx auth login {server}{scopes}");
    ToolError::of_server(ServerFailureKind::SignInRequired { command }, problem, "")
}

/// The error for an answer that violates the protocol.
pub(crate) fn unreadable(server: &str, problem: &str) -> ToolError {
    ToolError::new(
        ToolErrorCode::UpstreamProtocol,
        format!("server `{server}` sent an answer that cannot be read: {problem}"),
    )
}

/// The error for a file of a skill that differs from the server's list.
pub(crate) fn other_skill(server: &str, problem: &str) -> ToolError {
    ToolError::new(
        ToolErrorCode::UpstreamProtocol,
        format!("server `{server}` sent another text than its list of skills describes: {problem}"),
    )
}

/// Converts a JSON-RPC error that answers `tools/call`.
pub(crate) fn call_error(server: &str, tool: &str, error: &ErrorData) -> ToolError {
    if let Some(own) = own_error(server, error) {
        return own;
    }
    let message = message(error);
    let code = match error.code {
        ErrorCode::METHOD_NOT_FOUND => ToolErrorCode::ToolNotFound,
        // MCP uses the same code for an unknown tool as for invalid arguments; only the text
        // differs.
        ErrorCode::INVALID_PARAMS if says_unknown_tool(&message, tool) => ToolErrorCode::ToolNotFound,
        ErrorCode::INVALID_PARAMS => ToolErrorCode::InvalidArguments,
        _ => ToolErrorCode::ToolError,
    };
    let mut failed = ToolError::new(code, message);
    failed.json_rpc_code = Some(error.code.0);
    failed
}

/// Converts a JSON-RPC error that answers `tools/list`.
pub(crate) fn list_error(server: &str, error: &ErrorData) -> ToolError {
    own_error(server, error).unwrap_or_else(|| {
        ToolError::new(
            ToolErrorCode::UpstreamProtocol,
            format!("server `{server}` does not list its tools: {}", message(error)),
        )
    })
}

/// The transport's own error about an answer, if `error` represents one.
pub(crate) fn own_error(server: &str, error: &ErrorData) -> Option<ToolError> {
    match error.code {
        UNREADABLE_ANSWER => Some(unreadable(server, &error.message)),
        OVERSIZED_ANSWER => Some(ToolError::new(
            ToolErrorCode::ResultTooLarge,
            format!("server `{server}` sent an answer that is too large: {}", error.message),
        )),
        _ => tool_error(error),
    }
}

/// Whether a request with this error has failed on the way, which may be over soon.
pub(crate) const fn is_passing(code: ToolErrorCode) -> bool {
    matches!(code, ToolErrorCode::UpstreamUnavailable | ToolErrorCode::RateLimited)
}

/// The error of a call that its server has begun, from the one of a later request for it. The later request may be one
/// that was not taken; the call was.
pub(crate) fn begun(mut error: ToolError) -> ToolError {
    if is_passing(error.code) {
        error.code = ToolErrorCode::UpstreamUnavailable;
        // The pause is for those who call again, which would be a second call.
        error.retry_after = None;
        let length = error.message.strip_suffix(DID_NOT_RUN).map_or(error.message.len(), str::len);
        error.message.truncate(length);
        if !error.message.contains("took effect is unknown") {
            error.message.push_str("; whether the call took effect is unknown");
        }
    }
    error
}

/// Encodes a failure as the answer to a request. [`tool_error`] decodes it.
pub(crate) fn encode(error: &ToolError) -> ErrorData {
    let retry_after = error.retry_after.map(milliseconds);
    let data =
        json!({ "code": error.code.as_str(), "retryAfterMs": retry_after, "failure": &error.server_failure });
    ErrorData::new(HTTP_FAILURE, error.message.clone(), Some(data))
}

/// Decodes a failure that this transport reported as the answer to a request. `None` for other
/// errors.
pub(crate) fn tool_error(error: &ErrorData) -> Option<ToolError> {
    if error.code != HTTP_FAILURE {
        return None;
    }
    let data = error.data.as_ref()?;
    let code = ToolErrorCode::from_name(data["code"].as_str()?)?;
    let mut failure = ToolError::new(code, error.message.to_string());
    failure.retry_after = data["retryAfterMs"].as_u64().map(Duration::from_millis);
    failure.server_failure = Option::deserialize(&data["failure"]).ok().flatten();
    Some(failure)
}

/// Whether a server uses a code that is reserved for this client.
pub(crate) fn is_own_code(code: ErrorCode) -> bool {
    [HTTP_FAILURE, UNREADABLE_ANSWER, OVERSIZED_ANSWER].contains(&code)
}

/// Formats a server's error message and its data, truncated.
pub(crate) fn message(error: &ErrorData) -> String {
    let text = match &error.data {
        Some(data) if !data.is_null() => format!("{} ({data})", error.message),
        _ if error.message.trim().is_empty() => format!("error {} without a message", error.code.0),
        _ => error.message.to_string(),
    };
    shortened(&text, MESSAGE_BYTES)
}

/// Whether an invalid-parameters error is about the tool's name: it says so, or quotes the name
/// next to it. `file not found`, in contrast, is about an argument.
fn says_unknown_tool(message: &str, tool: &str) -> bool {
    let message = message.to_lowercase();
    let tool = tool.to_lowercase();
    let is_missing = ["unknown", "not found", "no such", "does not exist"];
    message.contains("unknown tool")
        || message.contains("no such tool")
        || (message.contains("tool")
            && message.contains(&tool)
            && is_missing.iter().any(|words| message.contains(words)))
}

pub(crate) fn shortened(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let start = start_bytes(text, max);
    format!("{start} [{} more bytes]", text.len() - start.len())
}

#[cfg(test)]
mod tests;
