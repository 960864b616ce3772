//! The memory of a run's scratch directory, which counts as memory of the run.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Files in memory may not use this fraction (1/8) of the limit, so that a script that fills the scratch directory
/// can go on.
const RESERVE: usize = 8;

/// Counts the bytes of the files in memory against the memory limit of the run, together with what its
/// engine uses.
pub(crate) struct MemoryBudget {
    limit: usize,
    used: AtomicUsize,
    /// Bytes that the engine uses for the script.
    engine: OnceLock<Box<dyn Fn() -> usize + Send + Sync>>,
}

impl fmt::Debug for MemoryBudget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("MemoryBudget").field("used", &self.used()).finish_non_exhaustive()
    }
}

impl MemoryBudget {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, used: AtomicUsize::new(0), engine: OnceLock::new() }
    }

    /// Sets what tells how much memory the engine uses. An engine calls this once for a run.
    pub(crate) fn attach_engine(&self, used: impl Fn() -> usize + Send + Sync + 'static) {
        let _is_first = self.engine.set(Box::new(used));
    }

    /// Bytes of files.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Counts bytes until the returned value is dropped. `None` if they do not fit.
    pub(crate) fn charge(self: &Arc<Self>, bytes: usize) -> Option<Charge> {
        self.reserve(bytes).then(|| Charge { budget: Arc::clone(self), bytes })
    }

    /// Counts more bytes, if they fit.
    pub(super) fn reserve(&self, bytes: usize) -> bool {
        let engine = self.engine.get().map_or(0, |used| used());
        // The engine needs some of it to go on.
        let room = (self.limit - self.limit / RESERVE).saturating_sub(engine);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|&wanted| wanted <= room)
        });
        taken.is_ok()
    }

    /// Counts bytes no longer.
    pub(super) fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Bytes that are counted.
pub(crate) struct Charge {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}
