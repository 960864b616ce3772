//! Pauses of a clock that may overlap: time within several of them counts once.

use std::time::{Duration, Instant};

/// The pauses so far.
#[derive(Default)]
pub(crate) struct Pauses {
    /// How many are open.
    pub(crate) open: usize,
    /// When the first of the open pauses began.
    since: Option<Instant>,
    /// Total duration of the pauses that have ended.
    ended: Duration,
}

impl Pauses {
    pub(crate) fn begin(&mut self, now: Instant) {
        self.open += 1;
        self.since.get_or_insert(now);
    }

    /// Ends one that has begun.
    pub(crate) fn end(&mut self, now: Instant) {
        self.open -= 1;
        if self.open == 0
            && let Some(since) = self.since.take()
        {
            self.ended += now.duration_since(since);
        }
    }

    /// Total duration until now.
    pub(crate) fn total(&self, now: Instant) -> Duration {
        self.ended + self.since.map_or(Duration::ZERO, |since| now.duration_since(since))
    }
}
