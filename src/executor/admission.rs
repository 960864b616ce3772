//! Admission control: which runs may start, and how many may wait.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::error::Error;
use crate::run::result::{ErrorCode, ScriptError};
use crate::sync::{self, AtomicUsize, OwnedSemaphorePermit, Semaphore};

/// The number of an executor's runs, and its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunStats {
    /// Runs that were admitted and have not ended.
    pub running: usize,
    /// Runs that wait for admission: for a slot, or for memory.
    pub queued: usize,
    /// Maximum number of running runs.
    pub max_running: usize,
    /// Maximum number of queued runs. Further runs are refused immediately.
    pub max_queued: usize,
}

/// Admission control: bounds the number and the memory of concurrent runs, and the length of the
/// queue.
pub(super) struct Admission {
    runs: Arc<Semaphore>,
    max_runs: usize,
    memory_bytes: usize,
    /// Permits for megabytes: the sum of the memory limits of all runs.
    memory: Arc<Semaphore>,
    /// Runs that have both permits. A run that waits for memory already holds its run permit, but
    /// is counted only as waiting.
    running: Arc<AtomicUsize>,
    waiting: AtomicUsize,
    max_waiting: usize,
    max_wait: Duration,
}

/// Permit of an admitted run. Dropping it admits another run.
pub(super) struct Permit {
    _run: OwnedSemaphorePermit,
    _memory: OwnedSemaphorePermit,
    running: Arc<AtomicUsize>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Admission {
    /// At most `runs` runs at a time, whose memory limits add up to at most `memory_bytes`; at most
    /// `queued` more wait, each for at most `max_wait`.
    pub(super) fn new(runs: usize, memory_bytes: usize, queued: usize, max_wait: Duration) -> Self {
        Self {
            runs: Arc::new(Semaphore::new(runs)),
            max_runs: runs,
            memory_bytes,
            memory: Arc::new(Semaphore::new((memory_bytes >> 20).min(Semaphore::MAX_PERMITS))),
            running: Arc::default(),
            waiting: AtomicUsize::new(0),
            max_waiting: queued,
            max_wait,
        }
    }

    /// Checks that a run with this memory limit can ever be admitted.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if not.
    pub(super) fn check_memory(&self, run_bytes: usize) -> Result<(), Error> {
        let memory = self.memory_bytes;
        if memory < run_bytes {
            let problem = format!("must be at least one run's `memory_bytes`, {run_bytes}: {memory}");
            return Err(Error::InvalidOptions { option: "total_memory_bytes", problem });
        }
        Ok(())
    }

    pub(super) fn stats(&self) -> RunStats {
        RunStats {
            running: self.running.load(Ordering::Relaxed),
            queued: self.waiting.load(Ordering::Relaxed),
            max_running: self.max_runs,
            max_queued: self.max_waiting,
        }
    }

    /// Waits until the run may start. Dropping the future gives its place up.
    ///
    /// # Errors
    ///
    /// `QUEUE_FULL` or `CANCELLED`, as the run's error.
    pub(super) async fn enter(
        &self,
        runtime: &tokio::runtime::Handle,
        memory_bytes: usize,
        cancel: &CancellationToken,
    ) -> Result<Permit, Box<ScriptError>> {
        let megabytes = u32::try_from(memory_bytes >> 20).unwrap_or(u32::MAX);
        let acquire = async {
            let run = Arc::clone(&self.runs).acquire_owned().await.ok()?;
            let memory = Arc::clone(&self.memory).acquire_many_owned(megabytes).await.ok()?;
            self.running.fetch_add(1, Ordering::Relaxed);
            Some(Permit { _run: run, _memory: memory, running: Arc::clone(&self.running) })
        };
        tokio::pin!(acquire);
        if let Some(permit) = futures::FutureExt::now_or_never(acquire.as_mut()) {
            return permit.ok_or_else(cancelled);
        }
        let _place = self.wait_in_line()?;
        let timeout = {
            let _entered = runtime.enter();
            sync::sleep(self.max_wait)
        };
        tokio::select! {
            biased;
            permit = acquire => permit.ok_or_else(cancelled),
            () = timeout => Err(self.full(format!("no place was free within {:?}", self.max_wait))),
            () = cancel.cancelled() => Err(cancelled()),
        }
    }

    fn wait_in_line(&self) -> Result<PlaceInLine<'_>, Box<ScriptError>> {
        let place = PlaceInLine(&self.waiting);
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= self.max_waiting {
            drop(place);
            return Err(self.full(format!("{} runs are waiting already", self.max_waiting)));
        }
        Ok(place)
    }

    fn full(&self, message: String) -> Box<ScriptError> {
        // A typical run is far shorter than the queue timeout.
        let retry_after = self.max_wait.min(Duration::from_secs(5)).max(Duration::from_millis(100));
        let error = ScriptError::new(ErrorCode::QueueFull, message).with_hint("try again later");
        Box::new(ScriptError { retry_after: Some(retry_after), ..error })
    }
}

struct PlaceInLine<'a>(&'a AtomicUsize);

impl Drop for PlaceInLine<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn cancelled() -> Box<ScriptError> {
    Box::new(ScriptError::new(ErrorCode::Cancelled, "the run was cancelled before it started"))
}

#[cfg(test)]
mod models;
