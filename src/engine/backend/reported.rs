//! The memory and the CPU time that a back end says its sandbox uses, and the limits of both.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use crate::durations::nanoseconds;
use crate::engine::stop::{Stop, StopReason};
use crate::files::MemoryBudget;

/// What one run uses outside of this process, as its back end reports it.
pub(super) struct ReportedUsage {
    /// Bytes of memory now, and the most that there were.
    memory: AtomicUsize,
    peak_memory: AtomicUsize,
    /// Nanoseconds of CPU time.
    cpu_time: AtomicU64,
    /// The run's scratch directory, which is in this process.
    files: OnceLock<Arc<MemoryBudget>>,
    /// Weak, because it owns the functions that read this.
    stop: Weak<Stop>,
}

impl ReportedUsage {
    /// No usage. `stop` stops the run at its limits.
    pub(super) fn new(stop: &Arc<Stop>) -> Arc<Self> {
        let usage = Arc::new(Self {
            memory: AtomicUsize::new(0),
            peak_memory: AtomicUsize::new(0),
            cpu_time: AtomicU64::new(0),
            files: OnceLock::new(),
            stop: Arc::downgrade(stop),
        });
        let measured = Arc::clone(&usage);
        stop.attach_measure(move |limit| {
            measured.enforce(limit);
        });
        let timed = Arc::clone(&usage);
        stop.attach_cpu_time(move || Duration::from_nanos(timed.cpu_time.load(Ordering::Relaxed)));
        usage
    }

    /// Counts the run's scratch directory together with what is reported.
    pub(super) fn count_files(self: &Arc<Self>, files: &Arc<MemoryBudget>) {
        let usage = Arc::downgrade(self);
        files.attach_engine(move || usage.upgrade().map_or(0, |usage| usage.memory.load(Ordering::Relaxed)));
        // An instance has one run.
        let _is_set = self.files.set(Arc::clone(files));
    }

    pub(super) fn set_memory(&self, bytes: usize) {
        self.memory.store(bytes, Ordering::Relaxed);
        self.peak_memory.fetch_max(bytes, Ordering::Relaxed);
    }

    /// CPU time does not run backwards.
    pub(super) fn set_cpu_time(&self, time: Duration) {
        self.cpu_time.fetch_max(nanoseconds(time), Ordering::Relaxed);
    }

    /// Stops the run if its memory exceeds `limit`, in bytes. Returns whether it does.
    pub(super) fn enforce(&self, limit: usize) -> bool {
        let is_exceeded = self.memory.load(Ordering::Relaxed).saturating_add(self.file_bytes()) > limit;
        if is_exceeded && let Some(stop) = self.stop.upgrade() {
            stop.request(StopReason::Memory);
        }
        is_exceeded
    }

    /// The most bytes of memory that were reported, and the scratch directory.
    pub(super) fn most_memory(&self) -> usize {
        self.peak_memory.load(Ordering::Relaxed).saturating_add(self.file_bytes())
    }

    fn file_bytes(&self) -> usize {
        self.files.get().map_or(0, |files| files.used())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v_568_what_is_reported_and_the_scratch_directory_share_a_limit() {
        let stop = Arc::<Stop>::default();
        let usage = ReportedUsage::new(&stop);
        let files = Arc::new(MemoryBudget::new(1_000));
        usage.count_files(&files);
        usage.set_memory(500);
        // An eighth is reserved.
        assert!(files.charge(376).is_none());
        let kept = files.charge(375);
        assert!(kept.is_some());
        assert!(!usage.enforce(875));
        assert_eq!(stop.reason(), None);
        assert!(usage.enforce(874));
        assert_eq!(stop.reason(), Some(StopReason::Memory));
    }

    #[test]
    fn the_most_memory_counts_and_cpu_time_does_not_run_backwards() {
        let stop = Arc::<Stop>::default();
        let usage = ReportedUsage::new(&stop);
        usage.set_memory(700);
        usage.set_memory(20);
        assert_eq!(usage.most_memory(), 700);
        assert!(!usage.enforce(20));
        usage.set_cpu_time(Duration::from_secs(2));
        usage.set_cpu_time(Duration::from_secs(1));
        assert_eq!(usage.cpu_time.load(Ordering::Relaxed), 2_000_000_000);
        usage.set_cpu_time(Duration::MAX);
        assert_eq!(usage.cpu_time.load(Ordering::Relaxed), u64::MAX);
    }

    #[test]
    fn the_end_of_a_run_frees_everything() {
        let stop = Arc::<Stop>::default();
        let usage = ReportedUsage::new(&stop);
        let files = Arc::new(MemoryBudget::new(1_000));
        usage.count_files(&files);
        let (weak_usage, weak_files) = (Arc::downgrade(&usage), Arc::downgrade(&files));
        drop((stop, usage, files));
        assert_eq!((weak_usage.strong_count(), weak_files.strong_count()), (0, 0));
    }
}
