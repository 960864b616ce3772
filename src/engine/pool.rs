//! Pool of worker threads that hold warm engine instances: V8 isolates, or Python interpreters in
//! WebAssembly. Each instance serves one run, then is dropped and replaced.
//!
//! A worker is ready when its instance is warm. A run starts when a compute slot is free
//! ([`crate::run::compute`]) and a worker is ready. If no worker is ready, a parked worker makes an
//! instance, or a new worker is started. After a run, the worker makes another instance if too few
//! are idle; otherwise it parks. So the number of idle instances settles at `warm`. The number of
//! workers settles at those that compute plus those whose runs wait for tools. Surplus workers end
//! after a second.

pub(crate) mod job;
mod run;
mod workers;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use tokio::sync::oneshot;

use self::job::Job;
use self::workers::{Shared, takes_runs};
use crate::engine::allocator::return_freed_memory;
use crate::engine::instance::Engine;
use crate::engine::resident;
use crate::error::Error;
use crate::machine;
use crate::run::compute::{self, ComputeSlots};
use crate::sync::{self, now};

/// A pool of instances. Dropping it ends the idle threads; busy threads end after their run.
pub(crate) struct Pool<E: Engine> {
    shared: Arc<Shared<E>>,
}

/// The state of one language's instances at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Instances that are warm and idle.
    pub ready: usize,
    /// Hung workers: their script could not be stopped and its run was answered without them. A
    /// worker that returns is no longer counted.
    pub hung: usize,
    /// Runs that wait for a worker.
    pub waiting: usize,
}

impl PoolStats {
    /// Whether the engine accepts runs. It does not while more than two of its workers hang; it
    /// does again when they return.
    pub fn takes_runs(&self) -> bool {
        takes_runs(self.hung)
    }

    /// The state of two pools together.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            ready: self.ready + other.ready,
            hung: self.hung + other.hung,
            waiting: self.waiting + other.waiting,
        }
    }
}

impl<E: Engine> Pool<E> {
    /// Starts the watchdog and `warm` worker threads. Does not wait for their instances.
    ///
    /// # Errors
    ///
    /// If the operating system refuses a thread.
    pub(crate) fn new(engine: E, warm: usize, trim_after: Duration) -> io::Result<Self> {
        Self::with_slots(engine, warm, trim_after, Arc::clone(compute::slots()))
    }

    fn with_slots(
        engine: E,
        warm: usize,
        trim_after: Duration,
        slots: Arc<ComputeSlots>,
    ) -> io::Result<Self> {
        // The watchdog, the root of the workers and the workers.
        machine::check_machine(warm + 2, 0, 0)?;
        let shared = Shared::new(engine, warm, trim_after, slots);
        let watchdog = Arc::clone(&shared);
        sync::spawn("cx-watchdog".to_owned(), move || {
            watchdog.watchdog.run(
                || {
                    watchdog.engine.tick();
                    watchdog.maintain();
                },
                || {
                    // Replies are freed after their workers have made this check, so it is made
                    // again here.
                    resident::guard().idle(return_freed_memory);
                },
            );
        })?;
        let pool = Self { shared };
        for _ in 0..warm {
            pool.shared.start_thread()?;
        }
        Ok(pool)
    }

    /// Queues a run for a worker. The result is sent through the job's reply channel.
    pub(crate) fn submit(&self, job: Job) {
        {
            let mut state = self.shared.state.lock();
            if !takes_runs(state.hung) {
                drop(state);
                return self.shared.refuse(job);
            }
            if state.waiting.is_empty() {
                state.progressed = Some(now());
            }
            state.waiting.push_back(job);
        }
        if let Err(source) = self.shared.dispatch() {
            // Runs that wait for workers that are busy now are still served.
            let newest = self.shared.state.lock().waiting.pop_back();
            if let Some(job) = newest {
                let _ = job.reply.send(Err(Error::Start { what: "a thread for the script", source }));
            }
            // Runs queued meanwhile relied on the thread that was refused.
            self.shared.dispatch_or_warn();
        }
    }

    /// Completes when `warm` instances are ready, or when one could not be made. Starts threads for those that are
    /// missing, which an earlier failure may have left out.
    pub(crate) fn warm(&self) -> impl Future<Output = ()> + use<E> {
        let (sender, receiver) = oneshot::channel();
        let missing = {
            let mut state = self.shared.state.lock();
            if state.ready >= self.shared.warm {
                let _ = sender.send(());
                0
            } else {
                state.warm_waiters.push(sender);
                self.shared.warm.saturating_sub(state.ready + state.warming)
            }
        };
        self.shared.start_warm_threads(missing);
        receiver.map(drop)
    }

    /// The engine of its instances.
    #[cfg(all(feature = "process", target_os = "linux"))]
    pub(crate) fn engine(&self) -> &E {
        &self.shared.engine
    }

    /// The pool's state now.
    pub(crate) fn stats(&self) -> PoolStats {
        let state = self.shared.state.lock();
        PoolStats { ready: state.ready, hung: state.hung, waiting: state.waiting.len() }
    }
}

impl<E: Engine> Drop for Pool<E> {
    fn drop(&mut self) {
        let waiting = {
            let mut state = self.shared.state.lock();
            state.closed = true;
            std::mem::take(&mut state.waiting)
        };
        for job in waiting {
            let _ = job.reply.send(Err(Error::Closed));
        }
        self.shared.work.notify_all();
        self.shared.wanted.notify_all();
        self.shared.watchdog.close();
    }
}

#[cfg(test)]
mod models;
#[cfg(test)]
mod tests;
