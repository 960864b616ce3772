//! The HTTP transport: connections and their bounds, and the routes.

mod authentication;
mod connections;
mod sessions;
mod shares;

use std::borrow::Cow;
use std::cell::Cell;
use std::convert::Infallible;
use std::fmt;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    ACCESS_CONTROL_REQUEST_METHOD, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use futures::{FutureExt as _, StreamExt as _};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rmcp::model::ErrorCode;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use self::authentication::{Authentication, Refusal};
use self::connections::{Connection, Connections, OpenConnection};
use self::sessions::{PEER, REFUSED, SessionBounds, Sessions};
use self::shares::PeerKey;
use super::calls::CallsInFlight;
use super::handler::RequestHandler;
use super::incoming::{self, Incoming as IncomingMessage};
use super::session::McpSession;
use super::shared::Shared;
use super::shutdown::{Ended, MAX_DRAIN, MAX_GOODBYE, MAX_LAST_WRITE};
use super::{health, metrics};
use crate::error::Error;
use crate::lines::{IdScan, MAX_LINE, MAX_SKIPPED_LINE};

pub use authentication::HttpToken;

/// Path of the MCP endpoint.
const MCP: &str = "/mcp";

/// Path of the health report.
const HEALTH: &str = "/healthz";

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Content type of the usual version of Prometheus' text format.
const PROMETHEUS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// The header with the session id.
const SESSION_ID: &str = "mcp-session-id";

/// Maximum number of connections: one listening stream for each of 256 sessions, and as many
/// requests. At the bound a new connection replaces one that is not in use, or gets 503.
const MAX_CONNECTIONS: usize = 512;

/// Maximum bytes of request bodies that are being read, of all connections together.
const MAX_BODY_BYTES: usize = 256 << 20;

/// Bytes of each body that do not count towards that bound, so that small requests are still read
/// while large ones use it up. This is 32 MiB for all connections together.
const UNCOUNTED_BODY_BYTES: usize = 64 << 10;

/// How long a client may take for the head of a request, and how long a connection may be idle.
const MAX_HEAD_TIME: Duration = Duration::from_secs(10);

/// Maximum bytes of a request's head.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// Maximum number of headers.
const MAX_HEADERS: usize = 100;

/// How long a client may take for a request's body.
const MAX_BODY: Duration = Duration::from_secs(30);

/// How long written bytes may stay undelivered before the connection is treated as dead.
const MAX_UNREAD: Duration = Duration::from_secs(30);

/// Interval of keep-alive events on a stream without messages. They keep proxies from closing it,
/// and detect dead clients.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// Pause after the system has refused to accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long a new connection waits for the evicted one to end. That takes microseconds, or
/// [`MAX_LAST_WRITE`] if the end of an answer may have to be written; the rest is a margin for a
/// busy machine.
const MAX_EVICTION_WAIT: Duration = Duration::from_secs(5);

/// `Retry-After` in seconds for clients that are refused because there are too many.
const COME_AGAIN: HeaderValue = HeaderValue::from_static("1");

/// The answer on a connection beyond the maximum.
const NO_CONNECTION: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// Renders all metrics as text, for [`HttpOptions::metrics`].
pub type MetricsPrinter = Arc<dyn Fn() -> String + Send + Sync>;

/// Options of [`Server::serve_http`].
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpOptions {
    /// Origins, such as `https://app.example.com`, whose pages may send requests. Loopback origins
    /// are always allowed.
    pub allow_origins: Vec<String>,
    /// The token that clients must send. Required if other machines can reach the server.
    pub token: Option<HttpToken>,
    /// Renders the text of `/metrics`, for example from the application's Prometheus recorder.
    /// Without it the path is not found.
    pub metrics: Option<MetricsPrinter>,
    /// Maximum number of sessions, which only clients of the handshake revisions have. Default:
    /// 256.
    pub most_sessions: usize,
    /// How long a session is kept while its client sends nothing and does not listen. Default: 30
    /// minutes.
    pub session_idle: Duration,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            allow_origins: Vec::new(),
            token: None,
            metrics: None,
            most_sessions: 256,
            session_idle: Duration::from_secs(30 * 60),
        }
    }
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HttpOptions")
            .field("allow_origins", &self.allow_origins)
            .field("token", &self.token)
            .field("most_sessions", &self.most_sessions)
            .field("session_idle", &self.session_idle)
            .finish_non_exhaustive()
    }
}

