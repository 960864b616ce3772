//! Rate limits of runs: for each client, and for all clients together.

#[cfg(feature = "http")]
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use rmcp::model::Extensions;

use crate::rate::{ClientBuckets, RateLimit, TokenBucket};

/// Maximum runs of one client in a minute by default. More than an agent needs that works step by step, and few enough
/// that one client cannot keep the machine busy.
#[cfg(feature = "http")]
const CLIENT_RUNS_PER_MINUTE: NonZeroU32 = NonZeroU32::MIN.saturating_add(29);

/// The default rate limit of each client over HTTP.
#[cfg(feature = "http")]
pub(crate) const fn default_client_rate() -> RateLimit {
    RateLimit::per_minute(CLIENT_RUNS_PER_MINUTE)
}

/// The rate limits of the runs of one server's clients.
#[derive(Default)]
pub(crate) struct RunRates {
    each_client: RwLock<Arc<EachClient>>,
    all_clients: Option<TokenBucket>,
    /// The source of later rate limits of each client.
    source: Option<RateSource>,
}

/// The rate limit of each client.
#[derive(Default)]
struct EachClient {
    /// The limit from the configuration, if it has one.
    configured: Option<RateLimit>,
    buckets: Option<ClientBuckets>,
}

/// Reads the limit from the configuration in force, and the default.
type RateSource = (Box<dyn Fn() -> Option<RateLimit> + Send + Sync>, Option<RateLimit>);

/// Why a run was refused.
pub(crate) struct RateExceeded {
    pub(crate) message: String,
    /// Time until a retry makes sense.
    pub(crate) retry_after: Duration,
}

/// The client of a request that belongs to no session, as far as it can be identified: its peer.
#[derive(Clone, Debug)]
pub(crate) struct RequestClient(pub(crate) String);

impl RequestClient {
    /// The client of a request over HTTP.
    pub(crate) fn from_extensions(extensions: &Extensions) -> Option<&str> {
        let Self(client) = extensions.get::<http::request::Parts>()?.extensions.get()?;
        Some(client)
    }
}

impl RunRates {
    /// Makes limits. A single client over stdio has none.
    pub(crate) fn new(each_client: Option<RateLimit>, all_clients: Option<RateLimit>) -> Self {
        let buckets = each_client.and_then(ClientBuckets::new);
        Self {
            each_client: RwLock::new(Arc::new(EachClient { configured: None, buckets })),
            all_clients: all_clients.and_then(TokenBucket::new),
            source: None,
        }
    }

    /// Follows the configuration from now on: a changed limit of each client takes effect at once. `unconfigured` is
    /// used if the configuration has a limit now and has none later.
    #[cfg(all(feature = "http", feature = "mcp"))]
    pub(crate) fn following(
        mut self,
        configured: impl Fn() -> Option<RateLimit> + Send + Sync + 'static,
        unconfigured: Option<RateLimit>,
    ) -> Self {
        let now = configured();
        let each_client = self.each_client.get_mut();
        let first = each_client.buckets.as_ref().map(|buckets| buckets.limit);
        let unconfigured = if now.is_some() { unconfigured } else { first };
        if let Some(each_client) = Arc::get_mut(each_client) {
            each_client.configured = now;
        }
        self.source = Some((Box::new(configured), unconfigured));
        self
    }

    /// The limit of each client. A changed limit begins with full buckets.
    fn each_client(&self) -> Arc<EachClient> {
        let known = Arc::clone(&self.each_client.read());
        let Some((configured, unconfigured)) = &self.source else { return known };
        let configured = configured();
        if configured == known.configured {
            return known;
        }
        let mut each_client = self.each_client.write();
        if configured != each_client.configured {
            let buckets = configured.or(*unconfigured).and_then(ClientBuckets::new);
            *each_client = Arc::new(EachClient { configured, buckets });
        }
        Arc::clone(&each_client)
    }

    /// Counts a run of `client`.
    ///
    /// # Errors
    ///
    /// If a limit is reached. The client's own limit is checked first, so that a client above it takes nothing from
    /// others.
    pub(crate) fn acquire(&self, client: &str) -> Result<(), RateExceeded> {
        let exceeded = |whose: &str, limit: RateLimit, retry_after| {
            let time = limit.period.as_secs_f64();
            let message = format!("{whose} may run {} scripts in {time} s", limit.calls);
            RateExceeded { message, retry_after }
        };
        if let Some(buckets) = &self.each_client().buckets {
            buckets.acquire(client).map_err(|time| exceeded("a client", buckets.limit, time))?;
        }
        if let Some(bucket) = &self.all_clients {
            bucket.acquire().map_err(|time| exceeded("all clients together", bucket.limit, time))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
