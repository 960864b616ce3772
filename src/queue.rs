//! A bounded queue in front of a limited resource: the permits of runs, and the slots of a server.
//!
//! tokio's `Semaphore` orders its waiters and bounds neither their number nor their time. tower's
//! `ConcurrencyLimit` does not either, and its `LoadShed` refuses at once, without a queue.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use tokio_util::sync::CancellationToken;

use crate::sync::{self, AtomicUsize};

/// Bounds the number of waiters and the time that each waits. Their order is that of the resource,
/// for example of a semaphore.
pub(crate) struct Queue {
    waiting: AtomicUsize,
    pub(crate) max_waiting: usize,
    pub(crate) max_wait: Duration,
}

/// Why a caller was not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueRefusal {
    /// The queue has no free slot.
    Full,
    /// The maximum waiting time is over.
    TimedOut,
    /// The caller's own deadline has passed.
    DeadlinePassed,
    Cancelled,
}

impl Queue {
    /// Lets at most `max_waiting` callers wait, each for at most `max_wait`.
    pub(crate) fn new(max_waiting: usize, max_wait: Duration) -> Self {
        Self { waiting: AtomicUsize::new(0), max_waiting, max_wait }
    }

    /// The number of waiting callers.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Completes with `acquire`: immediately if it is ready, else after a wait within the bounds.
    /// `timer` makes the timer of a wait. Dropping the future frees the slot.
    ///
    /// # Errors
    ///
    /// [`QueueRefusal`] says why `acquire` did not complete.
    pub(crate) async fn enter<T, Timer: Future<Output = ()>>(
        &self,
        acquire: impl Future<Output = T>,
        deadline: Option<Instant>,
        cancel: &CancellationToken,
        timer: impl FnOnce(Duration) -> Timer,
    ) -> Result<T, QueueRefusal> {
        tokio::pin!(acquire);
        if let Some(acquired) = acquire.as_mut().now_or_never() {
            return Ok(acquired);
        }
        let _slot = self.take_slot()?;
        let left = deadline.map(|deadline| deadline.saturating_duration_since(sync::now()));
        let (wait, at_the_end) = match left {
            Some(left) if left <= self.max_wait => (left, QueueRefusal::DeadlinePassed),
            _ => (self.max_wait, QueueRefusal::TimedOut),
        };
        tokio::select! {
            biased;
            acquired = acquire => Ok(acquired),
            () = timer(wait) => Err(at_the_end),
            () = cancel.cancelled() => Err(QueueRefusal::Cancelled),
        }
    }

    fn take_slot(&self) -> Result<Slot<'_>, QueueRefusal> {
        let slot = Slot(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.max_waiting {
            // Dropping the slot counts down again.
            return Err(QueueRefusal::Full);
        }
        Ok(slot)
    }
}

/// A slot in the queue, held until it is dropped.
struct Slot<'a>(&'a AtomicUsize);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