impl HttpOptions {
    /// Checks whether a server at `address` may be started with these options.
    /// [`Server::serve_http`] checks this first.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if other machines can reach the address and there is no token of
    /// at least 32 characters, or if an entry of `allow_origins` is not an origin.
    pub fn validate(&self, address: IpAddr) -> Result<(), Error> {
        Authentication::new(address, &self.allow_origins, self.token.clone()).map(drop)
    }
}

/// State that all requests share.
struct Http {
    shared: Arc<Shared>,
    authentication: Authentication,
    metrics: Option<MetricsPrinter>,
    sessions: Arc<Sessions>,
    connections: Arc<Connections>,
    mcp: StreamableHttpService<RequestHandler, Sessions>,
    body_bytes: Arc<Semaphore>,
    /// Cancelled when no more requests are accepted.
    closing: CancellationToken,
}

/// Serves any number of clients until `stop` is cancelled or too many workers are hung. See
/// [`Server::serve_http`](super::Server::serve_http).
///
/// # Errors
///
/// [`Error::InvalidOptions`] if the options do not allow the listener's address; [`Error::Start`] if
/// the listener has no local address.
pub(crate) async fn serve(
    shared: &Arc<Shared>,
    listener: TcpListener,
    options: HttpOptions,
    stop: &CancellationToken,
) -> Result<Ended, Error> {
    let address =
        listener.local_addr().map_err(|source| Error::Start { what: "the HTTP server", source })?;
    let authentication = Authentication::new(address.ip(), &options.allow_origins, options.token)?;
    let runs = CancellationToken::new();
    let _runs_end_with_this = runs.clone().drop_guard();
    // Everything that rmcp runs ends with this token.
    let open = CancellationToken::new();
    let _rmcp_ends_with_this = open.clone().drop_guard();
    let calls = Arc::<CallsInFlight>::default();
    let bounds = SessionBounds { most: options.most_sessions, idle: options.session_idle };
    let sessions =
        Arc::new(Sessions::new(Arc::clone(shared), bounds, runs.clone(), Arc::clone(&calls)));
    let mcp = mcp_service(shared, &sessions, &open, &runs, &calls);
    let connections = Connections::new(MAX_CONNECTIONS);
    let http = Arc::new(Http {
        shared: Arc::clone(shared),
        authentication,
        metrics: options.metrics,
        sessions: Arc::clone(&sessions),
        connections: Arc::clone(&connections),
        mcp,
        body_bytes: Arc::new(Semaphore::new(MAX_BODY_BYTES)),
        closing: CancellationToken::new(),
    });
    let closing = http.closing.clone();
    let _connections_end_with_this = closing.clone().drop_guard();
    let mut serving_each = JoinSet::new();
    let ended = {
        let endpoint = Endpoint { router: router(http), connections, closing: closing.clone() };
        let serving = accept(&listener, &endpoint, &sessions, &mut serving_each);
        let mut serving = pin!(serving);
        tokio::select! {
            never = &mut serving => match never {},
            () = stop.cancelled() => Ended::Stopped,
            () = shared.hung_workers.end_of_server() => {
                tracing::error!("too many threads run scripts that cannot be stopped; the server ends");
                tokio::select! {
                    // Requests are still answered: clients may poll their tasks and read the
                    // health report.
                    never = &mut serving => match never {},
                    () = calls.wait_until_empty(MAX_DRAIN) => {}
                    () = stop.cancelled() => {}
                }
                Ended::ThreadsLost
            }
        }
    };
    drop(listener);
    closing.cancel();
    sessions.end_listening();
    runs.cancel();
    // The calls are awaited before rmcp is stopped, because stopping drops the streams, and the
    // calls should be answered.
    calls.wait_until_empty(MAX_GOODBYE).await;
    let written = async { while serving_each.join_next().await.is_some() {} };
    if timeout(MAX_LAST_WRITE, written).await.is_err() {
        tracing::debug!("some clients did not read their last answers");
    }
    serving_each.shutdown().await;
    Ok(ended)
}

