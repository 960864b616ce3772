//! A bounded queue in front of what there is only so much of: places for runs, and the slots of a
//! server.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use tokio_util::sync::CancellationToken;

use crate::sync::{self, AtomicUsize};

/// Bounds how many wait, and for how long. What they wait for, a semaphore's permit say, decides
/// their order.
pub(crate) struct Queue {
    waiting: AtomicUsize,
    pub(crate) max_waiting: usize,
    pub(crate) max_wait: Duration,
}

/// Why somebody who wanted to enter did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// As many wait as may wait.
    Full,
    /// It took longer than one may wait.
    TimedOut,
    /// The caller's own deadline has passed.
    DeadlinePassed,
    Cancelled,
}

impl Queue {
    /// At most `max_waiting` wait, each for at most `max_wait`.
    pub(crate) fn new(max_waiting: usize, max_wait: Duration) -> Self {
        Self { waiting: AtomicUsize::new(0), max_waiting, max_wait }
    }

    /// How many wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Completes with `acquire`: at once if nothing has to be waited for, else after a wait within
    /// the bounds. `timer` makes the timer of a wait. Dropping the future gives the place up.
    ///
    /// # Errors
    ///
    /// Why it did not complete.
    pub(crate) async fn enter<T, Timer: Future<Output = ()>>(
        &self,
        acquire: impl Future<Output = T>,
        deadline: Option<Instant>,
        cancel: &CancellationToken,
        timer: impl FnOnce(Duration) -> Timer,
    ) -> Result<T, Refusal> {
        tokio::pin!(acquire);
        if let Some(acquired) = acquire.as_mut().now_or_never() {
            return Ok(acquired);
        }
        let _place = self.take_place()?;
        let left = deadline.map(|deadline| deadline.saturating_duration_since(sync::now()));
        let (wait, at_the_end) = match left {
            Some(left) if left <= self.max_wait => (left, Refusal::DeadlinePassed),
            _ => (self.max_wait, Refusal::TimedOut),
        };
        tokio::select! {
            biased;
            acquired = acquire => Ok(acquired),
            () = timer(wait) => Err(at_the_end),
            () = cancel.cancelled() => Err(Refusal::Cancelled),
        }
    }

    fn take_place(&self) -> Result<Place<'_>, Refusal> {
        let place = Place(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.max_waiting {
            // Dropping the place counts down again.
            return Err(Refusal::Full);
        }
        Ok(place)
    }
}

/// A place in the queue, until it is dropped.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
