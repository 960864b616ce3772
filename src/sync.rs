//! Locks, counters, semaphores, threads and time for the modules whose schedules are checked: [`crate::engine::pool`],
//! [`crate::run::compute`], [`crate::engine::watchdog`], the circuit breaker, the run's clock and the admission queue.
//!
//! Outside of tests these are the types of parking_lot, std and tokio under one name. In tests they are the same types
//! with a scheduler in between (`sync/model.rs`), which decides on the threads of a model who goes on at each step; on
//! all other threads it does nothing.

#[cfg(not(test))]
mod real {
    use std::time::{Duration, Instant};

    pub(crate) use std::sync::atomic::AtomicUsize;

    pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
    pub(crate) use tokio::sync::{OwnedSemaphorePermit, Semaphore};

    /// The time, which the scheduler of a model decides.
    pub(crate) fn now() -> Instant {
        Instant::now()
    }

    /// Completes after `duration`. Called, as tokio's timers are, where a runtime is entered.
    pub(crate) fn sleep(duration: Duration) -> impl Future<Output = ()> {
        tokio::time::sleep(duration)
    }

    /// Runs `task` on a new thread.
    ///
    /// # Errors
    ///
    /// When the operating system refuses it.
    pub(crate) fn spawn(name: String, task: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        std::thread::Builder::new().name(name).spawn(task).map(drop)
    }
}

#[cfg(not(test))]
pub(crate) use real::{
    AtomicUsize, Condvar, Mutex, MutexGuard, OwnedSemaphorePermit, Semaphore, now, sleep, spawn,
};

#[cfg(test)]
pub(crate) mod model;

#[cfg(test)]
pub(crate) use model::types::{
    AtomicUsize, Condvar, Mutex, MutexGuard, OwnedSemaphorePermit, Semaphore, now, sleep, spawn,
};
