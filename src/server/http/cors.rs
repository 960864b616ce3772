//! The CORS headers that let a page of an allowed origin use the server.
//!
//! tower-http's layer lets the requests of other origins through, and leaves it to the browser to
//! withhold the answer; it also answers every `OPTIONS` request. Here
//! [`Authentication`](super::authentication::Authentication) has refused other origins before
//! anything is read, so that only the headers are left.

use axum::extract::Request;
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, VARY,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};

/// How long a browser may cache the answer to a preflight request.
const PREFLIGHT_SECONDS: HeaderValue = HeaderValue::from_static("600");

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");

/// Those of MCP and of REST, and of the trace context.
const REQUEST_HEADERS: &str = "Accept, Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id, Traceparent, Tracestate";

/// What the names of headers begin with that repeat an argument of a tool, which the tool's schema names.
const OF_ARGUMENTS: &str = "mcp-param-";

const RESPONSE_HEADERS: HeaderValue =
    HeaderValue::from_static("Idempotency-Replayed, Location, Mcp-Session-Id, Retry-After, WWW-Authenticate");

/// Whether the request is a preflight: a browser asks what a page of an allowed origin may send. It has no token.
pub(crate) fn is_preflight(request: &Request) -> bool {
    *request.method() == Method::OPTIONS && request.headers().contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to a preflight: what a page may send. `asked` are the headers of the preflight.
pub(crate) fn preflight_response(asked: &HeaderMap) -> Response {
    let headers = [
        (ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (ACCESS_CONTROL_ALLOW_HEADERS, request_headers(asked)),
        (ACCESS_CONTROL_MAX_AGE, PREFLIGHT_SECONDS),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// The headers that a page may send. Those of arguments have any names, so that the ones are allowed which it asks for.
fn request_headers(asked: &HeaderMap) -> HeaderValue {
    let lists = asked.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter().filter_map(|value| value.to_str().ok());
    let names = lists.flat_map(|list| list.split(',')).map(|name| name.trim().to_ascii_lowercase());
    let of_arguments = names.filter(|name| name.starts_with(OF_ARGUMENTS));
    let allowed = of_arguments.fold(REQUEST_HEADERS.to_owned(), |allowed, name| allowed + ", " + &name);
    HeaderValue::from_str(&allowed).unwrap_or_else(|_invalid| HeaderValue::from_static(REQUEST_HEADERS))
}

/// Adds the headers that let a page of `origin` read the answer.
pub(crate) fn allow_reading(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, RESPONSE_HEADERS);
    headers.append(VARY, HeaderValue::from_static("Origin"));
}
