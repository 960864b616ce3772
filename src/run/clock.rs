//! The wall clock of one run, which stands still while a person is asked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::run::limits::Limits;
use crate::sync::{Mutex, now};

/// Runs from its making. Shared with the questions, each of which holds a [`Pause`].
pub(super) struct RunClock {
    started: Instant,
    wall_time: Duration,
    most_paused: Duration,
    pauses: Mutex<Pauses>,
}

#[derive(Default)]
struct Pauses {
    open: usize,
    /// When the first of the open ones began.
    since: Option<Instant>,
    /// How long those took that are over.
    ended: Duration,
}

impl RunClock {
    pub(super) fn start(limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            started: now(),
            wall_time: limits.wall_time,
            most_paused: limits.paused_time,
            pauses: Mutex::default(),
        })
    }

    pub(super) fn started(&self) -> Instant {
        self.started
    }

    /// When the run must be over if no pause begins or goes on: in a pause it moves along, as far as pauses may.
    pub(super) fn deadline(&self) -> Instant {
        self.started + self.wall_time + self.paused().min(self.most_paused)
    }

    /// When the run must be over however long it pauses.
    pub(super) fn latest_deadline(&self) -> Instant {
        self.started + self.wall_time + self.most_paused
    }

    /// How long all pauses together took until now.
    pub(super) fn paused(&self) -> Duration {
        let pauses = self.pauses.lock();
        pauses.ended + pauses.since.map_or(Duration::ZERO, |since| now().duration_since(since))
    }

    /// Stops the clock until the pause is dropped.
    pub(super) fn pause(self: &Arc<Self>) -> Pause {
        let mut pauses = self.pauses.lock();
        pauses.open += 1;
        pauses.since.get_or_insert_with(now);
        Pause(Arc::clone(self))
    }
}

/// Holds a run's clock.
pub(super) struct Pause(Arc<RunClock>);

impl Drop for Pause {
    fn drop(&mut self) {
        let mut pauses = self.0.pauses.lock();
        pauses.open -= 1;
        if pauses.open == 0
            && let Some(since) = pauses.since.take()
        {
            pauses.ended += now().duration_since(since);
        }
    }
}

#[cfg(test)]
mod models;
#[cfg(test)]
mod tests;
