//! The worker processes of one engine. Some are started ahead of time. Each serves the runs of one
//! tenant only. When one ends, the next run gets another.
//!
//! One thread starts, watches and reaps them. It must outlive them, because the kernel kills a
//! child when the thread that started it ends. It lets a fork server make them where that is possible: a process that
//! is forked is warm at once.

mod child;
mod end;
mod forking;
mod start;

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use rustix::process::Pid;
use tokio::sync::oneshot;

use self::child::WorkerChild;
pub(super) use self::end::Killer;
use self::end::{MAX_END, describe};
use self::forking::ForkServer;
use self::start::{fork, start};
use super::frames::Decoder;
use super::group::Group;
use crate::text::preview;

/// How often the thread checks for processes to reap, while some are ending.
const TICK: Duration = Duration::from_millis(20);

/// How long a worker that has served a tenant waits for the next run of that tenant.
const KEEP: Duration = Duration::from_secs(10);

/// The pause after a failed start of a worker. It doubles with each failure up to the maximum.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// The pause after a failure of a fork server is the same. It doubles with each failure in a row, at most so often: runs
/// wait while another one warms up.
const MAX_DOUBLINGS: u32 = 6;

/// How long the start of a worker in place of one that a run has just got waits: to start a process takes as much of
/// the processors as many short runs, most of which have ended by then.
const SETTLE: Duration = Duration::from_millis(5);

/// Maximum wait for the exit status of a worker that has closed its connection.
const STATUS_TRIES: u32 = 50;
const STATUS_PAUSE: Duration = Duration::from_millis(2);

/// Maximum wait for the exit status of a worker that nobody uses any more. Its fork server may have been stopped.
const MAX_STATUS_WAIT: Duration = Duration::from_secs(5);

/// Maximum wait for the first message of a worker elsewhere. While all workers there are lent, it sends none before it
/// has a run.
const MAX_SILENCE: Duration = Duration::from_secs(5);

/// Maximum characters of a worker's report about its sandbox in a log.
const MAX_MISSING: usize = 500;

/// Why there is no worker for a run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoWorker {
    #[error("the executor is closed")]
    Closed,
    #[error(transparent)]
    Start(#[from] io::Error),
}

/// The client whose runs a worker serves; `None` for runs of the embedder.
pub(crate) type Tenant = Option<String>;

/// The program whose processes are workers, and how many runs each serves.
#[derive(Clone, Debug)]
pub(crate) struct WorkerProgram {
    /// The program, and its arguments.
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    /// Whether a worker whose sandbox is incomplete must not run scripts.
    pub(crate) requires_sandbox: bool,
    /// How many runs of a tenant a worker serves, at least one.
    pub(crate) runs: u32,
    /// Whether a process of it can be a fork server.
    pub(crate) forks: bool,
    /// Whether its processes stand for workers elsewhere, and send nothing before they have a run.
    /// They get `SIGTERM` before they are killed, so that they can tell the worker elsewhere.
    pub(crate) stands_in: bool,
    /// Whether the scripts are executed elsewhere. The exit status of its processes then says how
    /// the worker there was lost.
    pub(crate) is_elsewhere: bool,
}

/// How worker processes are made.
#[derive(Clone, Debug)]
pub(crate) struct WorkerOptions {
    pub(crate) program: WorkerProgram,
    /// How many workers are started ahead of time.
    pub(crate) spare: usize,
    pub(crate) is_python: bool,
    pub(crate) counts_fuel: bool,
    pub(crate) memory_bytes: usize,
    pub(crate) caches: Vec<PathBuf>,
}

/// A worker process. It is killed when this is dropped.
pub(crate) struct WorkerProcess {
    child: Option<WorkerChild>,
    pid: Pid,
    /// Kills it, also from other threads.
    pub(super) killer: Arc<Killer>,
    /// What the kernel says of its memory. `None` without `/proc`.
    pub(super) statm: Option<Arc<File>>,
    pub(super) socket: Option<OwnedFd>,
    pub(super) decoder: Decoder,
    /// Bytes that are queued for it.
    pub(super) out: Vec<u8>,
    /// Whether it has reported that it is warm, for its next run.
    pub(super) is_ready: bool,
    /// Whether it has ever reported that.
    pub(super) was_ready: bool,
    pub(super) runs: u32,
    idle_since: Instant,
    pub(super) is_elsewhere: bool,
    /// Its control group, where it has one.
    pub(super) group: Option<Arc<Group>>,
    shared: Arc<Shared>,
}

impl fmt::Debug for WorkerProcess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("WorkerProcess").field("pid", &self.pid).finish_non_exhaustive()
    }
}

impl WorkerProcess {
    /// Logs which measures of the sandbox are missing, once for all workers. `cx doctor` asks the
    /// kernel, and need not see that a service manager or a container forbids their use.
    pub(super) fn warn_of_missing(&self, missing: &[String]) {
        if !missing.is_empty() && !self.shared.has_warned.swap(true, Ordering::Relaxed) {
            let missing = preview(&missing.join(", "), MAX_MISSING);
            tracing::warn!(%missing, "worker processes are confined less than they should be");
        }
    }

