//! What every call to a server passes before it is sent: the breaker, the rate limit, a place.
//!
//! In this order, so that a server that is down is refused at once and a call that is refused takes
//! nobody's place.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout_at;
use tokio_util::sync::CancellationToken;

use super::breaker::{Breaker, CallOutcome, Permit};
use super::settings::{McpServer, RateLimit};
use crate::tools::{ToolError, ToolErrorCode};

/// When a full queue is worth trying again. A place is free as soon as one call ends.
const QUEUE_RETRY: Duration = Duration::from_secs(1);

/// The limiter of one server.
pub(super) struct Limiter {
    server: Arc<str>,
    pub(super) breaker: Arc<Breaker>,
    limiter: Option<(RateLimit, DefaultDirectRateLimiter)>,
    places: Arc<Semaphore>,
    most_places: usize,
    most_waiting: usize,
    longest_wait: Duration,
    waiting: AtomicUsize,
    rate_limited_total: AtomicU64,
    queue_full_total: AtomicU64,
}

/// A call that has passed. Holds its place until it is dropped.
pub(super) struct Admitted {
    permit: Permit,
    _place: OwnedSemaphorePermit,
    _active: Active,
}

impl Limiter {
    pub(super) fn new(server: &Arc<str>, settings: &McpServer) -> Self {
        let most_places = settings.max_concurrent.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            server: Arc::clone(server),
            breaker: Breaker::new(Arc::clone(server)),
            limiter: settings.rate_limit.and_then(|limit| {
                let quota = Quota::with_period(limit.period / limit.calls.get())?.allow_burst(limit.calls);
                Some((limit, RateLimiter::direct(quota)))
            }),
            places: Arc::new(Semaphore::new(most_places)),
            most_places,
            most_waiting: settings.max_queued,
            longest_wait: settings.queue_timeout,
            waiting: AtomicUsize::new(0),
            rate_limited_total: AtomicU64::new(0),
            queue_full_total: AtomicU64::new(0),
        }
    }

    /// Lets a call through to the server, after a wait for a place if need be.
    ///
    /// # Errors
    ///
    /// `CircuitOpen`, `RateLimited`, `QueueFull`, each with when to try again; `Cancelled`;
    /// `ToolTimeout` when the run ends first.
    pub(super) async fn enter(
        &self,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Admitted, ToolError> {
        let permit = self.breaker.enter(Instant::now()).map_err(|retry_after| {
            let message = format!(
                "circuit open: server `{}` has failed {} times in a row and is left alone for {} s",
                self.server,
                super::breaker::FAILURES,
                retry_after.as_secs_f64().ceil()
            );
            refused(ToolErrorCode::CircuitOpen, message, retry_after)
        })?;
        self.check_rate()?;
        let place = match Arc::clone(&self.places).try_acquire_owned() {
            Ok(place) => place,
            Err(_) => self.wait_for_place(deadline, cancel).await?,
        };
        let active = Active::new(&self.server);
        Ok(Admitted { permit, _place: place, _active: active })
    }

    fn check_rate(&self) -> Result<(), ToolError> {
        let Some((limit, limiter)) = &self.limiter else { return Ok(()) };
        limiter.check().map_err(|refusal| {
            self.rate_limited_total.fetch_add(1, Ordering::Relaxed);
            metrics::counter!("rate_limited_total", "server" => self.server.to_string()).increment(1);
            let message = format!(
                "server `{}` may be called {} times in {} s",
                self.server,
                limit.calls,
                limit.period.as_secs_f64()
            );
            refused(
                ToolErrorCode::RateLimited,
                message,
                refusal.wait_time_from(DefaultClock::default().now()),
            )
        })
    }

    async fn wait_for_place(
        &self,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<OwnedSemaphorePermit, ToolError> {
        let began = Instant::now();
        let _waiting = Waiting::new(self).ok_or_else(|| {
            self.queue_full(format!(
                "server `{}` has {} calls running and {} waiting",
                self.server, self.most_places, self.most_waiting
            ))
        })?;
        let limit = deadline.min(began + self.longest_wait);
        let acquired = tokio::select! {
            biased;
            place = timeout_at(limit.into(), Arc::clone(&self.places).acquire_owned()) => place,
            () = cancel.cancelled() => {
                return Err(ToolError::new(ToolErrorCode::Cancelled, "the run is over"));
            }
        };
        metrics::histogram!("pool_queue_wait_seconds", "server" => self.server.to_string())
            .record(began.elapsed());
        match acquired {
            Ok(Ok(place)) => Ok(place),
            _ if limit == deadline => {
                let message = format!("server `{}` had no place free before the run's end", self.server);
                Err(ToolError::new(ToolErrorCode::ToolTimeout, message))
            }
            _ => Err(self.queue_full(format!(
                "server `{}` had no place free within {} s",
                self.server,
                self.longest_wait.as_secs_f64()
            ))),
        }
    }

    fn queue_full(&self, message: String) -> ToolError {
        self.queue_full_total.fetch_add(1, Ordering::Relaxed);
        metrics::counter!("pool_queue_full_total", "server" => self.server.to_string()).increment(1);
        refused(ToolErrorCode::QueueFull, message, QUEUE_RETRY)
    }

    /// Calls that are with the server.
    pub(super) fn active(&self) -> usize {
        self.most_places - self.places.available_permits()
    }

    /// Calls that wait for a place.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Calls that were refused because of the rate limit.
    pub(super) fn rate_limited_total(&self) -> u64 {
        self.rate_limited_total.load(Ordering::Relaxed)
    }

    /// Calls that were refused because too many were waiting or because they waited too long.
    pub(super) fn queue_full_total(&self) -> u64 {
        self.queue_full_total.load(Ordering::Relaxed)
    }
}

impl Admitted {
    /// Says what came of the call, which decides about the calls after it.
    pub(super) fn record<T>(self, result: &Result<T, ToolError>) {
        self.permit.record(outcome(result), Instant::now());
    }
}

/// What an outcome says about the server. That it answers is healthy, whatever it answers; what
/// happened before the call was sent says nothing.
fn outcome<T>(result: &Result<T, ToolError>) -> CallOutcome {
    match result.as_ref().map_err(|error| error.code) {
        Ok(_)
        | Err(
            ToolErrorCode::ToolError
            | ToolErrorCode::ToolNotFound
            | ToolErrorCode::InvalidArguments
            | ToolErrorCode::ResultTooLarge,
        ) => CallOutcome::Healthy,
        Err(
            ToolErrorCode::ToolTimeout | ToolErrorCode::UpstreamUnavailable | ToolErrorCode::UpstreamProtocol,
        ) => CallOutcome::Failed,
        Err(_) => CallOutcome::Unknown,
    }
}

fn refused(code: ToolErrorCode, message: String, retry_after: Duration) -> ToolError {
    ToolError { retry_after: Some(retry_after), ..ToolError::new(code, message) }
}

/// Counts a waiting call, down again however it ends.
struct Waiting<'a>(&'a Limiter);

impl<'a> Waiting<'a> {
    fn new(limiter: &'a Limiter) -> Option<Self> {
        let waiting = Self(limiter);
        let before = limiter.waiting.fetch_add(1, Ordering::Relaxed);
        metrics::gauge!("pool_queue_depth", "server" => limiter.server.to_string()).increment(1);
        (before < limiter.most_waiting).then_some(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
        metrics::gauge!("pool_queue_depth", "server" => self.0.server.to_string()).decrement(1);
    }
}

/// Shows a running call to whoever watches.
struct Active(metrics::Gauge);

impl Active {
    fn new(server: &Arc<str>) -> Self {
        let gauge = metrics::gauge!("pool_active_connections", "server" => server.to_string());
        gauge.increment(1);
        Self(gauge)
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}

#[cfg(test)]
mod tests;
