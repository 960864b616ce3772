//! Looking again and again for what is about to arrive, in place of going to sleep.
//!
//! A host call is two switches between processes. Where both sides sleep in between, most of its time goes into
//! waking them: tens of microseconds on a virtual machine. What comes later than that is not waited for in this
//! way: after each failure more waits go to sleep at once, so that a script whose tools take milliseconds loses
//! nothing that can be measured. On one processor neither side spins, because the other needs it. The processor is not
//! yielded between two looks: where it is contended, it would come back after the others' turns only.

use std::time::{Duration, Instant};

/// How long one wait looks: about what it costs to wake a thread on a virtual machine, so that a wait that fails costs
/// at most twice what it would have cost without.
const MAX_SPIN: Duration = Duration::from_micros(50);

/// How long a wait looks for what the other side certainly sends soon, while no other run of the engine is in flight: the
/// survey of a script of some 40 lines, what the executor makes of it, or the end of a short run.
const MAX_CERTAIN: Duration = Duration::from_micros(1_000);

/// After failures in a row, at most so many waits go to sleep at once.
const MAX_SKIPPED: u32 = 256;

/// Decides whether a wait looks before it sleeps. One for each side of a run.
#[derive(Debug)]
pub(super) struct Spin {
    is_allowed: bool,
    /// Waits that go to sleep at once.
    skipped: u32,
    /// How many there are after the next failure.
    penalty: u32,
}

impl Spin {
    /// `processors`: how many both sides have together.
    pub(super) fn new(processors: usize) -> Self {
        Self { is_allowed: processors > 1, skipped: 0, penalty: 0 }
    }

    /// Calls `look` until it finds something or the time is over.
    pub(super) fn find<T>(&mut self, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        if !self.is_allowed {
            return None;
        }
        if self.skipped > 0 {
            self.skipped -= 1;
            return None;
        }
        let began = Instant::now();
        while began.elapsed() < MAX_SPIN {
            if let Some(found) = look() {
                self.penalty = 0;
                return Some(found);
            }
            std::hint::spin_loop();
        }
        self.penalty = (self.penalty * 2).clamp(1, MAX_SKIPPED);
        self.skipped = self.penalty;
        None
    }

    /// The same for what certainly comes soon, whatever earlier waits have found. Both sides may be on one processor, so
    /// this one is yielded between two looks. If it does not come back soon, something else has used it: the wait is
    /// over after one more look.
    pub(super) fn find_certain<T>(&self, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        if !self.is_allowed {
            return None;
        }
        let began = Instant::now();
        let mut before = began;
        loop {
            if let Some(found) = look() {
                return Some(found);
            }
            std::thread::yield_now();
            let now = Instant::now();
            if now - began >= MAX_CERTAIN || now - before >= MAX_SPIN {
                return look();
            }
            before = now;
        }
    }
}

#[cfg(test)]
mod tests;
