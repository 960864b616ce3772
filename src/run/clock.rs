//! The wall clock of one run, which is paused during approval prompts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::pauses::Pauses;
use crate::run::limits::in_force::RunLimits;
use crate::sync::{Mutex, now};

/// The clock starts when it is created. Approval prompts share it: each holds a [`Pause`].
pub(super) struct RunClock {
    started: Instant,
    limits: RunLimits,
    pauses: Mutex<Pauses>,
    /// The clock of the run that has called this one. It is paused whenever this one is.
    caller: Option<Arc<Self>>,
}

impl RunClock {
    /// Starts a clock on which `elapsed` has passed already. `caller` is the clock of the run that has
    /// called this one.
    pub(super) fn start(limits: RunLimits, elapsed: Duration, caller: Option<Arc<Self>>) -> Arc<Self> {
        let now = now();
        Arc::new(Self {
            started: now.checked_sub(elapsed).unwrap_or(now),
            limits,
            pauses: Mutex::default(),
            caller,
        })
    }

    pub(super) fn started(&self) -> Instant {
        self.started
    }

    /// The run's deadline if no pause starts or continues. During a pause it moves, up to the
    /// maximum paused time. It comes earlier if the operator lowers the limits.
    pub(super) fn deadline(&self) -> Instant {
        let limits = self.limits.now();
        self.started + limits.wall_time + self.paused().min(limits.paused_time)
    }

    /// The run's deadline if it pauses for the maximum time.
    pub(super) fn latest_deadline(&self) -> Instant {
        let limits = self.limits.now();
        self.started + limits.wall_time + limits.paused_time
    }

    /// Total duration of all pauses until now.
    pub(super) fn paused(&self) -> Duration {
        self.pauses.lock().total(now())
    }

    /// The time until the deadline, if no pause starts or continues.
    pub(super) fn left(&self) -> Duration {
        self.deadline().saturating_duration_since(now())
    }

    /// How much longer the clock may be paused.
    pub(super) fn pause_left(&self) -> Duration {
        self.limits.now().paused_time.saturating_sub(self.paused())
    }

    /// Pauses the clock, and those of the runs above it, until the returned value is dropped.
    pub(super) fn pause(self: &Arc<Self>) -> Pause {
        let mut clock = Some(self);
        while let Some(paused) = clock {
            paused.pauses.lock().begin(now());
            clock = paused.caller.as_ref();
        }
        Pause(Arc::clone(self))
    }
}

/// Keeps a run's clock paused.
pub(super) struct Pause(Arc<RunClock>);

impl Drop for Pause {
    fn drop(&mut self) {
        let mut clock = Some(&self.0);
        while let Some(paused) = clock {
            paused.pauses.lock().end(now());
            clock = paused.caller.as_ref();
        }
    }
}

#[cfg(test)]
mod models;
#[cfg(test)]
mod tests;
