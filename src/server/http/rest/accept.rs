//! Reads the headers of a request: the form of its answer, and the idempotency key.

use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, HeaderName};

use crate::net::media_type::{JSON, media_type};

/// The header that lets a client safely send a run again.
pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Maximum characters of an idempotency key. A UUID has 36.
pub(super) const MAX_KEY: usize = 255;

/// Whether the client wants events instead of plain JSON. A client that accepts both gets JSON, because that is one
/// answer with a status.
pub(super) fn wants_events(headers: &HeaderMap) -> bool {
    let mut kinds = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut events = false;
    let json = kinds.any(|list| {
        list.split(',').any(|kind| {
            let kind = media_type(kind.as_bytes());
            events |= kind == "text/event-stream";
            matches!(&*kind, JSON | "application/*" | "*/*")
        })
    });
    events && !json
}

/// The idempotency key, if there is one.
///
/// # Errors
///
/// A description of what is wrong with it.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<&str>, String> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let key = value.to_str().ok().filter(|key| !key.is_empty() && key.len() <= MAX_KEY);
    match key {
        Some(key) if values.next().is_none() => Ok(Some(key)),
        _ => Err(format!("`Idempotency-Key`: expected one value of 1 to {MAX_KEY} ASCII characters")),
    }
}
