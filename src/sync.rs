//! Locks, counters, semaphores, threads and time for the modules that are model-checked:
//! [`crate::engine::pool`], [`crate::run::compute`], [`crate::engine::watchdog`], the circuit
//! breaker, the run's clock and the admission queue.
//!
//! In normal builds these are the types of parking_lot, std and tokio. In tests they are wrappers
//! with a scheduler (`sync/model.rs`). On the threads of a model it decides at each step which
//! thread continues; on all other threads it does nothing.

#[cfg(not(test))]
mod real {
    use std::time::{Duration, Instant};

    pub(crate) use std::sync::atomic::AtomicUsize;

    pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
    pub(crate) use tokio::sync::{OwnedSemaphorePermit, Semaphore};

    /// The current time, which the scheduler of a model controls.
    pub(crate) fn now() -> Instant {
        Instant::now()
    }

    /// Completes after `duration`. Like tokio's timers, it must be called inside a runtime.
    pub(crate) fn sleep(duration: Duration) -> impl Future<Output = ()> {
        tokio::time::sleep(duration)
    }

    /// Runs `task` on a new thread.
    ///
    /// # Errors
    ///
    /// If the operating system refuses the thread.
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
