//! Whether answers that are in flight go on: of models, and to requests of `fetch`. Those that the script reads piece by
//! piece do so only while it reads them, so one that waits for the others may wait for ever.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

/// How often one that waits for others looks whether they go on.
pub(super) const LOOK: Duration = Duration::from_millis(500);

/// The answers in flight that wait for each other.
#[derive(Debug, Default)]
pub(super) struct Activity {
    state: Mutex<Seen>,
}

/// What was seen at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Those that wait for the other side. The others wait for the script.
    busy: usize,
    /// How often one has ceased to wait, or was closed.
    changes: u64,
}

/// While it exists, an answer goes on without its script.
#[derive(Debug)]
pub(super) struct Busy(Arc<Activity>);

impl Activity {
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        self.state.lock().busy += 1;
        Busy(Arc::clone(self))
    }

    /// Records that the script has closed one.
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

/// Looks at them every now and then.
#[derive(Debug)]
pub(super) struct Watch {
    seen: Seen,
    idle_looks: u32,
    max_idle_looks: u32,
}

impl Watch {
    /// `max_idle_looks`: how many times in a row none of them may have gone on.
    pub(super) fn new(max_idle_looks: u32) -> Self {
        Self { seen: Seen::default(), idle_looks: 0, max_idle_looks }
    }

    /// Looks again. Returns whether none has gone on for so long that none will. A script that waits for a tool or
    /// for an approval may read on afterwards.
    pub(super) fn is_idle(&mut self, activity: &Activity, is_waiting: bool) -> bool {
        let now = *activity.state.lock();
        let is_idle = now == self.seen && now.busy == 0 && !is_waiting;
        self.idle_looks = if is_idle { self.idle_looks + 1 } else { 0 };
        self.seen = now;
        self.idle_looks >= self.max_idle_looks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX_IDLE_LOOKS: u32 = 10;

    #[test]
    fn calls_that_go_on_are_not_idle() {
        let activity = Arc::<Activity>::default();
        let mut watch = Watch::new(MAX_IDLE_LOOKS);
        let busy = activity.begin();
        for _ in 0..100 {
            assert!(!watch.is_idle(&activity, false));
        }
        drop(busy);
        // Seen once as it is now, and then as often as it may be so.
        for _ in 0..MAX_IDLE_LOOKS {
            assert!(!watch.is_idle(&activity, false));
        }
        drop(activity.begin());
        for _ in 0..MAX_IDLE_LOOKS {
            assert!(!watch.is_idle(&activity, false), "a piece was read meanwhile");
        }
        assert!(watch.is_idle(&activity, false));
        assert!(!watch.is_idle(&activity, true), "it waits for a tool");
        assert!(!watch.is_idle(&activity, false));
    }
}
