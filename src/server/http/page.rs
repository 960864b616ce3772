//! A page on which a user watches runs and answers approvals: its files, its requests, and their
//! authentication. The embedder provides its content ([`PageHandler`]).
//!
//! All content is untrusted: it comes from scripts, servers and clients. It is sent as JSON and becomes text nodes; the
//! page's content security policy forbids inline scripts, and text that becomes markup (trusted types). The drawing of
//! a run is a separate document in a frame without scripts or origin.

mod access;
mod client;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, Method, Request, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::access::Access;
pub use self::client::{PageClient, PageError};
use super::authentication::{AccessRefusal, Authentication};
use super::responses::{JSON, plain, refused};
use super::small_server::{self, Answer};
use super::token::HttpToken;
use crate::error::Error;

const DOCUMENT: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// The path of the page. All of its files and requests are below it.
const PAGE: &str = "/ui";

/// The content security policy of the page: it may run and use its own files, send requests to its own server, and show
/// its own frames. No text can become markup or code.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
     trusted-types 'none'",
);

/// The policy of the drawing of a run: it may only have its own style.
const FRAME_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'self'; sandbox",
);

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Maximum bytes of a request's body, which is an answer to an approval with a reason.
const MAX_BODY: usize = 8 << 10;

/// How long a request's body may take.
const MAX_BODY_TIME: Duration = Duration::from_secs(5);

/// Maximum bytes of the name of a run or of an approval.
const MAX_NAME: usize = 64;

/// A request of the page to its [`PageHandler`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PageRequest {
    /// Everything that the page shows, as JSON.
    State,
    /// The metrics of this process in Prometheus' text format. Requested by other commands of the user.
    Metrics,
    /// The approvals that wait in this process, as JSON. Requested by other commands of the user.
    Approvals,
    /// The drawing of a run, as a whole HTML document without scripts.
    Run {
        /// The run's id, as the page received it. Letters, digits and `-` only.
        id: String,
    },
    /// The user's answer to an approval.
    Answer {
        /// The approval's id, as the page received it. Letters, digits and `-` only.
        id: String,
        /// Whether the call may be made.
        approve: bool,
        /// Why not, for the script's author.
        reason: Option<String>,
    },
}

/// The answer to a [`PageRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PageAnswer {
    /// A JSON text.
    Json(String),
    /// A text.
    Text(String),
    /// An HTML document, which is shown without scripts and without any external content.
    Html(String),
    /// The run or approval does not exist, or no longer: one line of text that says so.
    NotFound(String),
}

/// Answers the requests of a [`Page`].
pub type PageHandler = Arc<dyn Fn(PageRequest) -> BoxFuture<'static, PageAnswer> + Send + Sync>;

/// A page at `/ui` on which a user watches runs and answers approvals. Cheap to clone; all clones are the
/// same page.
///
/// A browser starts a session with a one-time token ([`one_time_token`](Self::one_time_token)), or with the token of
/// [`HttpOptions::token`](crate::server::HttpOptions::token). Without either only the empty page is served, on a
/// loopback address too: other users of the machine can reach that address.
#[derive(Clone)]
pub struct Page {
    inner: Arc<Inner>,
}

struct Inner {
    handler: PageHandler,
    access: Access,
}

impl fmt::Debug for Page {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Page")
    }
}

impl Page {
    /// Makes a page whose content `handler` provides. `operator` is a token for other commands of the user, which may
    /// do all that the page may; it is not accepted for MCP.
    pub fn new(handler: PageHandler, operator: Option<HttpToken>) -> Self {
        Self { inner: Arc::new(Inner { handler, access: Access::new(operator) }) }
    }

    /// Makes a token with which one browser can start a session within 10 minutes: `/ui#token=TOKEN`.
    ///
    /// # Errors
    ///
    /// [`Error::Start`] if the system provides no random numbers.
    pub fn one_time_token(&self) -> Result<String, Error> {
        self.inner.access.one_time_token()
    }

    /// Serves the page and nothing else until `stop` is cancelled, on at most 8 connections at once. Dropping
    /// the future ends them.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if other machines can reach the address; [`Error::Start`] if the listener
    /// has no local address.
    pub async fn serve(&self, listener: TcpListener, stop: &CancellationToken) -> Result<(), Error> {
        let address = listener.local_addr().map_err(|source| Error::Start { what: "the page", source })?;
        let authentication = Arc::new(Authentication::new(address.ip(), &[], None, Vec::new())?);
        let page = self.clone();
        let answer: Answer = Arc::new(move |request| {
            let (page, authentication) = (page.clone(), Arc::clone(&authentication));
            Box::pin(async move {
                if !page.has(request.uri().path()) {
                    return plain(StatusCode::NOT_FOUND, "there is only `/ui` here");
                }
                page.answer(&authentication, request).await
            })
        });
        small_server::serve(&listener, answer, stop).await;
        Ok(())
    }

