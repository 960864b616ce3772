//! The worker processes of one engine. Some are started ahead of time. Each serves the runs of one
//! tenant only. When one ends, the next run gets another.
//!
//! One thread starts, watches and reaps them. It must outlive them, because the kernel kills a
//! child when the thread that started it ends. It lets a fork server make them where that is possible: a process that
//! is forked is warm at once.

mod child;
mod end;
mod forking;
mod launch;
mod options;
mod start;
mod state;
mod supervisor;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

pub(super) use self::end::Killer;
pub(crate) use self::options::{WorkerOptions, WorkerProgram, WorkerRole};
pub(super) use self::state::SLACK_BYTES;
use self::state::Shared;
pub(crate) use self::state::{Tenant, WorkerProcess};
use self::supervisor::Supervisor;

/// How long the start of a worker in place of one that a run has just got waits: to start a process takes as much of
/// the processors as many short runs, most of which have ended by then.
const SETTLE: Duration = Duration::from_millis(5);

/// Why there is no worker for a run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoWorker {
    #[error("the executor is closed")]
    Closed,
    #[error(transparent)]
    Start(#[from] io::Error),
}

/// The workers of one engine.
pub(crate) struct Workers {
    options: WorkerOptions,
    shared: Arc<Shared>,
    /// One reference more than there are runs in workers.
    runs: Arc<()>,
}

/// A run in a worker.
pub(super) struct RunCount {
    _count: Arc<()>,
    /// Whether it was the only one of the engine when it began.
    pub(super) is_alone: bool,
}

impl Workers {
    /// Starts the thread, which starts the first workers.
    ///
    /// # Errors
    ///
    /// If the system refuses the thread.
    pub(crate) fn new(options: WorkerOptions) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        shared.state.lock().has_thread = true;
        let supervisor = Supervisor::new(options.clone(), Arc::clone(&shared));
        std::thread::Builder::new().name("cx-workers".to_owned()).spawn(move || supervisor.work())?;
        Ok(Self { options, shared, runs: Arc::default() })
    }

    /// Counts a run for as long as the returned value exists.
    pub(super) fn count_run(&self) -> RunCount {
        let count = Arc::clone(&self.runs);
        RunCount { is_alone: Arc::strong_count(&self.runs) == 2, _count: count }
    }

    /// A worker for a run of `tenant`: one that has served this tenant before, or an unused one.
    ///
    /// # Errors
    ///
    /// If the program cannot be started, or this is dropped.
    pub(super) async fn acquire(&self, tenant: &Tenant) -> Result<WorkerProcess, NoWorker> {
        let (wanted, started) = oneshot::channel();
        if let Some(worker) = self.take_idle(tenant, wanted) {
            return Ok(worker);
        }
        Ok(started.await.map_err(|_closed| NoWorker::Closed)??)
    }

    /// Removes an idle worker for a run of `tenant`. If there is none, the thread starts one and sends it to `wanted`.
    ///
    /// A worker that was killed while it was idle, such as by the system when it had no memory left, is left out: its
    /// run would end with it. The thread may not have seen that yet.
    fn take_idle(
        &self,
        tenant: &Tenant,
        wanted: oneshot::Sender<io::Result<WorkerProcess>>,
    ) -> Option<WorkerProcess> {
        // Dropped after the lock, which the drop of a worker takes.
        let mut ended = Vec::new();
        let mut state = self.shared.state.lock();
        while let Some(position) = state.used.iter().rposition(|(of, _)| of == tenant) {
            let (_tenant, mut worker) = state.used.swap_remove(position);
            if !worker.has_ended() && !worker.has_grown() {
                return Some(worker);
            }
            ended.push(worker);
        }
        while let Some(mut worker) = state.fresh.pop_front() {
            if !worker.has_ended() {
                state.settled_at.get_or_insert_with(|| Instant::now() + SETTLE);
                // While others are idle, it is replaced when its run has ended, or when the thread looks by itself.
                if state.fresh.is_empty() {
                    self.shared.changed.notify_one();
                }
                return Some(worker);
            }
            state.pause();
            ended.push(worker);
        }
        state.wanted.push_back(wanted);
        self.shared.changed.notify_one();
        None
    }

    /// Whether scripts are executed elsewhere.
    pub(super) fn are_elsewhere(&self) -> bool {
        self.options.program.role.is_elsewhere()
    }

    /// Whether the next run of a worker is its last one.
    pub(super) fn is_last_run(&self, worker: &WorkerProcess) -> bool {
        worker.runs.saturating_add(1) >= self.options.program.runs
    }

    /// Takes a worker back after a regular end of its run. It serves its tenant once more, or is returned: it serves no
    /// other run, or is one too many.
    pub(super) fn give_back(&self, tenant: Tenant, mut worker: WorkerProcess) -> Option<WorkerProcess> {
        let mut state = self.shared.state.lock();
        let has_failed = std::mem::take(&mut state.failures) > 0;
        state.paused_until = None;
        if worker.runs >= self.options.program.runs || state.is_closed {
            return Some(worker);
        }
        // Otherwise the thread looks by itself after a while, and is not woken just before the run's result is sent.
        if std::mem::take(&mut state.sleeps_long) || has_failed {
            self.shared.changed.notify_one();
        }
        worker.idle_since = Instant::now();
        state.used_at = Some(worker.idle_since);
        state.used.push((tenant, worker));
        let surplus = state.used.len() > self.options.spare.max(1);
        surplus.then(|| state.used.remove(0).1)
    }

    /// Records that a worker has ended before it was ready. The next ones are started after a
    /// pause.
    pub(super) fn note_failed_start(&self) {
        self.shared.state.lock().pause();
    }

    /// Whether all workers that are started ahead of time are warm or have failed.
    pub(super) fn are_warm(&self) -> bool {
        let state = self.shared.state.lock();
        if self.options.program.role == WorkerRole::Queued {
            return state.fresh.len() >= self.options.spare || state.failures > 0 || state.is_closed;
        }
        let warm = state.fresh.iter().filter(|worker| worker.has_sent_first_message()).count();
        warm >= self.options.spare || state.failures > 0 || state.is_closed
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let (fresh, used) = {
            let mut state = self.shared.state.lock();
            state.is_closed = true;
            state.wanted.clear();
            (std::mem::take(&mut state.fresh), std::mem::take(&mut state.used))
        };
        drop((fresh, used));
        self.shared.changed.notify_one();
    }
}

#[cfg(test)]
mod tests;
