//! The routes of REST and their handlers.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, Request, State};
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use super::accept::{idempotency_key, wants_events};
use super::events::{RunEvents, Streamed, stream};
use super::openapi;
use super::request::{self, RunRequest};
use super::start::{RequestPermits, caller_name, start};
use crate::conventions::REST_RUN;
use crate::run::result::ErrorCode;
use crate::server::answer::INVALID_ARGUMENTS;
use crate::server::answer::truncation::cut;
use crate::server::answer_size::AnswerSize;
use crate::server::audited::AuditedRequest;
use crate::server::http::body::{RequestBody, is_json};
use crate::server::http::connections::Connection;
use crate::server::http::middleware::connection_of;
use crate::server::http::problem::{self, OPENAPI, problem, refused};
use crate::server::http::responses::handler_failed;
use crate::server::http::rest_runs::answers::json as json_response;
use crate::server::http::rest_runs::{KeyedBody, MAX_BACKGROUND, MAX_WAIT, RestRun, Started};
use crate::server::http::state::HttpState;
use crate::server::http::tenant_state::Requester;
use crate::server::hung_workers::SERVER_ENDS;
use crate::tools::ToolErrorCode;

/// Path of the runs.
const RUNS: &str = "/v1/runs";

/// Paths of one run, and of a part of its record.
const RUN: &str = "/v1/runs/{id}";
const PART: &str = "/v1/runs/{id}/{part}";

/// The names of requests other than [`REST_RUN`], as observers see them.
const REST_READ: &str = "GET /v1/runs/{id}";
const REST_CANCEL: &str = "DELETE /v1/runs/{id}";
const REST_RECORD: &str = "GET /v1/runs/{id}/{part}";

/// The id of the run in an answer, for observers.
#[derive(Clone)]
struct ReportedRun(String);

/// Marks an answer as that of an earlier request with the same key.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The routes of REST.
pub(in crate::server::http) fn routes() -> Router<Arc<HttpState>> {
    Router::new()
        .route(RUNS, post(create))
        .route(RUN, get(read).delete(remove))
        .route(PART, get(read_part))
        .route(OPENAPI, get(describe))
}

async fn describe(State(state): State<Arc<HttpState>>) -> Response {
    let document = openapi::document(&state.shared, state.authentication.has_token());
    json_response(StatusCode::OK, document.to_string())
}

async fn create(
    State(state): State<Arc<HttpState>>,
    Extension(requester): Extension<Requester>,
    request: Request,
) -> Response {
    let connection = connection_of(&request);
    let (parts, body) = request.into_parts();
    let created = create_run(&state, &requester, &parts.headers, body, connection);
    audited(REST_RUN, None, &state, &requester, &parts.headers, created).await
}

/// Answers a request, and reports it to observers. `id` is the run that the request names. The end of a run is reported
/// by the run's own events.
async fn audited(
    method: &str,
    id: Option<&str>,
    state: &HttpState,
    requester: &Requester,
    headers: &HeaderMap,
    answer: impl Future<Output = Response>,
) -> Response {
    let (executor, client) = (&state.shared.executor, requester.client_name());
    let mut audited = AuditedRequest::new(executor, method, None, &client, || caller_name(headers));
    // Set before the answer is sent, because the client may be gone by then.
    if let Some(id) = id {
        audited.set_run(id);
    }
    let response = answer.await;
    if let Some(ReportedRun(id)) = response.extensions().get::<ReportedRun>() {
        audited.set_run(id);
    }
    audited.end(|| (!response.status().is_success()).then(|| response.status().as_str().to_owned()));
    response
}

