//! Errors as problem details (RFC 9457).

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Map, Value, json};

use super::responses::PlainText;
use crate::run::result::ErrorCode;
use crate::server::answer::INVALID_ARGUMENTS;
use crate::tools::ToolErrorCode;

/// Path of the description of this interface.
pub(super) const OPENAPI: &str = "/openapi.json";

/// The content type of problem details.
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");

/// The answer to a malformed request, or one for a resource that does not exist.
pub(super) fn problem(status: StatusCode, code: &str, detail: &str) -> Response {
    let mut fields = Map::new();
    fields.insert("code".to_owned(), code.into());
    response(status, detail, fields)
}

/// The answer to a request for a resource that does not exist.
pub(super) fn not_found(detail: &str) -> Response {
    problem(StatusCode::NOT_FOUND, ToolErrorCode::RunNotFound.as_str(), detail)
}

/// The answer to a request for something that is temporarily unavailable.
pub(super) fn unavailable(detail: &str) -> Response {
    problem(StatusCode::SERVICE_UNAVAILABLE, ToolErrorCode::StateUnavailable.as_str(), detail)
}

/// The answer to a run that did not begin: its `error`, as answers to tool calls have it.
pub(super) fn refused(error: &Value) -> Response {
    let (status, body) = refusal(error);
    let mut response = (status, [(CONTENT_TYPE, PROBLEM)], body.to_string()).into_response();
    // The number may have a fraction, and is at most some hours.
    let retry = error["retryAfterMs"].as_f64().map(|time| (time / 1000.0).ceil().max(1.0));
    if let Some(Ok(value)) = retry.map(|seconds| HeaderValue::from_str(&seconds.to_string())) {
        response.headers_mut().insert(RETRY_AFTER, value);
    }
    response
}

/// The status and the object of such an answer, for a stream whose HTTP status was sent before.
pub(super) fn refusal(error: &Value) -> (StatusCode, Value) {
    let text = |name: &str| error[name].as_str().unwrap_or_default();
    let mut fields = Map::new();
    for name in ["code", "hint", "retryAfterMs"] {
        if let Some(value) = error.get(name) {
            fields.insert(name.to_owned(), value.clone());
        }
    }
    let status = status_of(text("code"));
    (status, details(status, text("message"), fields))
}

/// The object for a run whose task has failed.
pub(super) fn failed_run() -> Value {
    let detail = "the run has failed; see the server's log";
    details(StatusCode::INTERNAL_SERVER_ERROR, detail, Map::new())
}

/// Whether a path is one of REST, whose errors are problem details.
pub(super) fn is_rest(path: &str) -> bool {
    path == OPENAPI || path == "/v1" || path.starts_with("/v1/")
}

/// An error of the routes, the middleware or the body's reader, as problem details. Other answers stay as
/// they are.
pub(super) fn with_problem(mut answer: Response) -> Response {
    let status = answer.status();
    let is_error = status.is_client_error() || status.is_server_error();
    if !is_error || answer.headers().get(CONTENT_TYPE) == Some(&PROBLEM) {
        return answer;
    }
    let text = answer.extensions_mut().remove::<PlainText>().map(|PlainText(text)| text);
    let detail = text.unwrap_or_else(|| match status {
        StatusCode::NOT_FOUND => "there is nothing at this path: /openapi.json has all paths".to_owned(),
        StatusCode::METHOD_NOT_ALLOWED => "this path does not take this method: see `Allow`".to_owned(),
        other => other.canonical_reason().unwrap_or("the request failed").to_lowercase(),
    });
    let replaced = response(status, &detail, Map::new());
    let (mut parts, _) = answer.into_parts();
    let (new, body) = replaced.into_parts();
    parts.headers.remove(axum::http::header::CONTENT_LENGTH);
    parts.headers.extend(new.headers);
    Response::from_parts(parts, body)
}

/// The status of a run that did not begin.
fn status_of(code: &str) -> StatusCode {
    if code == INVALID_ARGUMENTS {
        StatusCode::BAD_REQUEST
    } else if code == ToolErrorCode::RateLimited.as_str() {
        StatusCode::TOO_MANY_REQUESTS
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}

/// Whether a run with this error did not begin because of the server's current state, so that it may be sent again.
pub(super) fn is_for_now(code: &str) -> bool {
    [ErrorCode::QueueFull, ErrorCode::EngineUnavailable].iter().any(|known| known.as_str() == code)
}

fn response(status: StatusCode, detail: &str, fields: Map<String, Value>) -> Response {
    (status, [(CONTENT_TYPE, PROBLEM)], details(status, detail, fields).to_string()).into_response()
}

fn details(status: StatusCode, detail: &str, fields: Map<String, Value>) -> Value {
    let mut body = json!({
        // The status gives the kind of problem, and `code` the exact one.
        "type": "about:blank",
        "title": status.canonical_reason().unwrap_or("Error"),
        "status": status.as_u16(),
        "detail": detail,
    });
    if let Value::Object(body) = &mut body {
        body.extend(fields);
    }
    body
}
