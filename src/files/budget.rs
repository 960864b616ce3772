//! The memory of a run's scratch directory, which counts as memory of the run.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::{Mutex, MutexGuard, Notify};

/// Files in memory may not use this fraction (1/8) of the limit, so that a script that fills the scratch directory
/// can go on.
const RESERVE: usize = 8;

/// Counts the bytes of the files in memory against the memory limit of the run, together with what its
/// engine uses.
pub(crate) struct MemoryBudget {
    limit: usize,
    used: AtomicUsize,
    /// Bytes that operations of the script hold in this process while they wait for earlier ones.
    waiting: AtomicUsize,
    /// Notified when there are fewer of them.
    freed: Notify,
    /// Locked by an operation that goes through a whole directory, across its waits for the file system: nobody knows
    /// before how many names it will hold.
    walk: Mutex<()>,
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
        let (used, waiting) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { limit, used, waiting, freed: Notify::new(), walk: Mutex::default(), engine: OnceLock::new() }
    }

    /// Sets the function that returns how many bytes of memory the engine uses. An engine calls
    /// this once for a run.
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

    /// Counts bytes of an operation that may wait, until the returned value is dropped. `None` if others wait, and
    /// together they have more than the memory limit.
    pub(crate) fn hold_waiting(self: &Arc<Self>, bytes: usize) -> Option<WaitingBytes> {
        let held = self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| {
            waiting.checked_add(bytes).filter(|&all| waiting == 0 || all <= self.limit)
        });
        held.is_ok().then(|| WaitingBytes { budget: Arc::clone(self), bytes })
    }

    /// The same for an operation that holds none of its bytes yet: waits until they fit. Dropping the future cancels it.
    pub(crate) async fn wait_to_hold(self: &Arc<Self>, bytes: usize) -> WaitingBytes {
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            if let Some(held) = self.hold_waiting(bytes) {
                return held;
            }
            freed.await;
        }
    }

    /// Waits until no other operation goes through a whole directory, and keeps others waiting until the returned value
    /// is dropped. Dropping the future cancels it.
    pub(crate) async fn wait_to_walk(&self) -> MutexGuard<'_, ()> {
        self.walk.lock().await
    }

    /// Counts more bytes, if they fit.
    pub(super) fn reserve(&self, bytes: usize) -> bool {
        let engine = self.engine.get().map_or(0, |used| used());
        // A reserve is left, so that the engine can go on.
        let room = (self.limit - self.limit / RESERVE).saturating_sub(engine);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|&wanted| wanted <= room)
        });
        taken.is_ok()
    }

    /// Stops counting bytes.
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

/// Bytes of an operation that may wait.
pub(crate) struct WaitingBytes {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl Drop for WaitingBytes {
    fn drop(&mut self) {
        self.budget.waiting.fetch_sub(self.bytes, Ordering::Relaxed);
        self.budget.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threat 595.
    #[test]
    fn v_595_what_waits_is_bounded_together() {
        let budget = Arc::new(MemoryBudget::new(100));
        // One that is longer waits alone.
        let long = budget.hold_waiting(300).unwrap();
        assert!(budget.hold_waiting(1).is_none());
        drop(long);
        let (one, other) = (budget.hold_waiting(60), budget.hold_waiting(40));
        assert!(one.is_some() && other.is_some() && budget.hold_waiting(1).is_none());
        drop(one);
        assert!(budget.hold_waiting(60).is_some());
    }

    /// A script that reads fifty files at once reads all of them.
    #[tokio::test]
    async fn what_holds_nothing_yet_waits_for_others() {
        let budget = Arc::new(MemoryBudget::new(100));
        let first = budget.wait_to_hold(80).await;
        let waiting = tokio::spawn({
            let budget = Arc::clone(&budget);
            async move { budget.wait_to_hold(30).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        let waited = tokio::time::timeout(std::time::Duration::from_secs(60), waiting).await;
        let _second = waited.expect("it is told that there is room").unwrap();
        assert!(budget.hold_waiting(80).is_none());
    }
}