    /// Whether its first message has arrived, or is not waited for.
    fn has_spoken(&self) -> bool {
        if self.is_elsewhere && self.idle_since.elapsed() > MAX_SILENCE {
            return true;
        }
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let socket = self.socket.as_ref();
        socket.is_none_or(|socket| recv(socket, &mut [0; 1][..], flags) != Err(Errno::AGAIN))
    }

    /// The exit status, if the process has ended and that is known already.
    pub(super) fn status(&mut self) -> Option<ExitStatus> {
        self.child.as_mut()?.try_wait().ok()?
    }

    /// Whether the process has ended.
    fn has_ended(&mut self) -> bool {
        self.child.as_mut().is_none_or(WorkerChild::has_ended)
    }

    /// The exit status of a worker that has closed its connection, if it ends soon.
    pub(super) async fn ended(&mut self) -> Option<ExitStatus> {
        for _ in 0..STATUS_TRIES {
            if let Some(status) = self.status() {
                return Some(status);
            }
            tokio::time::sleep(STATUS_PAUSE).await;
        }
        None
    }

    /// Describes how the process has ended, as the rest of a sentence; `None` if the status is not
    /// known.
    pub(super) fn describe(&self, status: Option<ExitStatus>) -> String {
        describe(status, self.is_elsewhere)
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        self.killer.kill();
        let Some(mut child) = self.child.take() else { return };
        let mut state = self.shared.state.lock();
        if state.has_thread {
            state.dying.push(Dying { child, since: Instant::now(), _group: self.group.take() });
            self.shared.changed.notify_one();
        } else {
            drop(state);
            child.kill();
            child.reap();
        }
    }
}

/// A worker that was killed.
struct Dying {
    child: WorkerChild,
    since: Instant,
    /// Removed when the worker was reaped.
    _group: Option<Arc<Group>>,
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

#[derive(Default)]
struct Shared {
    state: Mutex<WorkersState>,
    /// Signals the thread.
    changed: Condvar,
    /// Whether missing measures of the sandbox were logged.
    has_warned: AtomicBool,
}

#[derive(Default)]
struct WorkersState {
    /// Unused workers, which have served no tenant, oldest first.
    fresh: VecDeque<WorkerProcess>,
    /// Idle workers, each with the tenant whose runs it has served.
    used: Vec<(Tenant, WorkerProcess)>,
    /// Runs that wait for a worker.
    wanted: VecDeque<oneshot::Sender<io::Result<WorkerProcess>>>,
    /// Killed workers that are not reaped yet.
    dying: Vec<Dying>,
    /// Failures to start in a row.
    failures: u32,
    /// No worker is started ahead of time before this instant, because of failures.
    paused_until: Option<Instant>,
    /// The same, because a run has just got one.
    settled_at: Option<Instant>,
    has_thread: bool,
    is_closed: bool,
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
        let keeper = Keeper {
            options: options.clone(),
            shared: Arc::clone(&shared),
            fork_server: None,
            fork_failures: 0,
            no_fork_server_until: None,
        };
        std::thread::Builder::new().name("cx-workers".to_owned()).spawn(move || keeper.work())?;
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
            if !worker.has_ended() {
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
        self.options.program.is_elsewhere
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
        if has_failed || state.is_empty() {
            self.shared.changed.notify_one();
        }
        worker.idle_since = Instant::now();
        state.used.push((tenant, worker));
        let surplus = state.used.len() > self.options.spare.max(1);
        surplus.then(|| state.used.remove(0).1)
    }