/// The MCP service of rmcp. Its checks of hosts and origins are disabled; [`Authentication`]
/// does them.
fn mcp_service(
    shared: &Arc<Shared>,
    sessions: &Arc<Sessions>,
    open: &CancellationToken,
    runs: &CancellationToken,
    calls: &Arc<CallsInFlight>,
) -> StreamableHttpService<RequestHandler, Sessions> {
    // The session of all clients that have none. Messages of the others carry theirs.
    let session = McpSession::new(Arc::clone(shared), runs.child_token(), Arc::clone(calls));
    let session = Arc::new(session.of_many_clients());
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .with_max_request_body_bytes(MAX_LINE)
        .with_json_response(true)
        .with_sse_keep_alive(Some(SIGN_OF_LIFE))
        // Streams cannot be resumed, so clients need no retry interval.
        .with_sse_retry(None)
        .with_cancellation_token(open.clone());
    StreamableHttpService::new(
        move || Ok(RequestHandler::new(Arc::clone(&session))),
        Arc::clone(sessions),
        config,
    )
}

/// State that all connections share.
#[derive(Clone)]
struct Endpoint {
    router: Router,
    connections: Arc<Connections>,
    closing: CancellationToken,
}

/// Accepts connections and expires sessions for as long as it is polled.
async fn accept(
    listener: &TcpListener,
    endpoint: &Endpoint,
    sessions: &Sessions,
    serving: &mut JoinSet<()>,
) -> Infallible {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut expiry = interval(sessions.expiry_interval());
    expiry.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => {
                    let peer = PeerKey::from(address.ip());
                    if let Ok(permit) = Arc::clone(&permits).try_acquire_owned() {
                        let open = endpoint.connections.open(peer, permit);
                        serving.spawn(serve_connection(stream, endpoint.clone(), open));
                    } else if let Some(permit) = endpoint.connections.make_room(peer) {
                        metrics::count_evicted("connection");
                        serving.spawn(serve_after_eviction(stream, endpoint.clone(), peer, permit));
                    } else {
                        serving.spawn(send_away(stream));
                    }
                },
                Err(error) => {
                    tracing::warn!(%error, "a connection cannot be taken");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_ended) = serving.join_next() => {}
            _ = expiry.tick() => sessions.expire(),
        }
    }
}

/// Serves a connection as soon as the one that was evicted for it has ended. The number of waiting
/// connections is bounded by the number of evicted ones that have not ended yet.
async fn serve_after_eviction(
    stream: TcpStream,
    endpoint: Endpoint,
    peer: PeerKey,
    permit: oneshot::Receiver<OwnedSemaphorePermit>,
) {
    match timeout(MAX_EVICTION_WAIT, permit).await {
        Ok(Ok(permit)) => {
            let open = endpoint.connections.open(peer, permit);
            serve_connection(stream, endpoint, open).await;
        }
        _ => send_away(stream).await,
    }
}

