//! HTTP answers that rmcp does not make: refusals and errors.

use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use rmcp::model::ErrorCode;
use serde_json::{Value, json};

use super::authentication::AccessRefusal;
use crate::lines::IdScan;

/// The content type of JSON.
pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// `Retry-After` in seconds for clients that are refused because there are too many.
const RETRY_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// The answer to a body that is not a message, with the error texts of the stdio transport.
pub(crate) fn not_understood(bytes: &[u8]) -> Response {
    let bytes = bytes.trim_ascii();
    let (code, problem) = if bytes.first() == Some(&b'[') {
        (
            ErrorCode::INVALID_REQUEST,
            "batches are not part of the protocol; send one message a request".to_owned(),
        )
    } else {
        match serde_json::from_slice::<serde::de::IgnoredAny>(bytes) {
            Err(error) => (ErrorCode::PARSE_ERROR, format!("the message cannot be read: {error}")),
            Ok(_) => (
                ErrorCode::INVALID_REQUEST,
                "expected one JSON-RPC message: a request, a notification or an answer".to_owned(),
            ),
        }
    };
    not_read(bytes, code, &problem)
}

/// The answer to a message that is not parsed further, with its id if it has one.
pub(crate) fn not_read(bytes: &[u8], code: ErrorCode, problem: &str) -> Response {
    let id = IdScan::of_line(bytes).and_then(|id| id.to_json());
    let id = id.map_or(Value::Null, |id| serde_json::from_str(id.get()).unwrap_or_default());
    let error = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code.0, "message": problem } });
    (StatusCode::BAD_REQUEST, [(CONTENT_TYPE, JSON)], error.to_string()).into_response()
}

/// The answer to a request that does not pass authentication.
pub(crate) fn refused(refusal: &AccessRefusal) -> Response {
    match refusal {
        AccessRefusal::Forbidden(why) => plain(StatusCode::FORBIDDEN, why),
        AccessRefusal::Unauthorized => {
            let mut response =
                plain(StatusCode::UNAUTHORIZED, "expected `Authorization: Bearer` with the token");
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            response
        }
    }
}

/// The answer to a request that may succeed later.
pub(crate) fn try_again(why: &str) -> Response {
    let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, why);
    response.headers_mut().insert(RETRY_AFTER, RETRY_SECONDS);
    response
}

/// The answer to a request whose handler has panicked.
pub(crate) fn handler_failed() -> Response {
    let problem = "the server failed to handle this request; others are not affected";
    plain(StatusCode::INTERNAL_SERVER_ERROR, problem)
}

/// An answer of one line of text.
pub(crate) fn plain(status: StatusCode, text: &str) -> Response {
    let mut response = (status, format!("{text}\n")).into_response();
    response.extensions_mut().insert(PlainText(text.to_owned()));
    response
}

/// The text of a [`plain`] answer, for code that renders it in another form.
#[derive(Clone)]
pub(super) struct PlainText(pub(super) String);
