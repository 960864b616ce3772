//! Processing of every request before its route: authentication, and a guard against panics.
//!
//! The guard is `catch_unwind` of `futures`, which other modules use too, and not tower-http's `CatchPanic` layer,
//! which does the same around a service. A layer would not cover the page, which answers before the router, so the
//! function would still be needed.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use futures::FutureExt as _;

use super::accepted::AcceptedToken;
use super::authentication::{AccessRefusal, Caller};
use super::connections::Connection;
use super::cors;
use super::problem::{is_rest, with_problem};
use super::responses::{handler_failed, plain, refused, try_again};
use super::state::HttpState;
use super::tenant_state::Requester;

/// Path of the health report.
pub(crate) const HEALTH: &str = "/healthz";

/// Path of the metrics.
pub(super) const METRICS: &str = "/metrics";

/// The answer to the operator of a server with tenants, who may not run scripts: every run needs a tenant.
const NOT_FOR_OPERATOR: AccessRefusal = AccessRefusal::Forbidden(
    "this token reads `/metrics`, `/healthz` and the page: use a tenant's for the rest",
);

/// Handles a request if it is permitted. A panic of its handler becomes an error of this request only.
pub(crate) async fn admit(State(state): State<Arc<HttpState>>, request: Request, next: Next) -> Response {
    let is_rest = is_rest(request.uri().path());
    let Some(connection) = connection_of(&request) else {
        return answer_if_allowed(&state, request, next).await;
    };
    let head = connection.activity.head();
    let mut response = if head.is_ambiguous {
        plain(StatusCode::BAD_REQUEST, "the request has both `Content-Length` and `Transfer-Encoding`")
    } else {
        answer_if_allowed(&state, request, next).await
    };
    if is_rest {
        response = with_problem(response);
    }
    if head.is_last {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        connection.activity.begin_upgrade();
    }
    connection.watch(response)
}

/// The connection of a request.
pub(crate) fn connection_of(request: &Request) -> Option<Arc<Connection>> {
    request.extensions().get::<Arc<Connection>>().cloned()
}

async fn answer_if_allowed(state: &HttpState, request: Request, next: Next) -> Response {
    if state.closing.is_cancelled() {
        return try_again("the server is being stopped");
    }
    if let Some(page) = &state.page
        && page.has(request.uri().path())
    {
        let answer = page.answer(&state.authentication, request);
        return AssertUnwindSafe(answer).catch_unwind().await.unwrap_or_else(|_panic| handler_failed());
    }
    let origin = match state.authentication.check_source(request.uri(), request.headers()) {
        Ok(origin) => origin,
        Err(refusal) => return refused(&refusal),
    };
    let Some(origin) = origin else { return answer_authenticated(state, request, next).await };
    let mut response = if cors::is_preflight(&request) {
        cors::preflight_response(request.headers())
    } else {
        answer_authenticated(state, request, next).await
    };
    cors::allow_reading(response.headers_mut(), origin);
    response
}

async fn answer_authenticated(state: &HttpState, mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    // The health handler checks the token itself, because part of the report is public.
    let is_health = path == HEALTH;
    let concerns_all_tenants = is_health || path == METRICS;
    let connection = connection_of(&request);
    let caller = state.authentication.identify(request.headers());
    match caller.and_then(|caller| requester(state, caller, connection.as_deref())) {
        Ok(requester) => {
            if let Some(connection) = connection {
                let token = requester.as_ref().and_then(|requester| requester.token.clone());
                connection.admit(requester.as_ref().map(|requester| requester.tenant.key), token);
            }
            match requester {
                Some(requester) => drop(request.extensions_mut().insert(requester)),
                None if concerns_all_tenants => {}
                None => return refused(&NOT_FOR_OPERATOR),
            }
        }
        Err(_) if is_health => {}
        Err(refusal) => return refused(&refusal),
    }
    // The panic hook has logged the location.
    AssertUnwindSafe(next.run(request)).catch_unwind().await.unwrap_or_else(|_panic| handler_failed())
}

/// The tenant of a request that has passed authentication. `None` for the operator, who has no tenant.
///
/// # Errors
///
/// If the caller's token was revoked meanwhile.
fn requester(
    state: &HttpState,
    caller: Caller,
    connection: Option<&Connection>,
) -> Result<Option<Requester>, AccessRefusal> {
    let token = match caller {
        Caller::Operator(_) => return Ok(None),
        Caller::Client(token) => token,
        Caller::Tenant(token) => Some(token),
    };
    let name = token.as_deref().and_then(AcceptedToken::tenant_name);
    let tenant = state.tenants.find(name).ok_or(AccessRefusal::Unauthorized)?;
    Ok(Some(Requester { tenant, token, peer: connection.map(Connection::peer).unwrap_or_default() }))
}
