//! Reads request bodies, with bounds for each and for all together.
//!
//! tower-http's limit counts each body separately and stops reading at the limit. Here all bodies that are being read
//! share a budget, and the rest of a body that is too long is read and discarded, because its client would otherwise
//! not see the answer.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use futures::StreamExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::responses::{plain, try_again};
use crate::lines::{MAX_LINE, MAX_SKIPPED_LINE};
use crate::net::media_type::{JSON, media_type};

/// Maximum bytes of request bodies that are being read, or whose runs wait for admission, of all connections together.
const MAX_BODY_BYTES: usize = 256 << 20;

/// Maximum bytes of one tenant's of them: its runs that wait for admission leave the other half to others.
const MAX_TENANT_BYTES: usize = MAX_BODY_BYTES / 2;

/// Bytes of each body that do not count towards that bound, so that small requests are still read
/// while large ones use it up. This is 32 MiB for all connections together.
const UNCOUNTED_BODY_BYTES: usize = 64 << 10;

/// Maximum time for reading a request's body.
const MAX_TIME: Duration = Duration::from_secs(30);

/// Reads the bodies of all requests.
pub(crate) struct BodyReader {
    /// The number of bytes that may still be read.
    budget: Arc<Semaphore>,
}

/// A request's body, with the permits that count its bytes: among all, and among those of its tenant. They must be held
/// as long as the bytes are.
pub(crate) struct RequestBody {
    pub(crate) bytes: Bytes,
    pub(crate) permits: Vec<OwnedSemaphorePermit>,
}

impl BodyReader {
    pub(crate) fn new() -> Self {
        Self { budget: Arc::new(Semaphore::new(MAX_BODY_BYTES)) }
    }

    /// The bytes that the bodies of one of several tenants may have.
    pub(crate) fn share() -> Arc<Semaphore> {
        Arc::new(Semaphore::new(MAX_TENANT_BYTES))
    }

    /// Reads a body of a tenant that has this share, or of a client of a server without tenants.
    ///
    /// # Errors
    ///
    /// The HTTP answer, if the body is too long, comes too slowly, is incomplete or compressed, or if too many bytes of
    /// other bodies are being read.
    pub(crate) async fn read(
        &self,
        headers: &HeaderMap,
        body: Body,
        share: Option<&Arc<Semaphore>>,
    ) -> Result<RequestBody, Response> {
        match timeout(MAX_TIME, self.read_all(headers, body, share)).await {
            Ok(read) => read,
            Err(_late) => Err(plain(StatusCode::REQUEST_TIMEOUT, "the request's body did not come in time")),
        }
    }

    async fn read_all(
        &self,
        headers: &HeaderMap,
        body: Body,
        share: Option<&Arc<Semaphore>>,
    ) -> Result<RequestBody, Response> {
        let announced =
            headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
        let mut body = body.into_data_stream();
        let (mut bytes, mut held) = (Vec::new(), Vec::<OwnedSemaphorePermit>::new());
        let mut is_too_long = announced.is_some_and(|length| length > MAX_LINE);
        if expects_continue(headers) {
            // Its client waits for the answer before it sends the body.
            if let Some(refused) = refusal(headers, is_too_long) {
                return Err(refused);
            }
        }
        let mut skipped = 0;
        while let Some(piece) = body.next().await {
            let Ok(piece) = piece else {
                return Err(plain(StatusCode::BAD_REQUEST, "the request's body cannot be read"));
            };
            is_too_long |= bytes.len() + piece.len() > MAX_LINE;
            if is_too_long {
                // The rest is read and discarded: a client that writes its whole request before it reads must see the
                // error.
                bytes = Vec::new();
                held = Vec::new();
                skipped += piece.len();
                if skipped > MAX_SKIPPED_LINE {
                    break;
                }
                continue;
            }
            let counted = |length: usize| length.saturating_sub(UNCOUNTED_BODY_BYTES);
            let count = counted(bytes.len() + piece.len()) - counted(bytes.len());
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            // In the same order each time, because only permits of one semaphore can be merged.
            for (position, budget) in [Some(&self.budget), share].into_iter().flatten().enumerate() {
                let Ok(more) = Arc::clone(budget).try_acquire_many_owned(count) else {
                    return Err(try_again("too many large requests are being read, or wait for their runs"));
                };
                match held.get_mut(position) {
                    Some(held) => held.merge(more),
                    None => held.push(more),
                }
            }
            bytes.extend_from_slice(&piece);
        }
        // After it was read: a client that writes its whole request first sees the answer.
        if let Some(refused) = refusal(headers, is_too_long) {
            return Err(refused);
        }
        Ok(RequestBody { bytes: bytes.into(), permits: held })
    }
}

/// The answer to a body that is too long or compressed. `None` for others.
fn refusal(headers: &HeaderMap, is_too_long: bool) -> Option<Response> {
    if is_too_long {
        let problem = format!("the message is longer than {} MB, the most that is read", MAX_LINE >> 20);
        return Some(plain(StatusCode::PAYLOAD_TOO_LARGE, &problem));
    }
    if is_encoded(headers) {
        let problem = "a compressed body is not read: send it without `Content-Encoding`";
        let mut response = plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, problem);
        response.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        return Some(response);
    }
    None
}

fn expects_continue(headers: &HeaderMap) -> bool {
    headers.get(EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// Whether the body is declared as JSON. A page of another origin cannot send that without a preflight request.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| media_type(kind.as_bytes()) == JSON)
}

/// Whether the body is declared as compressed. cx does not decompress bodies.
fn is_encoded(headers: &HeaderMap) -> bool {
    let is_none = |value: &HeaderValue| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"identity");
    headers.get_all(CONTENT_ENCODING).iter().any(|value| !is_none(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threat 657. The runs of one tenant can wait for admission with large inputs, again and again.
    #[tokio::test]
    async fn v_657_a_tenant_leaves_bytes_of_bodies_for_others() {
        let reader = BodyReader::new();
        let (one, other) = (BodyReader::share(), BodyReader::share());
        let mut waiting = Vec::new();
        for _ in 0..4 {
            waiting.push(read(&reader, &one).await.unwrap());
        }
        assert_eq!(read(&reader, &one).await.unwrap_err(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(read(&reader, &other).await.is_ok());
        drop(waiting);
        assert!(read(&reader, &one).await.is_ok());
    }

    /// Reads a fourth of what a tenant may have, and returns the permits for it.
    async fn read(
        reader: &BodyReader,
        share: &Arc<Semaphore>,
    ) -> Result<Vec<OwnedSemaphorePermit>, StatusCode> {
        let body = Body::from(vec![b' '; MAX_TENANT_BYTES / 4]);
        let read = reader.read(&HeaderMap::new(), body, Some(share)).await;
        read.map(|read| read.permits).map_err(|response| response.status())
    }
}
