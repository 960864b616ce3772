//! Rate limits of runs: for each client, and for all clients together.

use std::time::Duration;

use rmcp::model::Extensions;

use crate::rate::{ClientBuckets, RateLimit, TokenBucket};

/// The rate limits of the runs of one server's clients.
#[derive(Default)]
pub(crate) struct RunRates {
    each_client: Option<ClientBuckets>,
    all_clients: Option<TokenBucket>,
}

/// Why a run does not start.
pub(crate) struct RateExceeded {
    pub(crate) message: String,
    /// Time until a retry makes sense.
    pub(crate) retry_after: Duration,
}

/// The client of a request that belongs to no session, as far as it can be told: its peer.
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
    /// These limits; one client over pipes has none.
    pub(crate) fn new(each_client: Option<RateLimit>, all_clients: Option<RateLimit>) -> Self {
        Self {
            each_client: each_client.and_then(ClientBuckets::new),
            all_clients: all_clients.and_then(TokenBucket::new),
        }
    }

    /// Counts a run of `client`.
    ///
    /// # Errors
    ///
    /// If a limit is reached. The client's own limit comes first: a client above it takes nothing
    /// from the others.
    pub(crate) fn take(&self, client: &str) -> Result<(), RateExceeded> {
        let exceeded = |whose: &str, limit: RateLimit, retry_after| {
            let time = limit.period.as_secs_f64();
            let message = format!("{whose} may run {} scripts in {time} s", limit.calls);
            RateExceeded { message, retry_after }
        };
        if let Some(buckets) = &self.each_client {
            buckets.take(client).map_err(|time| exceeded("a client", buckets.limit, time))?;
        }
        if let Some(bucket) = &self.all_clients {
            bucket.take().map_err(|time| exceeded("all clients together", bucket.limit, time))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
