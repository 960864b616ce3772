//! The limiter of every call to a server: the circuit breaker, the rate limit, and the number of
//! calls in flight.
//!
//! They are checked in this order, so that calls to a server that is down are refused at once, and
//! a refused call takes no slot.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::breaker::{Breaker, CallOutcome, Permit};
use super::counted::{Counted, GaugeKey};
use super::settings::McpServer;
use crate::queue::{Queue, QueueRefusal};
use crate::rate::TokenBucket;
use crate::sync;
use crate::tools::{ToolError, ToolErrorCode};

/// Retry time for a full queue. A slot is free as soon as one call ends.
const QUEUE_RETRY: Duration = Duration::from_secs(1);

/// The limiter of one server.
pub(crate) struct Limiter {
    server: Arc<str>,
    pub(crate) breaker: Arc<Breaker>,
    rate: Option<TokenBucket>,
    slots: Arc<Semaphore>,
    max_slots: usize,
    queue: Queue,
    in_flight: GaugeKey,
    waiting: GaugeKey,
    rate_limited_total: AtomicU64,
    queue_full_total: AtomicU64,
}

/// A call that has passed the limiter. Holds its slot until it is dropped.
pub(crate) struct Admitted {
    permit: Permit,
    _slot: OwnedSemaphorePermit,
    _active: Counted,
}