async fn create_run(
    state: &HttpState,
    requester: &Requester,
    headers: &HeaderMap,
    body: Body,
    connection: Option<Arc<Connection>>,
) -> Response {
    let share = requester.tenant.bodies.as_ref();
    let RequestBody { bytes, permits } = match state.bodies.read(headers, body, share).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    if let Some(connection) = &connection {
        connection.begin_answer();
    }
    if !is_json(headers) {
        let detail = "expected a body of `Content-Type: application/json`";
        return problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, INVALID_ARGUMENTS, detail);
    }
    let invalid = |detail: &str| problem(StatusCode::BAD_REQUEST, INVALID_ARGUMENTS, detail);
    let key = match idempotency_key(headers) {
        Ok(key) => key.map(|key| KeyedBody::new(key, &bytes)),
        Err(detail) => return invalid(&detail),
    };
    let mut wanted = match request::read(&bytes) {
        Ok(wanted) => wanted,
        Err(detail) => return invalid(&detail),
    };
    wanted.stream |= wants_events(headers);
    if wanted.stream && wanted.background {
        return invalid("a run in the background has no stream of events: its answer is read with GET");
    }
    state.shared.hung_workers.watch();
    if state.shared.hung_workers.server_must_end() {
        return refused(&json!({ "code": ErrorCode::EngineUnavailable.as_str(), "message": SERVER_ENDS }));
    }
    begin(requester, wanted, headers, key, permits, connection).await
}

