//! Converts HTTP failures to errors that a script can catch.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, StatusCode, header};
use rmcp::model::ErrorData;

use crate::durations;
use crate::mcp::challenge::find_challenge;
use crate::mcp::errors::{
    DID_NOT_RUN, OVERSIZED_ANSWER, UNREADABLE_ANSWER, encode, sign_in, sign_in_for, unavailable,
};
use crate::tools::{ToolError, ToolErrorCode};

/// Maximum pause that is taken from `Retry-After`. A longer one is reduced to this.
pub(crate) const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// Maximum bytes of missing scopes that an error names.
const MAX_SCOPE_BYTES: usize = 500;

/// The errors of a proof (RFC 9449, sections 7.1 and 9).
const PROOF_ERRORS: [&str; 2] = ["invalid_dpop_proof", "use_dpop_nonce"];

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum RequestFailure {
    /// The server could not be reached, or refused the request.
    Failed(ToolError),
    /// The server's own JSON-RPC error, sent with an HTTP error status.
    Refused(ErrorData),
    /// A 4xx without a JSON-RPC error: the server does not support streamable HTTP.
    UnsupportedTransport(ToolError),
    /// The session is over; the call was not executed.
    SessionGone,
    /// An answer that cannot be parsed.
    Unreadable(String),
    /// An answer that is too large.
    Oversized(String),
}

impl RequestFailure {
    /// Encodes the failure as the answer to a request.
    pub(crate) fn into_error_data(self, server: &str) -> ErrorData {
        match self {
            Self::Failed(error) | Self::UnsupportedTransport(error) => encode(&error),
            Self::SessionGone => encode(&session_gone(server)),
            Self::Refused(error) => error,
            Self::Unreadable(problem) => ErrorData::new(UNREADABLE_ANSWER, problem, None),
            Self::Oversized(problem) => ErrorData::new(OVERSIZED_ANSWER, problem, None),
        }
    }
}

impl From<ToolError> for RequestFailure {
    fn from(error: ToolError) -> Self {
        Self::Failed(error)
    }
}

fn session_gone(server: &str) -> ToolError {
    unavailable(format!("server `{server}` has ended the session{DID_NOT_RUN}"))
}

/// The error for an HTTP status other than success.
pub(crate) fn of_status(
    server: &str,
    status: StatusCode,
    headers: &HeaderMap,
    has_header: bool,
) -> ToolError {
    let (code, message) = match status {
        StatusCode::UNAUTHORIZED if has_header => (
            ToolErrorCode::UpstreamUnavailable,
            format!("server `{server}` does not accept the configured `Authorization` header ({status})"),
        ),
        StatusCode::UNAUTHORIZED => return sign_in(server, &format!(" ({status})")),
        StatusCode::FORBIDDEN if asks_for_scope(headers) => {
            let scopes = scope_argument(headers);
            let problem = format!(
                "server `{server}` requires more scopes than were granted; run `cx auth login {server}{scopes}`"
            );
            return sign_in_for(server, &scopes, problem);
        }
        StatusCode::FORBIDDEN => {
            (ToolErrorCode::UpstreamUnavailable, format!("server `{server}` refuses this client ({status})"))
        }
        StatusCode::TOO_MANY_REQUESTS => (
            ToolErrorCode::RateLimited,
            format!("server `{server}` has received too many requests ({status})"),
        ),
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::GONE => (
            ToolErrorCode::UpstreamUnavailable,
            format!("server `{server}` has no MCP endpoint at its address ({status}); is its `url` right?"),
        ),
        StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT => (
            ToolErrorCode::UpstreamUnavailable,
            format!("server `{server}` did not take the request ({status})"),
        ),
        status if status.is_server_error() => {
            (ToolErrorCode::UpstreamUnavailable, format!("server `{server}` has failed ({status})"))
        }
        status => (
            ToolErrorCode::UpstreamProtocol,
            format!("server `{server}` answered with the status {status}, which is not the protocol"),
        ),
    };
    let mut error = ToolError::new(code, message);
    if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        error.retry_after = retry_after(headers, SystemTime::now());
    }
    error
}

/// The error with which a server refuses the proof that came with a token, and not the token.
pub(crate) fn proof_error(headers: &HeaderMap) -> Option<&'static str> {
    find_challenge(headers, |challenge| {
        let error = challenge.parameter("error").filter(|_| challenge.scheme.eq_ignore_ascii_case("DPoP"))?;
        PROOF_ERRORS.into_iter().find(|known| *known == error)
    })
}

/// The failure of a request whose proof was refused.
pub(crate) fn refused_proof(server: &str, error: &str) -> ToolError {
    unavailable(format!(
        "server `{server}` does not accept the proof that its token is this client's (401, `{error}`); is the clock of \
         this machine right?"
    ))
}

/// Whether the token lacks a scope (RFC 6750, section 3.1).
pub(crate) fn asks_for_scope(headers: &HeaderMap) -> bool {
    missing_scope(headers).is_some()
}

/// The scope that a token lacks, which is empty if the server does not name it.
fn missing_scope(headers: &HeaderMap) -> Option<String> {
    find_challenge(headers, |challenge| {
        let lacks_scope = challenge.parameter("error") == Some("insufficient_scope");
        lacks_scope.then(|| challenge.parameter("scope").unwrap_or_default().to_owned())
    })
}

/// The argument that asks for the missing scope. The server chose its text, and users and agents paste
/// the command into a shell: a scope with any other character is left out.
fn scope_argument(headers: &HeaderMap) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || ":/._-@+".contains(character);
    let scope = missing_scope(headers).unwrap_or_default();
    let scopes: Vec<&str> = scope.split(' ').filter(|scope| !scope.is_empty()).collect();
    let is_shown = scope.len() <= MAX_SCOPE_BYTES
        && scopes.iter().all(|scope| scope.chars().all(is_plain) && !scope.starts_with('-'));
    if !is_shown {
        return " --scope SCOPE".to_owned();
    }
    scopes.iter().map(|scope| format!(" --scope {scope}")).collect()
}

/// The pause that `Retry-After` asks for, in seconds or as a date, clamped to between zero and a
/// minute.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    durations::retry_after(headers.get(header::RETRY_AFTER)?.to_str().ok()?, now, MAX_RETRY_AFTER)
}

#[cfg(test)]
mod tests;
