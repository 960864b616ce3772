//! Spinning: checks repeatedly for a message that is about to arrive, instead of sleeping.
//!
//! A host call is two switches between processes. Where both sides sleep in between, most of its time goes into waking
//! them: tens of microseconds on a virtual machine. Spinning for a message that comes later wastes that time, so after
//! each failure more waits go to sleep at once: a script whose tools take milliseconds loses nothing that can be
//! measured. On one processor neither side spins, because the other needs it. The processor is not yielded between two
//! checks: where it is contended, this thread would run again only after the others' turns.

use std::time::{Duration, Instant};

/// How long one wait spins: about what it costs to wake a thread on a virtual machine, so that a wait that fails costs
/// at most twice what sleeping alone costs.
const MAX_SPIN: Duration = Duration::from_micros(50);

/// How long a wait spins for a message that the other side certainly sends soon, while no other run of the engine is in
/// flight: the survey of a script of some 40 lines, what the executor makes of it, or the end of a short run.
const MAX_EXPECTED_SPIN: Duration = Duration::from_micros(1_000);

/// Maximum number of waits that go to sleep at once after failures in a row.
const MAX_SKIPPED: u32 = 256;

/// Decides whether a wait spins before it sleeps. One for each side of a run.
#[derive(Debug)]
pub(super) struct Spin {
    is_allowed: bool,
    /// Waits that go to sleep at once.
    skipped: u32,
    /// The number of such waits after the last failure. The next failure doubles it.
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
        loop {
            // At least once, also if something else has used the processor meanwhile.
            if let Some(found) = look() {
                self.penalty = 0;
                return Some(found);
            }
            if began.elapsed() >= MAX_SPIN {
                break;
            }
            std::hint::spin_loop();
        }
        self.penalty = (self.penalty * 2).clamp(1, MAX_SKIPPED);
        self.skipped = self.penalty;
        None
    }

    /// The same for a message that certainly comes soon, whatever earlier waits have found. Both sides may be on one
    /// processor, so this thread yields between two checks. If it runs again only after [`MAX_SPIN`], something else
    /// has used the processor: the wait ends after one more check.
    pub(super) fn find_expected<T>(&self, mut look: impl FnMut() -> Option<T>) -> Option<T> {
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
            if now - began >= MAX_EXPECTED_SPIN || now - before >= MAX_SPIN {
                return look();
            }
            before = now;
        }
    }
}

#[cfg(test)]
mod tests;