async fn begin(
    requester: &Requester,
    wanted: RunRequest,
    headers: &HeaderMap,
    key: Option<KeyedBody>,
    body: Vec<OwnedSemaphorePermit>,
    connection: Option<Arc<Connection>>,
) -> Response {
    let tenant = &requester.tenant;
    let call = tenant.session.calls.begin();
    let (is_stream, is_background) = (wanted.stream, wanted.background);
    let mut events = None;
    let started = tenant.rest.start(key.as_ref(), || {
        let slot = || tenant.rest.background_slot(&requester.client_name()).ok_or_else(too_many);
        // Other answers wait for nothing.
        let size = connection.filter(|_| is_stream);
        let size = size.map(|connection| AnswerSize::new(move |bytes| connection.note_made(bytes)));
        let held = RequestPermits { _body: body, _slot: is_background.then(slot).transpose()?, size };
        let (run, of_run) = start(requester, wanted, headers, key.clone(), held)
            .map_err(|mut answer| answer.structured["error"].take())?;
        events = Some(of_run);
        Ok(run)
    });
    let (run, is_new) = match started {
        Ok(Started::Now(run)) => (run, true),
        Ok(Started::Before(run)) => (run, false),
        Ok(Started::KeyOfOther) => {
            let detail = "this `Idempotency-Key` was sent before with another body";
            return problem(StatusCode::UNPROCESSABLE_ENTITY, INVALID_ARGUMENTS, detail);
        }
        Err(error) => return refused(&error),
    };
    // A run that is not in the background belongs to the request that started it, and is cancelled with it.
    let cancel = (is_new && !is_background).then(|| run.cancel.clone().drop_guard());
    let mut told = run.told_id();
    let mut response = if is_background {
        accepted(&run)
    } else if is_stream {
        stream(Streamed { run, events: events.filter(|_| is_new), cancel, _call: call })
    } else {
        // Otherwise they would be collected until the run ends, and nothing reads them.
        drop::<Option<RunEvents>>(events);
        let response = answer(&run).await;
        told = run.told_id();
        tenant.rest.keep(run);
        response
    };
    if let Some(id) = told {
        response.extensions_mut().insert(ReportedRun(id));
    }
    if !is_new {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

/// The error for a client that has too many runs in the background.
fn too_many() -> Value {
    let message = format!("a client may have {MAX_BACKGROUND} runs in the background at the same time");
    json!({ "code": ToolErrorCode::RateLimited.as_str(), "message": message, "retryAfterMs": 1000 })
}

/// The answer of a run, when it has ended.
async fn answer(run: &RestRun) -> Response {
    run.wait().await.map_or_else(handler_failed, |answer| answer.to_response())
}

/// The answer to a request for a run in the background.
fn accepted(run: &RestRun) -> Response {
    let id = run.id.as_deref().unwrap_or_default();
    let mut response =
        json_response(StatusCode::ACCEPTED, json!({ "running": true, "runId": id }).to_string());
    if let Ok(location) = HeaderValue::from_str(&format!("{RUNS}/{id}")) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

/// The query of a request for a run.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReadQuery {
    /// How long to wait for the end of the run, in milliseconds.
    #[serde(default)]
    wait_ms: u64,
}

async fn read(
    State(state): State<Arc<HttpState>>,
    Extension(requester): Extension<Requester>,
    Path(id): Path<String>,
    query: Result<Query<ReadQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Response {
    let answer = read_run(&state, &requester, &id, query);
    audited(REST_READ, Some(&id), &state, &requester, &headers, answer).await
}

async fn read_run(
    state: &HttpState,
    requester: &Requester,
    id: &str,
    query: Result<Query<ReadQuery>, QueryRejection>,
) -> Response {
    let time = query.ok().map(|Query(query)| Duration::from_millis(query.wait_ms));
    let Some(time) = time.filter(|time| *time <= MAX_WAIT) else {
        let detail = format!("expected nothing but `waitMs`, from 0 to {}", MAX_WAIT.as_millis());
        return problem(StatusCode::BAD_REQUEST, INVALID_ARGUMENTS, &detail);
    };
    let tenant = &requester.tenant;
    let Some(run) = tenant.rest.find(id) else { return not_found() };
    let _call = tenant.session.calls.begin();
    tokio::select! {
        biased;
        response = answer(&run) => response,
        () = tokio::time::sleep(time) => running(state, &run),
        () = tenant.session.runs.cancelled() => answer(&run).await,
    }
}

/// The answer to a request for a run in flight.
fn running(state: &HttpState, run: &RestRun) -> Response {
    let mut body = json!({ "running": true });
    if let Some(id) = &run.id {
        body["runId"] = id.clone().into();
    }
    let mut output = run.printed.so_far().unwrap_or_default();
    if let Some((kept, omitted)) = cut(&output, state.shared.options.max_value, "") {
        output = kept;
        body["outputOmitted"] = omitted.into();
    }
    if !output.is_empty() {
        body["output"] = output.into();
    }
    json_response(StatusCode::OK, body.to_string())
}

/// Cancels a run in flight. The answer of a run that has ended stays unchanged.
async fn remove(
    State(state): State<Arc<HttpState>>,
    Extension(requester): Extension<Requester>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Response {
    let removed = async {
        let Some(run) = requester.tenant.rest.find(&id) else { return not_found() };
        run.cancel.cancel();
        StatusCode::NO_CONTENT.into_response()
    };
    audited(REST_CANCEL, Some(&id), &state, &requester, &headers, removed).await
}

/// A part of a run's record, such as output that the answer left out.
async fn read_part(
    State(state): State<Arc<HttpState>>,
    Extension(requester): Extension<Requester>,
    Path((id, part)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let answer = read_record(&state, &requester, &id, &part);
    audited(REST_RECORD, Some(&id), &state, &requester, &headers, answer).await
}

async fn read_record(state: &HttpState, requester: &Requester, id: &str, part: &str) -> Response {
    let Some(history) = state.shared.executor.history() else { return not_found() };
    let record = match history.find(&requester.tenant.session.client, id).await {
        Ok(Some(record)) => record,
        Ok(None) => return not_found(),
        Err(error) => return problem::unavailable(&format!("the record cannot be read now: {error}")),
    };
    match (part, &record.value) {
        ("output", _) => {
            let kind = HeaderValue::from_static("text/plain; charset=utf-8");
            let mut response = json_response(StatusCode::OK, record.output.clone());
            response.headers_mut().insert(CONTENT_TYPE, kind);
            response
        }
        ("calls", _) => json_response(StatusCode::OK, record.calls.clone()),
        ("value", Some(value)) => json_response(StatusCode::OK, value.clone()),
        ("value", None) => problem::not_found("the script returned no value"),
        _ => problem::not_found("expected `output`, `value` or `calls` after the run's id"),
    }
}

fn not_found() -> Response {
    problem::not_found("there is no such run, or it is no longer kept")
}
