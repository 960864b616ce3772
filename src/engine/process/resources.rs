//! CPU time and memory of a worker process during a run, as the kernel counts them. A script that
//! has taken over its worker cannot change these numbers.

use std::fs::File;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::connection::OVER_MEMORY;
use super::group::Group;
use super::workers::{Killer, SLACK_BYTES, WorkerProcess};
use crate::engine::resident::resident_bytes;
use crate::engine::watchdog::{CpuMeter, LONG_RUN_NICENESS, SHORT_RUN};

/// The resources of one worker during one run.
pub(super) struct Resources {
    killer: Arc<Killer>,
    /// The worker's control group, where it has one.
    group: Option<Arc<Group>>,
    statm: Option<Arc<File>>,
    /// `None` until the run begins.
    cpu: Mutex<Option<CpuMeter>>,
    /// Maximum of the resident bytes that are not the run's, if an earlier run may have left some.
    most_before: Option<usize>,
    /// Resident bytes when the run began.
    before: AtomicUsize,
    peak: AtomicUsize,
    has_low_priority: AtomicBool,
}

impl Resources {
    pub(super) fn new(worker: &WorkerProcess) -> Self {
        let most_before = worker.max_idle_bytes();
        Self {
            killer: Arc::clone(&worker.killer),
            group: worker.group.clone(),
            statm: worker.statm.clone(),
            cpu: Mutex::new(None),
            most_before,
            // Before its first run a worker is not measured. Before a later one, it may have been taken over.
            before: AtomicUsize::new(most_before.unwrap_or(usize::MAX)),
            peak: AtomicUsize::new(0),
            has_low_priority: AtomicBool::new(false),
        }
    }

    /// Begins to measure a run with this memory limit, in bytes. What the worker has used to warm up is not the run's.
    /// Returns that.
    pub(super) fn begin(&self, memory_bytes: usize) -> usize {
        let before = self.resident_bytes().unwrap_or(0).min(self.most_before.unwrap_or(usize::MAX));
        self.before.store(before, Ordering::Relaxed);
        if let Some(group) = &self.group {
            // The kernel counts more than resident pages. It kills a worker that grows between two
            // checks.
            let most = allowed_bytes(memory_bytes).saturating_add(SLACK_BYTES);
            group.limit_memory(before.saturating_add(most));
        }
        *self.cpu.lock() = Some(CpuMeter::of_process(self.killer.pid));
        before
    }

    /// CPU time of all threads of the worker since the run began.
    pub(super) fn cpu_time(&self) -> Duration {
        self.cpu.lock().map_or(Duration::ZERO, CpuMeter::elapsed)
    }

    /// Whether a run with this memory limit, in bytes, has to be stopped. A worker that has computed for
    /// [`SHORT_RUN`] gets a lower priority, as a thread does in one process.
    pub(super) fn exceed(&self, memory_bytes: usize) -> bool {
        let cpu_time = self.cpu_time();
        if cpu_time > SHORT_RUN && !self.has_low_priority.swap(true, Ordering::Relaxed) {
            let group = Some(self.killer.pid);
            if let Err(error) = rustix::process::setpriority_pgrp(group, LONG_RUN_NICENESS) {
                tracing::debug!(%error, "a worker process keeps its priority");
            }
        }
        let Some(resident) = self.resident_bytes() else { return false };
        if resident == 0 {
            // It has ended, or its memory cannot be measured any more.
            self.killer.kill();
            return false;
        }
        let used = resident.saturating_sub(self.before.load(Ordering::Relaxed));
        self.peak.fetch_max(used, Ordering::Relaxed);
        used > allowed_bytes(memory_bytes)
    }

    /// Whether a worker with this exit status has ended because of its memory: the kernel says so, or the status. A
    /// worker that was taken over may claim that, as it may in its last message.
    pub(super) fn was_out_of_memory(&self, status: Option<ExitStatus>) -> bool {
        self.group.as_ref().is_some_and(|group| group.was_out_of_memory())
            || status.is_some_and(|status| status.code() == Some(OVER_MEMORY))
    }

    /// The maximum memory that was measured, in bytes.
    pub(super) fn peak_bytes(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    /// Whether the worker has a low priority, which it keeps: no process can raise its own.
    pub(super) fn has_low_priority(&self) -> bool {
        self.has_low_priority.load(Ordering::Relaxed)
    }

    fn resident_bytes(&self) -> Option<usize> {
        self.statm.as_deref().and_then(resident_bytes)
    }
}

/// Bytes that a worker may use for a run with this limit, in bytes.
fn allowed_bytes(memory_bytes: usize) -> usize {
    memory_bytes.saturating_mul(2).saturating_add(SLACK_BYTES)
}
