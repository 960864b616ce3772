//! The thread that starts, watches and reaps the workers of an engine.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::end::MAX_END;
use super::forking::ForkServer;
use super::options::{WorkerOptions, WorkerRole};
use super::start::{fork, start};
use super::state::{MAX_PAUSE, Shared, WorkerProcess, WorkersState};

/// How often the thread looks for processes to reap, while some are ending, and at the memory of idle workers that have
/// served a run and may serve another one.
const TICK: Duration = Duration::from_millis(20);

/// How often it looks otherwise: an unused worker may have been killed.
const LONG_TICK: Duration = Duration::from_millis(500);

/// How long a worker that has served a tenant waits for the next run of that tenant.
const KEEP: Duration = Duration::from_secs(10);

/// After a failure of a fork server there is none for the longest pause of workers. The pause doubles with each failure
/// in a row, at most this number of times: runs wait while another one warms up.
const MAX_DOUBLINGS: u32 = 6;

/// A fork server is replaced after a crash of a worker if it has been warm for so long. A script that crashes on
/// purpose would have others wait for each new one.
const MIN_AGE: Duration = Duration::from_secs(1);

/// Maximum wait for the exit status of a worker that nobody uses any more. Its fork server may have been stopped.
const MAX_STATUS_WAIT: Duration = Duration::from_secs(5);

/// Starts, watches and reaps workers, on a thread of its own.
pub(super) struct Supervisor {
    options: WorkerOptions,
    shared: Arc<Shared>,
    fork_server: Option<Arc<ForkServer>>,
    /// Fork servers in a row that have failed.
    fork_failures: u32,
    /// None is started before this instant, because one has failed.
    no_fork_server_until: Option<Instant>,
}

impl Supervisor {
    /// A supervisor of workers with these options, none of which has been started.
    pub(super) fn new(options: WorkerOptions, shared: Arc<Shared>) -> Self {
        Self { options, shared, fork_server: None, fork_failures: 0, no_fork_server_until: None }
    }

    /// The main loop of the thread. Returns when the workers are closed and have ended.
    pub(super) fn work(mut self) {
        loop {
            let ended = self.reap_and_prune();
            drop(ended);
            let mut state = self.shared.state.lock();
            if state.is_closed && state.terminating.is_empty() {
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
                self.start_spare();
                continue;
            }
            let is_busy = next_start.is_some() || !state.is_empty();
            let interval = interval(&state);
            state.sleeps_long = !is_busy || interval > TICK;
            let pause = next_start.map_or(interval, |at| interval.min(at - now));
            if is_busy {
                self.shared.changed.wait_for(&mut state, pause);
            } else {
                self.shared.changed.wait(&mut state);
            }
        }
    }

    /// Starts a worker ahead of time. After a failure the next ones are started after a pause.
    fn start_spare(&mut self) {
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
    }

    /// Starts a worker: forked if that is possible, else as a process that warms up first.
    fn start(&mut self) -> io::Result<WorkerProcess> {
        let forks = self.options.program.role == (WorkerRole::Worker { forks: true });
        if forks && self.no_fork_server_until.is_none_or(|until| until <= Instant::now()) {
            match self.fork() {
                Ok(worker) => {
                    self.fork_failures = 0;
                    return Ok(worker);
                }
                Err(error) if self.shared.state.lock().is_closed => return Err(error),
                Err(error) => {
                    tracing::debug!(%error, "a worker is not forked");
                    if self.fork_server.as_ref().is_none_or(|server| server.is_lost()) {
                        // Its workers keep it until they have ended.
                        self.fork_server = None;
                        let pause = MAX_PAUSE.saturating_mul(1 << self.fork_failures.min(MAX_DOUBLINGS));
                        self.fork_failures = self.fork_failures.saturating_add(1);
                        self.no_fork_server_until = Some(Instant::now() + pause);
                    }
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

    /// Reaps terminating workers, and removes idle workers that no run will use. Returns the latter, which are killed
    /// when they are dropped.
    pub(super) fn reap_and_prune(&mut self) -> Vec<WorkerProcess> {
        // Dropped after the lock: with the last worker of a fork server it is ended and reaped.
        let mut reaped = Vec::new();
        let mut state = self.shared.state.lock();
        for mut worker in std::mem::take(&mut state.terminating) {
            if worker.since.elapsed() > MAX_END {
                worker.child.kill();
            }
            let is_waited_for = worker.since.elapsed() < MAX_STATUS_WAIT || !worker.child.has_ended();
            if matches!(worker.child.try_wait(), Ok(None)) && is_waited_for {
                state.terminating.push(worker);
                continue;
            }
            if let Some(server) = &self.fork_server
                && server.age() > MIN_AGE
                && worker.child.has_crashed_of(server)
            {
                // All its workers have the same addresses, and a script may try one after the other. The worker keeps it
                // until it is dropped.
                self.fork_server = None;
            }
            reaped.push(worker);
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
            if worker.has_grown() || worker.idle_since.elapsed() > KEEP || worker.has_ended() {
                ended.push(worker);
            } else {
                used.push((tenant, worker));
            }
        }
        state.used = used;
        ended
    }
}

/// How often the thread looks. While a worker serves one run after the other, also during these runs, so that it need
/// not be woken at the end of each.
pub(super) fn interval(state: &WorkersState) -> Duration {
    let is_in_use = !state.used.is_empty() || state.used_at.is_some_and(|at| at.elapsed() < KEEP);
    if is_in_use || !state.terminating.is_empty() { TICK } else { LONG_TICK }
}
