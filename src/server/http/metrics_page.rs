//! Serves metrics at a separate address, for a server whose client is at stdin and stdout, with the page of runs beside
//! them.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, Method, Request, StatusCode};
use axum::response::{IntoResponse as _, Response};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::authentication::Authentication;
use super::middleware::METRICS;
use super::options::{MetricsOptions, MetricsPrinter};
use super::page::Page;
use super::responses::{plain, refused};
use super::routes::PROMETHEUS;
use super::small_server::{self, Answer};
use super::token_changes;
use crate::error::Error;
use crate::server::metrics;
use crate::server::shared::Shared;

/// Serves `GET /metrics`, the page if there is one, and nothing else until `stop` is cancelled. See
/// [`Server::serve_metrics`](crate::server::Server::serve_metrics).
///
/// # Errors
///
/// [`Error::InvalidOptions`] if other machines can reach the address and there is no token of at
/// least 32 characters; [`Error::Start`] if the listener has no local address.
pub(crate) async fn serve(
    shared: &Arc<Shared>,
    listener: TcpListener,
    options: MetricsOptions,
    stop: &CancellationToken,
) -> Result<(), Error> {
    let MetricsOptions { print, token, token_reader, page } = options;
    let address =
        listener.local_addr().map_err(|source| Error::Start { what: "the metrics page", source })?;
    let has_token = token.is_some();
    let authentication = Arc::new(Authentication::new(address.ip(), &[], token, Vec::new())?);
    // Ends with this.
    let mut following = JoinSet::new();
    if let Some(read) = token_reader.filter(|_| has_token) {
        let (shared, authentication) = (Arc::clone(shared), Arc::clone(&authentication));
        following.spawn(token_changes::follow_page(shared, authentication, read));
    }
    let pages = Arc::new(Pages { shared: Arc::clone(shared), authentication, print, page });
    let answer: Answer = Arc::new(move |request| {
        let pages = Arc::clone(&pages);
        Box::pin(async move { pages.answer(request).await })
    });
    small_server::serve(&listener, answer, stop).await;
    Ok(())
}

struct Pages {
    shared: Arc<Shared>,
    authentication: Arc<Authentication>,
    print: MetricsPrinter,
    page: Option<Page>,
}

impl Pages {
    async fn answer(&self, request: Request<Body>) -> Response {
        if let Some(page) = &self.page
            && page.has(request.uri().path())
        {
            return page.answer(&self.authentication, request).await;
        }
        let allowed = self
            .authentication
            .check_source(request.uri(), request.headers())
            .and_then(|_origin| self.authentication.check_operator(request.headers()));
        if let Err(refusal) = allowed {
            return refused(&refusal);
        }
        if request.uri().path() != METRICS {
            let there_is = if self.page.is_some() {
                "there are only `/metrics` and `/ui` here"
            } else {
                "there is only `/metrics` here"
            };
            return plain(StatusCode::NOT_FOUND, there_is);
        }
        // As on the address of `--http`, where monitors ask with HEAD too.
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD");
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        metrics::sample(&self.shared, 0, 0);
        let no_store = (CACHE_CONTROL, HeaderValue::from_static("no-store"));
        ([no_store, (CONTENT_TYPE, PROMETHEUS)], (self.print)()).into_response()
    }
}
