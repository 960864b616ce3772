//! The time limit of a call, which stands still while its server waits for the user.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::sleep_until;

use crate::pauses::Pauses;

/// Counts how long questions of one call were open. Shared by all time limits of the call.
#[derive(Default)]
pub(crate) struct Patience {
    pauses: Mutex<Pauses>,
    /// Notified when the first pause begins and the last one ends.
    changed: Notify,
}

/// Stops the time until it is dropped.
pub(crate) struct Pause(Arc<Patience>);

impl Patience {
    /// Stops the time limits until the returned value is dropped.
    pub(crate) fn pause(self: &Arc<Self>) -> Pause {
        self.pauses.lock().begin(Instant::now());
        self.changed.notify_waiters();
        Pause(Arc::clone(self))
    }

    /// Completes when `limit` has passed since now, without the time of the pauses, and at the latest
    /// at `deadline`, for which no time stands still. One timer for both: setting one wakes a thread
    /// of the runtime.
    pub(crate) async fn elapsed(&self, limit: Duration, deadline: Option<Instant>) {
        let (begun, before) = (Instant::now(), self.paused());
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed.
            changed.as_mut().enable();
            let is_paused = self.pauses.lock().open > 0;
            // A duration that overflows never passes.
            let limit = limit.saturating_add(self.paused().saturating_sub(before));
            let until = if is_paused { None } else { begun.checked_add(limit) };
            match until.into_iter().chain(deadline).min() {
                Some(until) => tokio::select! {
                    () = sleep_until(until.into()) => return,
                    () = changed => {}
                },
                None => changed.await,
            }
        }
    }

    /// Total duration of all pauses until now.
    fn paused(&self) -> Duration {
        self.pauses.lock().total(Instant::now())
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        self.0.pauses.lock().end(Instant::now());
        self.0.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
