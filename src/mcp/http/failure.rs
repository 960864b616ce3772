//! Converts HTTP failures to errors that a script can catch.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, StatusCode, header};
use rmcp::model::ErrorData;

use crate::mcp::errors::{OVERSIZED_ANSWER, UNREADABLE_ANSWER, encode, sign_in, unavailable};
use crate::tools::{ToolError, ToolErrorCode};

/// Maximum pause that is taken from `Retry-After`. A longer one is reduced to this.
pub(super) const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// Why a request has no answer.
#[derive(Debug)]
pub(super) enum Problem {
    /// The server could not be reached, or refused the request.
    Failed(ToolError),
    /// The server's own JSON-RPC error, sent with an HTTP error status.
    Refused(ErrorData),
    /// A 4xx without a JSON-RPC error: the server does not support streamable HTTP.
    NotSpoken(ToolError),
    /// The session is over; the call was not executed.
    SessionGone,
    /// An answer that cannot be parsed.
    Unreadable(String),
    /// An answer that is too large.
    Oversized(String),
}

impl Problem {
    /// Encodes the problem as the answer to a request. [`tool_error`](crate::mcp::errors::tool_error) decodes it.
    pub(super) fn into_error_data(self, server: &str) -> ErrorData {
        match self {
            Self::Failed(error) | Self::NotSpoken(error) => encode(&error),
            Self::SessionGone => encode(&session_gone(server)),
            Self::Refused(error) => error,
            Self::Unreadable(problem) => ErrorData::new(UNREADABLE_ANSWER, problem, None),
            Self::Oversized(problem) => ErrorData::new(OVERSIZED_ANSWER, problem, None),
        }
    }
}

impl From<ToolError> for Problem {
    fn from(error: ToolError) -> Self {
        Self::Failed(error)
    }
}

fn session_gone(server: &str) -> ToolError {
    unavailable(format!("server `{server}` has ended the session; the call did not run"))
}

/// The error for an HTTP status other than success.
pub(super) fn of_status(
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
        StatusCode::UNAUTHORIZED => {
            (ToolErrorCode::UpstreamUnavailable, format!("{} ({status})", sign_in(server)))
        }
        StatusCode::FORBIDDEN if asks_for_scope(headers) => (
            ToolErrorCode::UpstreamUnavailable,
            format!("server `{server}` wants more rights than were granted; run `cx auth login {server}`"),
        ),
        StatusCode::FORBIDDEN => {
            (ToolErrorCode::UpstreamUnavailable, format!("server `{server}` refuses this client ({status})"))
        }
        StatusCode::TOO_MANY_REQUESTS => {
            (ToolErrorCode::RateLimited, format!("server `{server}` has had too many requests ({status})"))
        }
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

fn asks_for_scope(headers: &HeaderMap) -> bool {
    let challenge = headers.get(header::WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
    challenge.is_some_and(|challenge| challenge.contains("insufficient_scope"))
}

/// The pause that `Retry-After` asks for, in seconds or as a date, clamped to between zero and a
/// minute.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    let seconds = match value.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() => seconds,
        // Infinite or NaN, for example because of too many digits.
        Ok(_) => return None,
        Err(_) => {
            let now = now.duration_since(UNIX_EPOCH).ok()?.as_secs_f64();
            http_date(value)? - now
        }
    };
    let most = MAX_RETRY_AFTER.as_secs_f64();
    Some(Duration::from_secs_f64(seconds.clamp(0.0, most)))
}

/// Parses a date such as `Sun, 06 Nov 1994 08:49:37 GMT` to seconds since 1970. The two older date
/// formats of HTTP are not used any more.
fn http_date(text: &str) -> Option<f64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, rest) = text.split_once(", ")?;
    let parts: Vec<&str> = rest.split_ascii_whitespace().collect();
    let [day, month, year, time, "GMT"] = parts[..] else { return None };
    let day: i64 = day.parse().ok().filter(|day| (1..=31).contains(day))?;
    let month = i64::try_from(MONTHS.iter().position(|name| *name == month)?).ok()? + 1;
    let year: i64 = year.parse().ok().filter(|year| (1970..10_000).contains(year))?;
    let mut clock =
        time.split(':').map(|part| part.parse::<i64>().ok().filter(|part| (0..=60).contains(part)));
    let (hours, minutes, seconds) = (clock.next()??, clock.next()??, clock.next()??);
    // Days of the civil calendar, with years that begin in March so that the leap day is the last.
    let shifted = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = 365 * shifted + shifted / 4 - shifted / 100 + shifted / 400 + day_of_year - 719_468;
    #[expect(clippy::cast_precision_loss, reason = "the year is below 10,000: far from 2^53 seconds")]
    let seconds = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) as f64;
    Some(seconds)
}

#[cfg(test)]
mod tests;
