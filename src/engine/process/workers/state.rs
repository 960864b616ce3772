//! A worker process, and the workers of an engine, as the threads of runs and the one that looks after workers share
//! them.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use rustix::process::Pid;
use tokio::sync::oneshot;

use super::child::WorkerChild;
use super::end::{Killer, describe};
use crate::engine::process::frames::Decoder;
use crate::engine::process::group::Group;
use crate::engine::resident::resident_bytes;
use crate::text::preview;

/// Memory that a worker may use beyond what it had before the run and twice the run's limit. V8 collects late, and
/// collected memory is not returned immediately. The engine in the worker enforces the exact limit; this one is for a
/// worker that was taken over.
pub(in crate::engine::process) const SLACK_BYTES: usize = 128 << 20;

/// The pause after a failed start of a worker. It doubles with each failure up to the maximum.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

pub(super) const MAX_PAUSE: Duration = Duration::from_secs(10);

/// Maximum wait for the exit status of a worker that has closed its connection, which its fork server reports late on a
/// busy machine. The code of the run's error depends on it.
const STATUS_TRIES: u32 = 500;
const STATUS_PAUSE: Duration = Duration::from_millis(2);

/// Maximum wait for the first message of a worker elsewhere. While all workers there are lent, it sends none before it
/// has a run.
const MAX_SILENCE: Duration = Duration::from_secs(5);

/// Maximum characters of a worker's report about its sandbox in a log.
const MAX_MISSING: usize = 500;

/// The client whose runs a worker serves; `None` for runs of the embedder.
pub(crate) type Tenant = Option<String>;

/// A worker process. It is killed when this is dropped.
pub(crate) struct WorkerProcess {
    pub(super) child: Option<WorkerChild>,
    pub(super) pid: Pid,
    /// Kills it, also from other threads.
    pub(in crate::engine::process) killer: Arc<Killer>,
    /// What the kernel says of its memory. `None` without `/proc`.
    pub(in crate::engine::process) statm: Option<Arc<File>>,
    pub(in crate::engine::process) socket: Option<OwnedFd>,
    pub(in crate::engine::process) decoder: Decoder,
    /// Bytes that are queued for it.
    pub(in crate::engine::process) out: Vec<u8>,
    /// Whether it has reported that it is warm, for its next run.
    pub(in crate::engine::process) is_ready: bool,
    /// Whether it has ever reported that.
    pub(in crate::engine::process) was_ready: bool,
    pub(in crate::engine::process) runs: u32,
    /// Resident bytes when its first run began.
    pub(in crate::engine::process) warm_bytes: Option<usize>,
    pub(super) idle_since: Instant,
    pub(in crate::engine::process) is_elsewhere: bool,
    /// Its control group, where it has one.
    pub(in crate::engine::process) group: Option<Arc<Group>>,
    pub(super) shared: Arc<Shared>,
}

impl fmt::Debug for WorkerProcess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("WorkerProcess").field("pid", &self.pid).finish_non_exhaustive()
    }
}

impl WorkerProcess {
    /// Logs which measures of the sandbox are missing, once for all workers. `cx doctor` asks the
    /// kernel, and need not see that a service manager or a container forbids their use.
    pub(in crate::engine::process) fn warn_of_missing(&self, missing: &[String]) {
        if !missing.is_empty() && !self.shared.has_warned.swap(true, Ordering::Relaxed) {
            let missing = preview(&missing.join(", "), MAX_MISSING);
            tracing::warn!(%missing, "worker processes are confined less than they should be");
        }
    }

    /// Whether its first message has arrived, or is not waited for.
    pub(super) fn has_sent_first_message(&self) -> bool {
        if self.is_elsewhere && self.idle_since.elapsed() > MAX_SILENCE {
            return true;
        }
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let socket = self.socket.as_ref();
        socket.is_none_or(|socket| recv(socket, &mut [0; 1][..], flags) != Err(Errno::AGAIN))
    }

    /// The exit status, if the process has ended and that is known already.
    pub(in crate::engine::process) fn status(&mut self) -> Option<ExitStatus> {
        self.child.as_mut()?.try_wait().ok()?
    }

