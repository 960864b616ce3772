//! Requests of back ends to hosts that a person has granted.

use std::fmt;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::Deserialize;

use super::files::bytes;
use super::host_client::HostClient;
use super::run::BackendRun;
use crate::engine::host_calls::query::Query;
use crate::net::call::{FetchCall, FetchRequest, GuestBytes, RedirectMode};
use crate::tools::ToolError;

/// A request for [`BackendRun::fetch`].
#[derive(Clone)]
pub struct BackendRequest {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    timeout: Option<Duration>,
}

/// Without what may be secret: address, headers and body.
impl fmt::Debug for BackendRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("BackendRequest").field("method", &self.method).finish_non_exhaustive()
    }
}

impl BackendRequest {
    /// A request without headers and body, such as `GET https://example.com/a`.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        Self { method: method.into(), url: url.into(), headers: Vec::new(), body: None, timeout: None }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Sets the maximum time from the start of the request, with all redirects, to the head of the
    /// response. The host's own limits hold too.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// As the host reads it.
    fn numbered(self, id: u64) -> FetchRequest {
        let Self { method, url, headers, body, timeout } = self;
        FetchRequest {
            id,
            url,
            method,
            headers,
            body: body.map(|body| GuestBytes::from(&*body)),
            redirect: RedirectMode::Follow,
            timeout_ms: timeout.map(|timeout| timeout.as_secs_f64() * 1_000.0),
        }
    }
}

/// A response to [`BackendRun::fetch`], with all of its body.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackendResponse {
    /// The status, such as 200.
    pub status: u16,
    /// The usual words for the status; empty if there are none.
    pub status_text: String,
    /// The address that answered: the last one, after redirects.
    pub url: String,
    /// Whether there were redirects.
    pub is_redirected: bool,
    /// Names in lower case and values, in the order in which they came. Each character of a value is one byte.
    pub headers: Vec<(String, String)>,
    /// The body, decompressed.
    pub body: Vec<u8>,
}

/// The head of a response, with the beginning of its body.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Opened {
    status: u16,
    status_text: String,
    url: String,
    redirected: bool,
    headers: Vec<(String, String)>,
    body: GuestBytes,
    done: bool,
}

/// What follows of a body.
#[derive(Deserialize)]
struct Part {
    body: GuestBytes,
    done: bool,
}

impl BackendRun {
    /// Sends a request to a host that a person has granted ([`Grants::net`](crate::Grants::net)), follows at most 20
    /// redirects, and reads the whole body of at most [`Limits::result_bytes`](crate::Limits::result_bytes) bytes. Each
    /// request, also one after a redirect, counts as a call of a tool. [`query`](Self::query) reads a body part by
    /// part, and treats redirects in other ways.
    ///
    /// # Errors
    ///
    /// `NET_DENIED` for what is not granted, `NET_FAILED`, `NET_TIMEOUT`, `RESULT_TOO_LARGE` for a longer body,
    /// `INVALID_ARGUMENTS` for what no script may send.
    pub fn fetch(&self, request: BackendRequest) -> BoxFuture<'static, Result<BackendResponse, ToolError>> {
        let (client, id) = (self.client.clone(), self.next_fetch());
        let opened =
            client.read::<Opened>(&Query::Fetch { call: FetchCall::Open(Box::new(request.numbered(id))) });
        async move { read_whole(&client, id, opened.await?).await }.boxed()
    }
}

/// The response, when all of its body has come. The host closes a body of which no part is asked for any more, because
/// the future was dropped meanwhile.
async fn read_whole(client: &HostClient, id: u64, opened: Opened) -> Result<BackendResponse, ToolError> {
    let Opened { status, status_text, url, redirected, headers, body, mut done } = opened;
    let mut body = bytes(body)?;
    while !done {
        let part: Part = client.read_more(&Query::Fetch { call: FetchCall::Read(id) }).await?;
        body.extend_from_slice(&bytes(part.body)?);
        done = part.done;
    }
    Ok(BackendResponse { status, status_text, url, is_redirected: redirected, headers, body })
}