    /// Records that a worker has ended before it was ready. The next ones are started after a
    /// pause.
    pub(super) fn note_failed_start(&self) {
        self.shared.state.lock().pause();
    }
}

impl Workers {
    /// Whether all workers that are started ahead of time are warm or have failed.
    pub(super) fn are_warm(&self) -> bool {
        let state = self.shared.state.lock();
        if self.options.program.stands_in {
            return state.fresh.len() >= self.options.spare || state.failures > 0 || state.is_closed;
        }
        let spoken = state.fresh.iter().filter(|worker| worker.has_spoken()).count();
        spoken >= self.options.spare || state.failures > 0 || state.is_closed
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

impl WorkersState {
    /// Whether there is nothing that the thread has to look after.
    fn is_empty(&self) -> bool {
        self.dying.is_empty() && self.used.is_empty() && self.fresh.is_empty()
    }

    /// When the next worker may be started ahead of time; `None` if that is now.
    fn next_start(&self, now: Instant) -> Option<Instant> {
        [self.paused_until, self.settled_at].into_iter().flatten().filter(|at| now < *at).max()
    }

    fn pause(&mut self) {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(10)).min(MAX_PAUSE);
        self.failures += 1;
        self.paused_until = Some(Instant::now() + pause);
    }
}

/// The thread that starts, watches and reaps.
struct Keeper {
    options: WorkerOptions,
    shared: Arc<Shared>,
    fork_server: Option<Arc<ForkServer>>,
    /// Fork servers in a row that have failed.
    fork_failures: u32,
    /// None is started before this instant, because one has failed.
    no_fork_server_until: Option<Instant>,
}

impl Keeper {
    fn work(mut self) {
        loop {
            let ended = self.look();
            drop(ended);
            let mut state = self.shared.state.lock();
            if state.is_closed && state.dying.is_empty() {
                state.has_thread = false;
                return;
            }
            if let Some(wanted) = state.wanted.pop_front() {
                drop(state);
                if wanted.is_closed() {
                    // The run that requested it was cancelled.
                    continue;
                }
                let _gone = wanted.send(self.start());
                continue;
            }
            let now = Instant::now();
            let next_start = state.next_start(now);
            let is_short = !state.is_closed && state.fresh.len() < self.options.spare;
            if is_short && next_start.is_none() {
                state.settled_at = None;
                drop(state);
                let started = self.start();
                let mut state = self.shared.state.lock();
                match started {
                    // The workers were closed meanwhile, by a thread that has not seen this one.
                    Ok(worker) if state.is_closed => {
                        drop(state);
                        drop(worker);
                    }
                    Ok(worker) => state.fresh.push_back(worker),
                    // They were closed while a fork server warmed up.
                    Err(_closed) if state.is_closed => {}
                    Err(error) => {
                        tracing::warn!(%error, "a worker process cannot be started");
                        state.pause();
                    }
                }
                continue;
            }
            let is_busy = next_start.is_some() || !state.is_empty();
            // Idle workers are checked periodically, because one may have been killed.
            let pause = if state.dying.is_empty() { TICK * 25 } else { TICK };
            let pause = next_start.map_or(pause, |at| pause.min(at - now));
            if is_busy {
                self.shared.changed.wait_for(&mut state, pause);
            } else {
                self.shared.changed.wait(&mut state);
            }
        }
    }

    /// Starts a worker: forked if that is possible, else as a process that warms up first.
    fn start(&mut self) -> io::Result<WorkerProcess> {
        if self.options.program.forks && self.no_fork_server_until.is_none_or(|until| until <= Instant::now())
        {
            match self.fork() {
                Ok(worker) => {
                    self.fork_failures = 0;
                    return Ok(worker);
                }
                Err(error) if self.shared.state.lock().is_closed => return Err(error),
                Err(error) => {
                    tracing::debug!(%error, "no fork server");
                    // Its workers keep it until they have ended.
                    self.fork_server = None;
                    let pause = MAX_PAUSE.saturating_mul(1 << self.fork_failures.min(MAX_DOUBLINGS));
                    self.fork_failures = self.fork_failures.saturating_add(1);
                    self.no_fork_server_until = Some(Instant::now() + pause);
                }
            }
        }
        start(&self.options, &self.shared)
    }

    fn fork(&mut self) -> io::Result<WorkerProcess> {
        let server = match &self.fork_server {
            Some(server) => Arc::clone(server),
            None => {
                let server = Arc::new(ForkServer::start(&self.options)?);
                server.await_warm(|| self.shared.state.lock().is_closed)?;
                Arc::clone(self.fork_server.insert(server))
            }
        };
        fork(&server, &self.options, &self.shared)
    }

    /// Reaps workers that have ended, and returns idle workers that no run will use.
    fn look(&self) -> Vec<WorkerProcess> {
        // Dropped after the lock: with the last worker of a fork server it is ended and reaped.
        let mut reaped = Vec::new();
        let mut state = self.shared.state.lock();
        for mut worker in std::mem::take(&mut state.dying) {
            if worker.since.elapsed() > MAX_END {
                worker.child.kill();
            }
            let is_waited_for = worker.since.elapsed() < MAX_STATUS_WAIT || !worker.child.has_ended();
            if matches!(worker.child.try_wait(), Ok(None)) && is_waited_for {
                state.dying.push(worker);
            } else {
                reaped.push(worker);
            }
        }
        let mut ended = Vec::new();
        let mut kept = VecDeque::new();
        let mut has_failed = false;
        for mut worker in std::mem::take(&mut state.fresh) {
            if worker.has_ended() {
                has_failed = true;
                ended.push(worker);
            } else {
                kept.push_back(worker);
            }
        }
        state.fresh = kept;
        if has_failed {
            state.pause();
        }
        let mut used = Vec::new();
        for (tenant, mut worker) in std::mem::take(&mut state.used) {
            if worker.idle_since.elapsed() > KEEP || worker.has_ended() {
                ended.push(worker);
            } else {
                used.push((tenant, worker));
            }
        }
        state.used = used;
        ended
    }
}

#[cfg(test)]
mod tests;
