//! Admission control: which runs may start, and how many may wait.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::error::Error;
use crate::machine::MemorySource;
use crate::queue::{Queue, Refusal};
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
    /// Maximum sum of the memory limits of all running runs, in bytes.
    pub max_memory_bytes: usize,
    /// What decides about `max_memory_bytes`.
    pub memory_source: MemorySource,
}

/// The memory of all runs, and what decides about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct TotalMemory {
    pub(super) bytes: usize,
    pub(super) source: MemorySource,
}

/// Admission control: bounds the number and the memory of concurrent runs, and the length of the
/// queue.
pub(super) struct Admission {
    runs: Arc<Semaphore>,
    max_runs: usize,
    /// Permits for megabytes: the sum of the memory limits of all runs.
    memory: Arc<Semaphore>,
    total_memory: TotalMemory,
    /// Runs that have both permits. A run that waits for memory already holds its run permit, but
    /// is counted only as waiting.
    running: Arc<AtomicUsize>,
    queue: Queue,
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
    /// At most `runs` runs at a time, whose memory limits add up to at most `memory`; at most `queued`
    /// more wait, each for at most `max_wait`.
    pub(super) fn new(runs: usize, memory: TotalMemory, queued: usize, max_wait: Duration) -> Self {
        Self {
            runs: Arc::new(Semaphore::new(runs)),
            max_runs: runs,
            memory: Arc::new(Semaphore::new((memory.bytes >> 20).min(Semaphore::MAX_PERMITS))),
            total_memory: memory,
            running: Arc::default(),
            queue: Queue::new(queued, max_wait),
        }
    }

    pub(super) fn stats(&self) -> RunStats {
        RunStats {
            running: self.running.load(Ordering::Relaxed),
            queued: self.queue.waiting(),
            max_running: self.max_runs,
            max_queued: self.queue.max_waiting,
            max_memory_bytes: self.total_memory.bytes,
            memory_source: self.total_memory.source,
        }
    }

    /// Checks that a run with this memory limit can ever be admitted.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if it needs more than all runs together may use.
    pub(super) fn check(&self, memory_bytes: usize) -> Result<(), Error> {
        let TotalMemory { bytes, source } = self.total_memory;
        if memory_bytes <= bytes {
            return Ok(());
        }
        let problem = format!(
            "must be at most the memory of all runs, {bytes} (from: {}): {memory_bytes}",
            source.as_str()
        );
        Err(Error::InvalidOptions { option: "memory_bytes", problem })
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
        let timer = |wait| {
            let _entered = runtime.enter();
            sync::sleep(wait)
        };
        let Queue { max_waiting, max_wait, .. } = self.queue;
        match self.queue.enter(acquire, None, cancel, timer).await {
            Ok(permit) => permit.ok_or_else(cancelled),
            Err(Refusal::Full) => Err(self.full(format!("{max_waiting} runs are waiting already"))),
            Err(Refusal::TimedOut | Refusal::DeadlinePassed) => {
                Err(self.full(format!("no place was free within {max_wait:?}")))
            }
            Err(Refusal::Cancelled) => Err(cancelled()),
        }
    }

    fn full(&self, message: String) -> Box<ScriptError> {
        // A typical run is far shorter than the queue timeout.
        let retry_after = self.queue.max_wait.min(Duration::from_secs(5)).max(Duration::from_millis(100));
        let error = ScriptError::new(ErrorCode::QueueFull, message).with_hint("try again later");
        Box::new(ScriptError { retry_after: Some(retry_after), ..error })
    }
}

fn cancelled() -> Box<ScriptError> {
    Box::new(ScriptError::new(ErrorCode::Cancelled, "the run was cancelled before it started"))
}

#[cfg(test)]
mod models;
