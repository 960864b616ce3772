//! The HTTP client below the transports and the sign-in, and checks of its requests and responses.

use std::time::Duration;

use http::header;
pub(crate) use reqwest::Client;
use reqwest::redirect::Policy;
use reqwest::{ClientBuilder, Response};
#[cfg(feature = "otel")]
pub(crate) use reqwest::{Error as RequestError, Request};

use super::errors::unavailable;
use crate::net::response::cause;
use crate::net::tls::install_provider;
use crate::tools::ToolError;

/// How long an unused connection is kept. This is below the idle timeouts of common servers and
/// proxies, so that a kept connection is rarely one that the other side is just closing.
const MAX_IDLE_TIME: Duration = Duration::from_secs(30);
const MAX_IDLE_CONNECTIONS: usize = 16;

/// Makes a connection pool with the bounds that apply to every request of this crate.
///
/// Redirects are not followed, and no content encoding is offered. Proxies come from the
/// environment. On a system without certificates no `https` server is trusted, and `http` servers
/// still work.
///
/// # Errors
///
/// If TLS cannot be set up at all.
pub(crate) fn client(connect_timeout: Duration) -> Result<Client, ToolError> {
    client_with(connect_timeout, |builder| builder)
}

/// As [`client`], for requests that upgrade their connection, which only HTTP/1.1 can.
///
/// # Errors
///
/// If TLS cannot be set up at all.
#[cfg(all(feature = "process", target_os = "linux"))]
pub(crate) fn upgrading_client(connect_timeout: Duration) -> Result<Client, ToolError> {
    client_with(connect_timeout, ClientBuilder::http1_only)
}

fn client_with(
    connect_timeout: Duration,
    adjust: fn(ClientBuilder) -> ClientBuilder,
) -> Result<Client, ToolError> {
    install_provider();
    let builder = || {
        let builder = Client::builder()
            .redirect(Policy::none())
            // Another library of the crate switches reqwest's decoding on.
            .no_gzip()
            .connect_timeout(connect_timeout)
            .tcp_nodelay(true)
            .tcp_keepalive(Duration::from_secs(30))
            .pool_idle_timeout(MAX_IDLE_TIME)
            .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
            .referer(false)
            .user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")));
        adjust(builder)
    };
    builder().build().or_else(|error| {
        tracing::warn!(error = cause(&error), "no server behind `https` can be trusted");
        let untrusting = builder().tls_certs_only([]).build();
        untrusting.map_err(|error| unavailable(format!("HTTP cannot be used: {}", cause(&error))))
    })
}

/// Whether a body is compressed. No encoding was offered, and decoding could expand a megabyte to ten
/// gigabytes.
pub(crate) fn is_compressed(response: &Response) -> bool {
    let encoding = response.headers().get(header::CONTENT_ENCODING);
    encoding.is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
}
