//! Whether calls of models that are in flight go on. Those that the script reads piece by piece do so only while it
//! reads them.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

/// How often a call that waits for others looks whether they go on, and how many times in a row none of them may have
/// done so: a script that works for some seconds between two pieces still reads its answer.
pub(super) const LOOK: Duration = Duration::from_millis(500);
const MAX_IDLE_LOOKS: u32 = 10;

/// The calls of a run and of those that it has called.
#[derive(Debug, Default)]
pub(super) struct Activity {
    state: Mutex<Seen>,
}

/// What was seen at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Calls that wait for their model, or for what comes before that.
    busy: usize,
    /// How often a call has ceased to wait.
    changes: u64,
}

/// While it exists, a call goes on without its script.
#[derive(Debug)]
pub(super) struct Busy(Arc<Activity>);

impl Activity {
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        self.state.lock().busy += 1;
        Busy(Arc::clone(self))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.busy -= 1;
        state.changes += 1;
    }
}

/// Looks at the calls every now and then.
#[derive(Debug, Default)]
pub(super) struct Watch {
    seen: Seen,
    idle_looks: u32,
}

impl Watch {
    /// Looks again. Returns whether no call has gone on for so long that none will. A script that waits for a tool or
    /// for an approval may read on afterwards.
    pub(super) fn is_idle(&mut self, activity: &Activity, is_waiting: bool) -> bool {
        let now = *activity.state.lock();
        let is_idle = now == self.seen && now.busy == 0 && !is_waiting;
        self.idle_looks = if is_idle { self.idle_looks + 1 } else { 0 };
        self.seen = now;
        self.idle_looks >= MAX_IDLE_LOOKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_go_on_are_not_idle() {
        let activity = Arc::<Activity>::default();
        let mut watch = Watch::default();
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
