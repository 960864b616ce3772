//! Reads the bodies of responses within bounds.

use std::time::Duration;

use http::header;
use reqwest::Response;
use rmcp::model::ErrorData;
use tokio::time::timeout;

use super::failure::RequestFailure;
use crate::lines::MAX_LINE;
use crate::mcp::errors::unavailable;
use crate::mcp::message::{IncomingMessage, read_error};
use crate::net::media_type::{JSON, media_type};
use crate::net::response::{cause, read_up_to};
use crate::text;

pub(crate) const EVENT_STREAM: &str = "text/event-stream";

/// Maximum bytes and time for the body of an HTTP error. It is read for a JSON-RPC error, which is
/// short.
const MAX_REFUSAL: usize = 64 * 1024;
const REFUSAL_TIME: Duration = Duration::from_secs(2);

/// Maximum characters of a content type in an error message.
const SHOWN_TYPE: usize = 64;

/// The content type of a response.
pub(crate) enum ContentType {
    Json,
    EventStream,
    /// Another type, as it is shown in errors.
    Other(String),
}

pub(crate) fn content_type(response: &Response) -> ContentType {
    let Some(value) = response.headers().get(header::CONTENT_TYPE) else {
        return ContentType::Other("missing".to_owned());
    };
    let name = media_type(value.as_bytes());
    match name.as_str() {
        JSON => ContentType::Json,
        EVENT_STREAM => ContentType::EventStream,
        _ => ContentType::Other(format!("`{}`", text::start(&name, SHOWN_TYPE))),
    }
}

/// Reads the whole body. The caller bounds the time.
pub(crate) async fn read(mut response: Response) -> Result<Vec<u8>, RequestFailure> {
    match read_up_to(&mut response, MAX_LINE).await {
        Ok(Some(body)) => Ok(body),
        Ok(None) => Err(RequestFailure::Oversized(format!(
            "more than {} MB in one message",
            MAX_LINE / (1024 * 1024)
        ))),
        Err(error) => {
            let cause = cause(&error);
            Err(RequestFailure::Failed(unavailable(format!(
                "the connection broke during the answer; whether the call took effect is unknown: {cause}"
            ))))
        }
    }
}

/// The JSON-RPC error in the body of an HTTP error, if it contains one and arrives in time.
pub(crate) async fn read_refusal(mut response: Response) -> Option<ErrorData> {
    if !matches!(content_type(&response), ContentType::Json) {
        return None;
    }
    let body = timeout(REFUSAL_TIME, read_up_to(&mut response, MAX_REFUSAL)).await.ok()?.ok()??;
    error_in(&body)
}

/// The JSON-RPC error in the body of an HTTP error, if there is one.
fn error_in(body: &[u8]) -> Option<ErrorData> {
    let message: IncomingMessage<'_> = serde_json::from_slice(body).ok()?;
    read_error(message.error?).ok()
}
