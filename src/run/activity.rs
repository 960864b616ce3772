//! Detects that answers in flight make no progress: answers of language models and responses of `fetch`. An answer that
//! the script reads piece by piece makes progress only while the script reads it, so a call that waits for the permits
//! of such answers could wait for ever.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

/// Interval at which a waiting call checks whether the answers before it make progress.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// The answers in flight that share one bound: a budget, or a number of permits.
#[derive(Debug, Default)]
pub(super) struct Activity {
    state: Mutex<Seen>,
}

/// A snapshot of the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Number of answers that wait for the other side. The others wait for the script to read on.
    busy: usize,
    /// Number of times that an answer stopped waiting for the other side, or was closed.
    changes: u64,
}

/// Marks an answer as waiting for the other side. Such an answer makes progress without its script.
#[derive(Debug)]
pub(super) struct Busy(Arc<Activity>);

impl Activity {
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        self.state.lock().busy += 1;
        Busy(Arc::clone(self))
    }

    /// Records that the script has closed an answer.
    pub(super) fn note_closed(&self) {
        self.state.lock().changes += 1;
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.busy -= 1;
        state.changes += 1;
    }
}

/// Detects answers that stay idle. The caller checks at intervals of [`CHECK_INTERVAL`].
#[derive(Debug)]
pub(super) struct Watch {
    seen: Seen,
    idle_checks: u32,
    max_idle_checks: u32,
}

impl Watch {
    /// `max_idle_checks`: after how many checks in a row without progress the answers count as idle.
    pub(super) fn new(max_idle_checks: u32) -> Self {
        Self { seen: Seen::default(), idle_checks: 0, max_idle_checks }
    }

    /// Checks again. Returns whether the answers are idle. A script that waits for a tool or for an approval
    /// (`is_waiting`) may read on afterwards, so its answers do not count as idle.
    pub(super) fn is_idle(&mut self, activity: &Activity, is_waiting: bool) -> bool {
        let now = *activity.state.lock();
        let is_idle = now == self.seen && now.busy == 0 && !is_waiting;
        self.idle_checks = if is_idle { self.idle_checks + 1 } else { 0 };
        self.seen = now;
        self.idle_checks >= self.max_idle_checks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_IDLE_CHECKS: u32 = 10;

    #[test]
    fn calls_that_go_on_are_not_idle() {
        let activity = Arc::<Activity>::default();
        let mut watch = Watch::new(MAX_IDLE_CHECKS);
        let busy = activity.begin();
        for _ in 0..100 {
            assert!(!watch.is_idle(&activity, false));
        }
        drop(busy);
        // Seen once as it is now, and then as often as it may be so.
        for _ in 0..MAX_IDLE_CHECKS {
            assert!(!watch.is_idle(&activity, false));
        }
        drop(activity.begin());
        for _ in 0..MAX_IDLE_CHECKS {
            assert!(!watch.is_idle(&activity, false), "a piece was read meanwhile");
        }
        assert!(watch.is_idle(&activity, false));
        assert!(!watch.is_idle(&activity, true), "it waits for a tool");
        assert!(!watch.is_idle(&activity, false));
    }
}
