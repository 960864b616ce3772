//! The options of a server over HTTP.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::authentication::Authentication;
use super::page::Page;
use super::tenants::{HttpTenant, TenantReader};
use super::token::{HttpToken, TokenReader};
use crate::error::Error;
use crate::rate::RateLimit;
use crate::server::run_rate::default_client_rate;

/// Renders all metrics as text, for [`HttpOptions::metrics`] and [`MetricsOptions`].
pub type MetricsPrinter = Arc<dyn Fn() -> String + Send + Sync>;

/// Options of [`Server::serve_http`](crate::server::Server::serve_http).
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpOptions {
    /// Origins, such as `https://app.example.com`, whose pages may send requests. Loopback origins
    /// are always allowed.
    pub allow_origins: Vec<String>,
    /// The token that clients must send. Required if other machines can reach the server. If there are tenants, this
    /// is the operator's: it reads the metrics and opens the page of runs, and is not accepted for anything else.
    pub token: Option<HttpToken>,
    /// Reads the token again, every two seconds, on a thread that may block. A different token replaces the last one at
    /// once, if [`validate`](Self::validate) accepts it. A server that starts without a token never gets one. The last
    /// token is revoked in the same way as those of tenants ([`tenant_reader`](Self::tenant_reader)). If there are
    /// tenants, the sessions of the page that were started with it end. Default: none, and the token never changes.
    pub token_reader: Option<TokenReader>,
    /// The tenants, by the tokens of their clients; at most 64 tokens. Sessions, run records, `state`, answers to
    /// idempotency keys and rate limits are separate for each tenant, and each has a share of the sessions and
    /// connections. Tools, grants and limits of scripts are the same for all. An executor with several tenants should
    /// use [worker processes](crate::Isolation::Process). Default: none; clients with the same token then differ only
    /// by their sessions.
    pub tenants: Vec<HttpTenant>,
    /// Reads the tenants again, every two seconds, on a thread that may block. Different tenants replace the last ones
    /// at once, if [`validate`](Self::validate) accepts them; a server that starts without tenants never gets any. A
    /// token that is no longer in the list is revoked: requests with it are refused, its runs are cancelled at once,
    /// and its sessions and requests end within two seconds. Default: none; the tenants never change.
    pub tenant_reader: Option<TenantReader>,
    /// Renders the text of `/metrics`, for example from the application's Prometheus recorder.
    /// Without it the path is not found.
    pub metrics: Option<MetricsPrinter>,
    /// The page at `/ui`. Without it the path is not found.
    pub page: Option<Page>,
    /// Maximum number of runs that have a worker process of this machine at the same time, of executors of other
    /// machines, which send their scripts here ([`Isolation::Remote`](crate::Isolation::Remote)). As many more are
    /// started for runs that come later. Default: 0, which lends none. Linux only.
    pub lent_workers: usize,
    /// Maximum number of sessions, which only clients of the handshake revisions have. Default:
    /// 256.
    pub max_sessions: usize,
    /// How long a session is kept while its client sends nothing and does not listen. Default: 30
    /// minutes.
    pub session_idle: Duration,
    /// How long runs may continue when the server is stopped. Meanwhile no run starts (`ENGINE_UNAVAILABLE`, over REST
    /// 503), `/healthz` is 503, and all other requests are answered: clients read their tasks, answer approval prompts
    /// and get their answers. The server ends as soon as no call is in flight and no lent worker has a run. Runs that
    /// wait for their client to repeat a call with an answer do not count. Default: none; runs are cancelled at once.
    pub drain_time: Duration,
    /// Cancel it to end that time early: runs that are left are then cancelled.
    pub end_drain: CancellationToken,
    /// Maximum number of runs of each client in a period: of each session, and of each peer whose
    /// requests have no session. `None` for no limit. Default: 30 in a minute. A client that opens
    /// more sessions may run more; [`run_rate`](Self::run_rate) bounds them all.
    pub client_rate: Option<RateLimit>,
    /// Maximum number of runs of all clients together in a period; if there are tenants, of the clients of each tenant.
    /// Default: no limit.
    pub run_rate: Option<RateLimit>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            allow_origins: Vec::new(),
            token: None,
            token_reader: None,
            tenants: Vec::new(),
            tenant_reader: None,
            metrics: None,
            page: None,
            lent_workers: 0,
            max_sessions: 256,
            session_idle: Duration::from_secs(30 * 60),
            drain_time: Duration::ZERO,
            end_drain: CancellationToken::new(),
            client_rate: Some(default_client_rate()),
            run_rate: None,
        }
    }
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HttpOptions")
            .field("allow_origins", &self.allow_origins)
            .field("token", &self.token)
            .field("tenants", &self.tenants)
            .field("lent_workers", &self.lent_workers)
            .field("max_sessions", &self.max_sessions)
            .field("session_idle", &self.session_idle)
            .field("drain_time", &self.drain_time)
            .field("client_rate", &self.client_rate)
            .field("run_rate", &self.run_rate)
            .finish_non_exhaustive()
    }
}

impl HttpOptions {
    /// Checks whether a server at `address` may be started with these options.
    /// [`Server::serve_http`](crate::server::Server::serve_http) checks this first.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if other machines can reach the address and there is no token of
    /// at least 32 characters, or a shorter one too; if two tenants have the same token; or if an entry of
    /// `allow_origins` is not an origin.
    pub fn validate(&self, address: IpAddr) -> Result<(), Error> {
        let (token, tenants) = (self.token.clone(), self.tenants.clone());
        Authentication::new(address, &self.allow_origins, token, tenants).map(drop)
    }
}

/// Options of [`Server::serve_metrics`](crate::server::Server::serve_metrics).
#[derive(Clone)]
#[non_exhaustive]
pub struct MetricsOptions {
    /// Renders the text of `/metrics`, for example from the application's Prometheus recorder.
    pub print: MetricsPrinter,
    /// The token that readers must send. Required if other machines can reach the address. Default: none.
    pub token: Option<HttpToken>,
    /// Reads the token again, as [`HttpOptions::token_reader`] does. Default: none, and the token never changes.
    pub token_reader: Option<TokenReader>,
    /// The page at `/ui`. Default: none, and the path is not found.
    pub page: Option<Page>,
}

impl MetricsOptions {
    /// Metrics for every program of this machine, and no page.
    pub fn new(print: MetricsPrinter) -> Self {
        Self { print, token: None, token_reader: None, page: None }
    }
}

impl fmt::Debug for MetricsOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MetricsOptions").field("token", &self.token).finish_non_exhaustive()
    }
}
