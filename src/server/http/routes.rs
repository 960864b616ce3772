//! The routes: MCP, the health report, the metrics and the REST form.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use rmcp::model::ErrorCode;
use serde_json::json;

use super::body::{RequestBody, is_json};
use super::connections::Connection;
use super::events::NotResumed;
use super::middleware::{HEALTH, METRICS, admit, connection_of};
use super::responses::{JSON, not_read, not_understood, plain, refused, try_again};
use super::rest;
use super::sessions::{NOT_RESUMED, REFUSED, REQUESTER, RESUMED_ANSWER};
use super::state::HttpState;
use super::tenant_state::Requester;
use super::workers::lend;
use crate::server::answer_size::AnswerSize;
use crate::server::incoming::{self, CountedBody, Incoming};
use crate::server::prepare::ENDING;
use crate::server::run_rate::RequestClient;
use crate::server::session::RequestSession;
use crate::server::{health, metrics};

/// Path of the MCP endpoint.
const MCP: &str = "/mcp";

/// Path of the workers that are lent to other machines.
const WORKERS: &str = "/v1/workers";

/// Content type of the usual version of Prometheus' text format.
pub(super) const PROMETHEUS: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// The header in which clients of the stateless revision repeat the method. rmcp refuses a header that differs.
const METHOD: &str = "mcp-method";

/// The header with the session id.
const SESSION_ID: &str = "mcp-session-id";

/// The header with the id of the last event of a stream that a client has received and resumes.
const LAST_EVENT_ID: &str = "last-event-id";

/// The routes, behind the authentication.
pub(crate) fn router(state: Arc<HttpState>) -> Router {
    Router::new()
        .route(MCP, any(answer_mcp))
        .route(HEALTH, get(answer_health))
        .route(METRICS, get(answer_metrics))
        .merge(rest::routes())
        .route(WORKERS, get(lend))
        .fallback(say_paths)
        .layer(from_fn_with_state(Arc::clone(&state), admit))
        .with_state(state)
}

/// The answer to a request for another path, such as the one that a person opens in a browser.
async fn say_paths() -> Response {
    plain(
        StatusCode::NOT_FOUND,
        "nothing is here: MCP clients connect to /mcp, POST /v1/runs runs a script (see /openapi.json), \
         /healthz reports the server's health",
    )
}