async fn serve_connection(stream: TcpStream, endpoint: Endpoint, open: OpenConnection) {
    let Endpoint { router, closing, .. } = endpoint;
    let this = &open.connection;
    // Small answers must not wait for more data.
    let _as_it_is = stream.set_nodelay(true);
    // A client that has disappeared without closing the connection, or has stopped reading, must
    // not keep its runs.
    let unread = u32::try_from(MAX_UNREAD.as_millis()).unwrap_or(u32::MAX);
    let _as_it_is = rustix::net::sockopt::set_tcp_user_timeout(&stream, unread);
    let router = TowerToHyperService::new(router);
    let service = service_fn(|mut request: hyper::Request<Incoming>| {
        this.begin_request();
        request.extensions_mut().insert(Arc::clone(this));
        router.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(MAX_HEAD_TIME)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let served = tokio::select! {
        served = &mut connection => served,
        () = closing.cancelled() => {
            // The answer in flight is still written.
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        may_write = this.evicted() => {
            if !may_write {
                return;
            }
            connection.as_mut().graceful_shutdown();
            match timeout(MAX_LAST_WRITE, connection).await {
                Ok(served) => served,
                Err(_late) => return,
            }
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection broke");
    }
}

/// Tells a client that there are too many connections.
async fn send_away(mut stream: TcpStream) {
    let _gone = timeout(ACCEPT_PAUSE, stream.write_all(NO_CONNECTION)).await;
}

fn router(http: Arc<Http>) -> Router {
    Router::new()
        .route(MCP, any(answer_mcp))
        .route(HEALTH, get(answer_health))
        .route("/metrics", get(answer_metrics))
        .layer(from_fn_with_state(Arc::clone(&http), admit))
        .with_state(http)
}

/// Handles authenticated requests. A panic of a handler becomes an error of its request only.
async fn admit(State(http): State<Arc<Http>>, request: Request, next: Next) -> Response {
    let connection = connection_of(&request);
    let response = answer_if_allowed(&http, request, next).await;
    match connection {
        Some(connection) => connection.watch(response),
        None => response,
    }
}

/// The connection of a request.
fn connection_of(request: &Request) -> Option<Arc<Connection>> {
    request.extensions().get::<Arc<Connection>>().cloned()
}

async fn answer_if_allowed(http: &Http, request: Request, next: Next) -> Response {
    if http.closing.is_cancelled() {
        return try_again("the server is being stopped");
    }
    let origin = match http.authentication.check_source(request.uri(), request.headers()) {
        Ok(origin) => origin,
        Err(refusal) => return refused(&refusal),
    };
    let mut response = answer_admitted(http, request, next, origin.is_some()).await;
    if let Some(origin) = origin {
        authentication::allow_reading(response.headers_mut(), origin);
    }
    response
}

async fn answer_admitted(http: &Http, request: Request, next: Next, is_page: bool) -> Response {
    let asks_first = request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    if is_page && asks_first && *request.method() == Method::OPTIONS {
        let mut response = StatusCode::NO_CONTENT.into_response();
        authentication::allow_sending(response.headers_mut());
        return response;
    }
    let allowed = http.authentication.check_token(request.headers());
    if allowed.is_ok()
        && let Some(connection) = connection_of(&request)
    {
        connection.admit();
    }
    // The health handler checks the token itself, because part of the report is public.
    if request.uri().path() != HEALTH
        && let Err(refusal) = allowed
    {
        return refused(&refusal);
    }
    AssertUnwindSafe(next.run(request)).catch_unwind().await.unwrap_or_else(|_panic| {
        // The panic hook has logged the location.
        let problem = "the server failed to handle this request; others are not affected";
        plain(StatusCode::INTERNAL_SERVER_ERROR, problem)
    })
}

async fn answer_health(State(http): State<Arc<Http>>, headers: HeaderMap) -> Response {
    let mut report = health::report(&http.shared);
    let is_healthy = report["healthy"] == true;
    if !http.authentication.is_loopback() && http.authentication.check_token(&headers).is_err() {
        report = json!({ "healthy": is_healthy });
    }
    let status = if is_healthy { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let no_store = (CACHE_CONTROL, HeaderValue::from_static("no-store"));
    (status, [no_store, (CONTENT_TYPE, JSON)], report.to_string()).into_response()
}

async fn answer_metrics(State(http): State<Arc<Http>>) -> Response {
    let Some(print) = &http.metrics else {
        return plain(StatusCode::NOT_FOUND, "metrics are off: see `--metrics`");
    };
    metrics::sample(&http.shared, http.sessions.count(), http.connections.count());
    ([(CONTENT_TYPE, PROMETHEUS)], print()).into_response()
}

async fn answer_mcp(State(http): State<Arc<Http>>, request: Request) -> Response {
    let id = request.headers().get(SESSION_ID).and_then(|id| id.to_str().ok());
    match (request.method(), id) {
        (&Method::POST, _) => answer_post(&http, request).await,
        (&Method::GET, Some(id)) if http.sessions.is_listening(id) => {
            plain(StatusCode::CONFLICT, "this session has a stream to listen to: read that one")
        }
        (&Method::DELETE, Some(id)) if !http.sessions.knows(id) => {
            plain(StatusCode::NOT_FOUND, "no such session, or no longer")
        }
        (&Method::GET, Some(_)) => {
            if let Some(connection) = connection_of(&request) {
                connection.begin_listening();
            }
            http.mcp.handle(request).await.map(Body::new)
        }
        _ => http.mcp.handle(request).await.map(Body::new),
    }
}

async fn answer_post(http: &Http, request: Request) -> Response {
    let connection = connection_of(&request);
    let (mut parts, body) = request.into_parts();
    let (bytes, _held) = match timeout(MAX_BODY, read_body(http, &parts.headers, body)).await {
        Ok(Ok(read)) => read,
        Ok(Err(response)) => return response,
        Err(_late) => return plain(StatusCode::REQUEST_TIMEOUT, "the request's body did not come in time"),
    };
    if let Some(connection) = &connection {
        connection.begin_answer();
    }
    let peer = connection.map(|connection| connection.peer()).unwrap_or_default();
    let is_json = is_json(&parts.headers);
    let reduced = match incoming::detach(&bytes) {
        Ok(IncomingMessage { message, input }) => {
            if let Some(input) = input {
                parts.extensions.insert(input);
            }
            match message {
                Cow::Owned(message) => Some(Bytes::from(message)),
                Cow::Borrowed(_) => None,
            }
        }
        Err(problem) => return not_read(&bytes, ErrorCode::INVALID_REQUEST, &problem.to_string()),
    };
    let bytes = reduced.unwrap_or(bytes);
    let handled = async {
        let request = Request::from_parts(parts, Body::from(bytes.clone()));
        let response = http.mcp.handle(request).await;
        (response, REFUSED.with(Cell::get))
    };
    let (response, is_refused) = PEER.scope(peer, REFUSED.scope(Cell::new(false), handled)).await;
    if is_refused {
        return try_again("there are too many sessions: end one with DELETE, or wait");
    }
    if is_json && response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        return not_understood(&bytes);
    }
    response.map(Body::new)
}

/// Reads a body within its bounds. The returned permit counts its bytes and must be held as long as
/// they are.
async fn read_body(
    http: &Http,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Bytes, Option<OwnedSemaphorePermit>), Response> {
    let announced =
        headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    let mut body = body.into_data_stream();
    let (mut bytes, mut held) = (Vec::new(), None::<OwnedSemaphorePermit>);
    let mut is_too_long = announced.is_some_and(|length| length > MAX_LINE);
    let mut skipped = 0;
    while let Some(piece) = body.next().await {
        let Ok(piece) = piece else {
            return Err(plain(StatusCode::BAD_REQUEST, "the request's body cannot be read"));
        };
        is_too_long |= bytes.len() + piece.len() > MAX_LINE;
        if is_too_long {
            // The rest is read and dropped: a client that writes its whole request before it reads
            // must see the error.
            bytes = Vec::new();
            held = None;
            skipped += piece.len();
            if skipped > MAX_SKIPPED_LINE {
                break;
            }
            continue;
        }
        let counted = |length: usize| length.saturating_sub(UNCOUNTED_BODY_BYTES);
        let count = counted(bytes.len() + piece.len()) - counted(bytes.len());
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let Ok(more) = Arc::clone(&http.body_bytes).try_acquire_many_owned(count) else {
            return Err(try_again("too many large requests are being read"));
        };
        match &mut held {
            Some(held) => held.merge(more),
            None => held = Some(more),
        }
        bytes.extend_from_slice(&piece);
    }
    if is_too_long {
        let problem = format!("the message is longer than {} MB, the most that is read", MAX_LINE >> 20);
        return Err(plain(StatusCode::PAYLOAD_TOO_LARGE, &problem));
    }
    Ok((bytes.into(), held))
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = value.split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

/// The answer to a body that is not a message, with the same error texts as the stdio transport.
fn not_understood(bytes: &[u8]) -> Response {
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
fn not_read(bytes: &[u8], code: ErrorCode, problem: &str) -> Response {
    let id = IdScan::of_line(bytes).and_then(|id| id.to_json());
    let id = id.map_or(Value::Null, |id| serde_json::from_str(id.get()).unwrap_or_default());
    let error = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code.0, "message": problem } });
    (StatusCode::BAD_REQUEST, [(CONTENT_TYPE, JSON)], error.to_string()).into_response()
}

fn refused(refusal: &Refusal) -> Response {
    match refusal {
        Refusal::Forbidden(why) => plain(StatusCode::FORBIDDEN, why),
        Refusal::Unauthorized => {
            let mut response =
                plain(StatusCode::UNAUTHORIZED, "expected `Authorization: Bearer` with the token");
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            response
        }
    }
}

fn try_again(why: &str) -> Response {
    let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, why);
    response.headers_mut().insert(RETRY_AFTER, COME_AGAIN);
    response
}

fn plain(status: StatusCode, text: &str) -> Response {
    (status, format!("{text}\n")).into_response()
}

#[cfg(test)]
mod tests;
