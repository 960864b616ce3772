//! Rate limits as token buckets: of calls to a server, and of runs of a client.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota, RateLimiter};

/// Maximum number of clients with a bucket of their own. A bucket that was not used for its whole
/// period is removed, so this many clients must be active at the same time.
const MAX_CLIENTS: usize = 10_000;

/// Longer periods count as this one: governor counts nanoseconds in 64 bits, and panics after 584 years. No process
/// lives as long.
const MAX_PERIOD: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// A token bucket: `calls` in each `period`, in one burst if none were used before. A period that is too short for its
/// number of calls is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// The number of calls, or of runs.
    pub calls: NonZeroU32,
    /// The period in which this many are allowed.
    pub period: Duration,
}

impl RateLimit {
    /// This many in each minute.
    pub const fn per_minute(calls: NonZeroU32) -> Self {
        Self { calls, period: Duration::from_secs(60) }
    }

    /// `None` if the period is too short for a limit.
    fn quota(self) -> Option<Quota> {
        Some(Quota::with_period(self.period.min(MAX_PERIOD) / self.calls.get())?.allow_burst(self.calls))
    }
}

/// One token bucket.
pub(crate) struct TokenBucket {
    pub(crate) limit: RateLimit,
    tokens: DefaultDirectRateLimiter,
}

impl TokenBucket {
    /// A full bucket; `None` if the period is too short for a limit.
    pub(crate) fn new(limit: RateLimit) -> Option<Self> {
        Some(Self { limit, tokens: RateLimiter::direct(limit.quota()?) })
    }

    /// Takes a token.
    ///
    /// # Errors
    ///
    /// If there is none: the time until there is one.
    pub(crate) fn acquire(&self) -> Result<(), Duration> {
        self.tokens.check().map_err(|refusal| refusal.wait_time_from(DefaultClock::default().now()))
    }
}

/// A token bucket for each client.
#[cfg(feature = "server")]
pub(crate) struct ClientBuckets {
    pub(crate) limit: RateLimit,
    tokens: DefaultKeyedRateLimiter<String>,
}

#[cfg(feature = "server")]
impl ClientBuckets {
    /// Full buckets; `None` if the period is too short for a limit.
    pub(crate) fn new(limit: RateLimit) -> Option<Self> {
        Some(Self { limit, tokens: RateLimiter::keyed(limit.quota()?) })
    }

    /// Takes a token of this client. While there are too many clients they share one bucket.
    ///
    /// # Errors
    ///
    /// If there is none: the time until there is one.
    pub(crate) fn acquire(&self, client: &str) -> Result<(), Duration> {
        let is_full = || self.tokens.len() >= MAX_CLIENTS;
        if is_full() {
            self.tokens.retain_recent();
        }
        let key = if is_full() { String::new() } else { client.to_owned() };
        self.tokens.check_key(&key).map_err(|refusal| refusal.wait_time_from(DefaultClock::default().now()))
    }
}

#[cfg(test)]
mod tests;