impl Limiter {
    pub(crate) fn new(server: &Arc<str>, settings: &McpServer) -> Self {
        let max_slots = settings.max_concurrent.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            server: Arc::clone(server),
            breaker: Breaker::new(Arc::clone(server)),
            rate: settings.rate_limit.and_then(TokenBucket::new),
            slots: Arc::new(Semaphore::new(max_slots)),
            max_slots,
            queue: Queue::new(settings.max_queued, settings.queue_timeout),
            in_flight: GaugeKey::new("pool_active_connections", server),
            waiting: GaugeKey::new("pool_queue_depth", server),
            rate_limited_total: AtomicU64::new(0),
            queue_full_total: AtomicU64::new(0),
        }
    }

    /// Admits a call, if necessary after a wait for a slot.
    ///
    /// # Errors
    ///
    /// `CircuitOpen`, `RateLimited`, `QueueFull`, each with the time until a retry makes sense;
    /// `Cancelled`; `ToolTimeout` if the run ends first.
    pub(crate) async fn enter(
        &self,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Admitted, ToolError> {
        let permit = self.enter_breaker()?;
        self.check_rate()?;
        let slot = self.take_slot(deadline, cancel).await?;
        Ok(Admitted { permit, _slot: slot, _active: self.in_flight.count() })
    }

    /// Admits a start for a list of tools: the circuit breaker must permit it, the other limits do not apply.
    ///
    /// # Errors
    ///
    /// `CircuitOpen`, with the time until a retry makes sense.
    pub(crate) fn enter_breaker(&self) -> Result<Permit, ToolError> {
        self.breaker.enter(Instant::now()).map_err(|retry_after| {
            let message = format!(
                "circuit open: server `{}` has failed {} times in a row and gets no calls for {} s",
                self.server,
                super::breaker::FAILURES,
                retry_after.as_secs_f64().ceil()
            );
            refused(ToolErrorCode::CircuitOpen, message, retry_after)
        })
    }

    fn check_rate(&self) -> Result<(), ToolError> {
        let Some(rate) = &self.rate else { return Ok(()) };
        rate.acquire().map_err(|retry_after| {
            self.rate_limited_total.fetch_add(1, Ordering::Relaxed);
            metrics::counter!("rate_limited_total", "server" => self.server.to_string()).increment(1);
            let message = format!(
                "server `{}` may be called {} times in {} s",
                self.server,
                rate.limit.calls,
                rate.limit.period.as_secs_f64()
            );
            refused(ToolErrorCode::RateLimited, message, retry_after)
        })
    }

    async fn take_slot(
        &self,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<OwnedSemaphorePermit, ToolError> {
        let began = Instant::now();
        let record_wait = || {
            metrics::histogram!("pool_queue_wait_seconds", "server" => self.server.to_string())
                .record(began.elapsed());
        };
        let acquire = async {
            if let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() {
                return Some(slot);
            }
            let _waiting = self.waiting.count();
            let slot = Arc::clone(&self.slots).acquire_owned().await.ok();
            record_wait();
            slot
        };
        let Queue { max_waiting, max_wait, .. } = self.queue;
        match self.queue.enter(acquire, Some(deadline), cancel, sync::sleep).await {
            Ok(Some(slot)) => Ok(slot),
            Ok(None) | Err(QueueRefusal::Cancelled) => {
                Err(ToolError::new(ToolErrorCode::Cancelled, "the run is over"))
            }
            Err(QueueRefusal::DeadlinePassed) => {
                record_wait();
                let message = format!("server `{}` had no free slot before the run's end", self.server);
                Err(ToolError::new(ToolErrorCode::ToolTimeout, message))
            }
            Err(QueueRefusal::Full) => Err(self.queue_full(format!(
                "server `{}` has {} calls running and {max_waiting} waiting",
                self.server, self.max_slots
            ))),
            Err(QueueRefusal::TimedOut) => {
                record_wait();
                Err(self.queue_full(format!(
                    "server `{}` had no free slot within {} s",
                    self.server,
                    max_wait.as_secs_f64()
                )))
            }
        }
    }

    fn queue_full(&self, message: String) -> ToolError {
        self.queue_full_total.fetch_add(1, Ordering::Relaxed);
        metrics::counter!("pool_queue_full_total", "server" => self.server.to_string()).increment(1);
        refused(ToolErrorCode::QueueFull, message, QUEUE_RETRY)
    }

    /// The number of calls in flight.
    pub(crate) fn active(&self) -> usize {
        self.max_slots - self.slots.available_permits()
    }

    /// The number of calls that wait for a slot.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    /// The number of calls that were refused because of the rate limit.
    pub(crate) fn rate_limited_total(&self) -> u64 {
        self.rate_limited_total.load(Ordering::Relaxed)
    }

    /// The number of calls that were refused because too many were waiting, or because they waited
    /// too long.
    pub(crate) fn queue_full_total(&self) -> u64 {
        self.queue_full_total.load(Ordering::Relaxed)
    }
}

impl Admitted {
    /// Records the call's outcome with the breaker, which decides about later calls.
    pub(crate) fn record<T>(self, result: &Result<T, ToolError>) {
        self.permit.record(outcome(result), Instant::now());
    }
}

/// Whether an error is the server's answer to one call and not a failure of the server.
pub(crate) const fn is_answer(code: ToolErrorCode) -> bool {
    matches!(
        code,
        ToolErrorCode::ToolError
            | ToolErrorCode::ToolNotFound
            | ToolErrorCode::InvalidArguments
            | ToolErrorCode::ResultTooLarge
    )
}

/// The outcome of a call for the breaker. Any answer means that the server is healthy; errors from
/// before the call was sent mean nothing.
fn outcome<T>(result: &Result<T, ToolError>) -> CallOutcome {
    match result.as_ref().map_err(|error| error.code) {
        Ok(_) => CallOutcome::Healthy,
        Err(code) if is_answer(code) => CallOutcome::Healthy,
        Err(
            ToolErrorCode::ToolTimeout | ToolErrorCode::UpstreamUnavailable | ToolErrorCode::UpstreamProtocol,
        ) => CallOutcome::Failed,
        Err(_) => CallOutcome::Unknown,
    }
}

fn refused(code: ToolErrorCode, message: String, retry_after: Duration) -> ToolError {
    ToolError { retry_after: Some(retry_after), ..ToolError::new(code, message) }
}

#[cfg(test)]
mod tests;