    /// Whether its runs have left much memory, or its memory cannot be measured any more. Then it serves no other run:
    /// what it takes in addition would not be that run's.
    pub(super) fn has_grown(&self) -> bool {
        let (Some(statm), Some(max)) = (&self.statm, self.max_idle_bytes()) else { return false };
        resident_bytes(statm).is_some_and(|resident| resident == 0 || resident > max)
    }

    /// Maximum resident bytes between two runs, which are of no run; `None` before the first one.
    pub(in crate::engine::process) fn max_idle_bytes(&self) -> Option<usize> {
        self.warm_bytes.map(|warm| warm.saturating_add(SLACK_BYTES))
    }

    /// Whether the process has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        self.child.as_mut().is_none_or(WorkerChild::has_ended)
    }

    /// The exit status of a worker that has closed its connection, if it ends soon.
    pub(in crate::engine::process) async fn ended(&mut self) -> Option<ExitStatus> {
        let child = self.child.as_mut()?;
        for _ in 0..STATUS_TRIES {
            match child.try_wait() {
                Ok(None) => tokio::time::sleep(STATUS_PAUSE).await,
                Ok(status) => return status,
                // Its parent has lost it, and nobody else knows it.
                Err(_) => return None,
            }
        }
        None
    }

    /// Describes how the process has ended, as far as `status` says it, as the rest of a sentence.
    pub(in crate::engine::process) fn describe(&self, status: Option<ExitStatus>) -> String {
        describe(status, self.is_elsewhere)
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        self.killer.kill();
        let Some(mut child) = self.child.take() else { return };
        let mut state = self.shared.state.lock();
        if state.has_thread {
            state.terminating.push(TerminatingWorker {
                child,
                since: Instant::now(),
                _group: self.group.take(),
            });
            self.shared.changed.notify_one();
        } else {
            drop(state);
            child.kill();
            child.reap();
        }
    }
}

/// A worker that was killed and is not reaped yet.
pub(super) struct TerminatingWorker {
    pub(super) child: WorkerChild,
    pub(super) since: Instant,
    /// Removed when the worker was reaped.
    _group: Option<Arc<Group>>,
}

/// What the threads share.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) state: Mutex<WorkersState>,
    /// Signals the thread.
    pub(super) changed: Condvar,
    /// Whether missing measures of the sandbox were logged.
    pub(super) has_warned: AtomicBool,
}

/// The workers of which no run has one now.
#[derive(Default)]
pub(super) struct WorkersState {
    /// Unused workers, which have served no tenant, oldest first.
    pub(super) fresh: VecDeque<WorkerProcess>,
    /// Idle workers, each with the tenant whose runs it has served.
    pub(super) used: Vec<(Tenant, WorkerProcess)>,
    /// When a worker was last kept for another run.
    pub(super) used_at: Option<Instant>,
    /// Runs that wait for a worker.
    pub(super) wanted: VecDeque<oneshot::Sender<io::Result<WorkerProcess>>>,
    /// Killed workers that are not reaped yet.
    pub(super) terminating: Vec<TerminatingWorker>,
    /// Failures to start in a row.
    pub(super) failures: u32,
    /// No worker is started ahead of time before this instant, because of failures.
    pub(super) paused_until: Option<Instant>,
    /// The same, because a run has just got one.
    pub(super) settled_at: Option<Instant>,
    pub(super) has_thread: bool,
    /// Whether the thread sleeps for too long to measure a worker that is kept for another run.
    pub(super) sleeps_long: bool,
    pub(super) is_closed: bool,
}

impl WorkersState {
    /// Whether there is nothing that the thread has to look after.
    pub(super) fn is_empty(&self) -> bool {
        self.terminating.is_empty() && self.used.is_empty() && self.fresh.is_empty()
    }

    /// When the next worker may be started ahead of time; `None` if that is now.
    pub(super) fn next_start(&self, now: Instant) -> Option<Instant> {
        [self.paused_until, self.settled_at].into_iter().flatten().filter(|at| now < *at).max()
    }

    pub(super) fn pause(&mut self) {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(10)).min(MAX_PAUSE);
        self.failures += 1;
        self.paused_until = Some(Instant::now() + pause);
    }
}