async fn answer_health(State(state): State<Arc<HttpState>>, headers: HeaderMap) -> Response {
    let mut report = health::report(&state.shared);
    if state.calls.is_closed() {
        report["healthy"] = false.into();
        report["hint"] = ENDING.into();
    }
    let is_healthy = report["healthy"] == true;
    if !state.authentication.is_loopback() && state.authentication.identify(&headers).is_err() {
        report = json!({ "healthy": is_healthy });
    }
    let status = if is_healthy { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let no_store = (CACHE_CONTROL, HeaderValue::from_static("no-store"));
    (status, [no_store, (CONTENT_TYPE, JSON)], report.to_string()).into_response()
}

async fn answer_metrics(State(state): State<Arc<HttpState>>, headers: HeaderMap) -> Response {
    if let Err(refusal) = state.authentication.check_operator(&headers) {
        return refused(&refusal);
    }
    let Some(print) = &state.metrics else {
        return plain(StatusCode::NOT_FOUND, "metrics are off: see `--metrics`");
    };
    metrics::sample(&state.shared, state.sessions.count(), state.connections.count());
    ([(CONTENT_TYPE, PROMETHEUS)], print()).into_response()
}

/// Replaces the id of another tenant's session: no session has this id.
const NO_SESSION: HeaderValue = HeaderValue::from_static("-");

async fn answer_mcp(
    State(state): State<Arc<HttpState>>,
    Extension(requester): Extension<Requester>,
    mut request: Request,
) -> Response {
    let id = request.headers().get(SESSION_ID).and_then(|id| id.to_str().ok());
    if id.is_some_and(|id| state.sessions.is_of_other(id, requester.tenant.key)) {
        // So the answer is the same as for an unknown id.
        request.headers_mut().insert(SESSION_ID, NO_SESSION);
    }
    let id = request.headers().get(SESSION_ID).and_then(|id| id.to_str().ok());
    let resumes = request.headers().get(LAST_EVENT_ID).is_some_and(|event| event.to_str().is_ok());
    match (request.method(), id) {
        (&Method::POST, _) => answer_post(&state, requester, request).await,
        (&Method::GET, Some(_)) if resumes => answer_resumption(&state, requester, request).await,
        (&Method::GET, Some(id)) if state.sessions.is_listening(id) => {
            plain(StatusCode::CONFLICT, "this session already has a standalone stream")
        }
        (&Method::DELETE, Some(id)) if !state.sessions.knows(id) => {
            plain(StatusCode::NOT_FOUND, "there is no such session, or no longer")
        }
        (&Method::GET, Some(_)) => {
            if let Some(connection) = connection_of(&request) {
                connection.begin_listening();
            }
            state.mcp.handle(request).await.map(Body::new)
        }
        _ => state.mcp.handle(request).await.map(Body::new),
    }
}

/// Answers a request for the rest of a stream. As long as the stream is open, its connection has an unfinished answer,
/// as that of the call had.
async fn answer_resumption(state: &HttpState, requester: Requester, request: Request) -> Response {
    let connection = connection_of(&request);
    if let Some(connection) = &connection {
        // Not begun yet if the request has a body, which nobody reads.
        connection.begin_answer();
    }
    let size = connection.map(answer_size);
    let handled = async {
        let response = state.mcp.handle(request).await;
        (response, NOT_RESUMED.with(Cell::get))
    };
    let handled = RESUMED_ANSWER.scope(size, NOT_RESUMED.scope(Cell::new(None), handled));
    let (response, not_resumed) = REQUESTER.scope(requester, handled).await;
    match not_resumed {
        None => response.map(Body::new),
        // Tells clients of event streams to stop reconnecting. SDKs do so after an error and a cancellation too.
        Some(NotResumed::Complete) => StatusCode::NO_CONTENT.into_response(),
        Some(NotResumed::NotKept) => plain(
            StatusCode::BAD_REQUEST,
            "nothing is kept after the event of `Last-Event-ID`, or this session has no such event",
        ),
    }
}

/// Tells a connection how large its answer is.
fn answer_size(connection: Arc<Connection>) -> AnswerSize {
    AnswerSize::new(move |bytes| connection.note_made(bytes))
}

async fn answer_post(state: &HttpState, requester: Requester, request: Request) -> Response {
    let connection = connection_of(&request);
    let (mut parts, body) = request.into_parts();
    let share = requester.tenant.bodies.as_ref();
    let RequestBody { bytes, permits } = match state.bodies.read(&parts.headers, body, share).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    if let Some(connection) = &connection {
        if parts.headers.get(METHOD).is_some_and(|method| method == "subscriptions/listen") {
            connection.begin_listening();
        } else {
            connection.begin_answer();
        }
    }
    parts.extensions.insert(CountedBody::new(permits));
    if let Some(connection) = connection {
        parts.extensions.insert(answer_size(connection));
    }
    parts.extensions.insert(RequestClient(requester.client_name()));
    let session = Arc::clone(&requester.tenant.session);
    parts.extensions.insert(RequestSession { session, revoked: requester.revoked().cloned() });
    let is_json = is_json(&parts.headers);
    let reduced = match incoming::detach(&bytes) {
        Ok(Incoming { message, input }) => {
            if let Some(input) = input {
                parts.extensions.insert(input);
            }
            match message {
                Cow::Owned(message) => Some(Bytes::from(message)),
                Cow::Borrowed(message) => incoming::in_place_of_answer(message).map(Bytes::from),
            }
        }
        Err(problem) => return not_read(&bytes, ErrorCode::INVALID_REQUEST, &problem.to_string()),
    };
    let bytes = reduced.unwrap_or(bytes);
    let handled = async {
        let request = Request::from_parts(parts, Body::from(bytes.clone()));
        let response = state.mcp.handle(request).await;
        (response, REFUSED.with(Cell::get))
    };
    let handled = REQUESTER.scope(requester, REFUSED.scope(Cell::new(false), handled));
    let (response, is_refused) = handled.await;
    if is_refused {
        return try_again("there are too many sessions: end one with DELETE, or wait");
    }
    if is_json && response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        return not_understood(&bytes);
    }
    response.map(Body::new)
}