    /// Whether the path is one of the page's.
    pub(super) fn has(&self, path: &str) -> bool {
        path.strip_prefix(PAGE).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Answers a request for one of the page's paths. Performs all checks itself.
    pub(super) async fn answer(&self, authentication: &Authentication, request: Request<Body>) -> Response {
        let mut response = match authentication.check_own_page(request.uri(), request.headers()) {
            Ok(()) => self.route(authentication, request).await,
            Err(refusal) => refused(&refusal),
        };
        let headers = response.headers_mut();
        headers.entry(CONTENT_SECURITY_POLICY).or_insert(POLICY);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        headers.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
        headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
        response
    }

    async fn route(&self, authentication: &Authentication, request: Request<Body>) -> Response {
        let path = request.uri().path().strip_prefix(PAGE).unwrap_or_default().to_owned();
        let is_get = request.method() == Method::GET;
        // Monitors ask with HEAD. hyper leaves the body out.
        let reads = is_get || request.method() == Method::HEAD;
        // The files contain no user data, so they need no token.
        match path.as_str() {
            "" if reads => return file("text/html; charset=utf-8", DOCUMENT),
            "/page.css" if reads => return file("text/css; charset=utf-8", STYLE),
            "/page.js" if reads => return file("text/javascript; charset=utf-8", SCRIPT),
            _ => {}
        }
        if let Some(ticket) = path.strip_prefix("/shown/").filter(|_| is_get) {
            let Some(id) = self.inner.access.use_ticket(ticket) else {
                return plain(
                    StatusCode::NOT_FOUND,
                    "this address worked once: open the run again on the page",
                );
            };
            return self.ask(PageRequest::Run { id }).await;
        }
        if path == "/session" && request.method() == Method::POST {
            return self.start_session(authentication, &request);
        }
        if !self.inner.access.is_allowed(request.headers()) {
            return refused(&AccessRefusal::Unauthorized);
        }
        let method = request.method().clone();
        let (what, name) = path.rsplit_once('/').unwrap_or_default();
        match (method, path.as_str(), what) {
            (Method::GET, "/state", _) => self.ask(PageRequest::State).await,
            (Method::GET, "/metrics", _) => self.ask(PageRequest::Metrics).await,
            (Method::GET, "/approvals", _) => self.ask(PageRequest::Approvals).await,
            (Method::POST, _, "/runs") if is_name(name) => match self.inner.access.ticket(name) {
                Ok(ticket) => json_text(json!({ "address": format!("{PAGE}/shown/{ticket}") }).to_string()),
                Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
            },
            (Method::POST, _, "/approvals") if is_name(name) => {
                let name = name.to_owned();
                match read_decision(request.into_body()).await {
                    Ok(Decision { approve, reason }) => {
                        self.ask(PageRequest::Answer { id: name, approve, reason }).await
                    }
                    Err(response) => response,
                }
            }
            (Method::GET | Method::POST, ..) => plain(StatusCode::NOT_FOUND, "there is no such thing here"),
            _ => {
                let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and POST");
                response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, POST"));
                response
            }
        }
    }

    /// Exchanges a one-time token, or the token of the server's clients, for a session token. The session ends when
    /// that token is revoked. A tenant's token is refused, because the page shows the runs of all tenants.
    fn start_session(&self, authentication: &Authentication, request: &Request<Body>) -> Response {
        let headers = request.headers();
        let token = authentication.server_token(headers);
        if token.is_none() && !self.inner.access.use_one_time_token(headers) {
            return refused(&AccessRefusal::Unauthorized);
        }
        match self.inner.access.start_session(token) {
            Ok(token) => json_text(json!({ "token": token }).to_string()),
            Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        }
    }

    async fn ask(&self, request: PageRequest) -> Response {
        match (self.inner.handler)(request).await {
            PageAnswer::Json(text) => json_text(text),
            PageAnswer::Text(text) => text.into_response(),
            PageAnswer::Html(text) => {
                let html = HeaderValue::from_static("text/html; charset=utf-8");
                ([(CONTENT_TYPE, html), (CONTENT_SECURITY_POLICY, FRAME_POLICY)], text).into_response()
            }
            PageAnswer::NotFound(why) => plain(StatusCode::NOT_FOUND, &why),
        }
    }
}

/// The body of an answer to an approval.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Decision {
    approve: bool,
    reason: Option<String>,
}

/// Reads an answer, within bounds.
///
/// # Errors
///
/// The HTTP answer, if the body is not an answer to an approval. Only an explicit approval counts as one.
async fn read_decision(body: Body) -> Result<Decision, Response> {
    let Ok(read) = timeout(MAX_BODY_TIME, axum::body::to_bytes(body, MAX_BODY)).await else {
        return Err(plain(StatusCode::REQUEST_TIMEOUT, "the request's body did not come in time"));
    };
    let Ok(bytes) = read else {
        let problem = format!("the request's body is longer than {} KiB", MAX_BODY >> 10);
        return Err(plain(StatusCode::PAYLOAD_TOO_LARGE, &problem));
    };
    serde_json::from_slice(&bytes).map_err(|error| {
        let problem = format!("expected {{\"approve\": true or false, \"reason\": text}}: {error}");
        plain(StatusCode::BAD_REQUEST, &problem)
    })
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn file(kind: &'static str, text: &'static str) -> Response {
    ([(CONTENT_TYPE, HeaderValue::from_static(kind))], text).into_response()
}

fn json_text(text: String) -> Response {
    ([(CONTENT_TYPE, JSON)], text).into_response()
}
