//! Counts calls and requests to language models that were sent and have not ended, so that the end of a trail waits for
//! theirs.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::run::observer::RunEvent;

/// Number of calls and requests to language models whose sending was reported and whose end was not.
#[derive(Default)]
pub(super) struct OpenEffects {
    count: Mutex<usize>,
    none_left: Condvar,
}

impl OpenEffects {
    /// Counts an event that was recorded.
    pub(super) fn count(&self, event: &RunEvent<'_>) {
        match event {
            RunEvent::Sending(_) | RunEvent::ModelSending(_) => *self.count.lock() += 1,
            RunEvent::Answered(_) | RunEvent::ModelAnswered(_) => {
                let mut count = self.count.lock();
                *count = count.saturating_sub(1);
                if *count == 0 {
                    self.none_left.notify_all();
                }
            }
            _ => {}
        }
    }

    /// Waits until nothing is open, for at most `max_wait`.
    pub(super) fn wait(&self, max_wait: Duration) {
        let deadline = Instant::now() + max_wait;
        let mut count = self.count.lock();
        while *count > 0 {
            if self.none_left.wait_until(&mut count, deadline).timed_out() {
                return;
            }
        }
    }

    /// Number of threads that wait.
    #[cfg(test)]
    pub(super) fn awaited(&self) -> usize {
        // The threads that are woken look at the count and wait again.
        self.none_left.notify_all()
    }
}
