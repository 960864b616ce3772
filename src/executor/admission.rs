//! Admission control: which runs may start, and how many may wait.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::FutureExt as _;
use tokio_util::sync::CancellationToken;

use crate::error::{Error, OptionName};
use crate::machine::MemorySource;
use crate::queue::{Queue, QueueRefusal};
use crate::run::nested::MAX_DEPTH;
use crate::run::result::{ErrorCode, ScriptError};
use crate::sync::{self, AtomicUsize, Mutex, OwnedSemaphorePermit, Semaphore};

/// Bounds of the time after which a refused run should be tried again. A typical run is far shorter than the queue
/// timeout.
const MIN_RETRY_AFTER: Duration = Duration::from_millis(100);
const MAX_RETRY_AFTER: Duration = Duration::from_secs(5);

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
    runs: Arc<Permits>,
    /// Megabytes: the sum of the memory limits of all runs.
    memory: Arc<Permits>,
    total_memory: Mutex<TotalMemory>,
    /// Runs that have both permits. A run that waits for memory already holds its run permit, but
    /// is counted only as waiting.
    running: Arc<AtomicUsize>,
    queue: Queue,
    /// One more run at each depth of scripts that call one another. Runs that hold permits while they
    /// wait for the scripts that they call would otherwise wait for one another.
    reserved: [Arc<Semaphore>; MAX_DEPTH],
}

/// Permit of a run that another run has called. Dropping it admits another one.
pub(super) enum NestedPermit {
    /// It counts among all runs.
    Admitted(#[expect(dead_code, reason = "kept for its drop")] Permit),
    /// It has the permit that is reserved for its depth.
    Reserved(#[expect(dead_code, reason = "kept for its drop")] OwnedSemaphorePermit),
}

/// Permit of an admitted run. Dropping it admits another run.
pub(super) struct Permit {
    _run: Taken,
    _memory: Taken,
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
            runs: Permits::new(runs),
            memory: Permits::new(megabytes_of(memory)),
            total_memory: Mutex::new(memory),
            running: Arc::default(),
            queue: Queue::new(queued, max_wait),
            reserved: std::array::from_fn(|_depth| Arc::new(Semaphore::new(1))),
        }
    }

    /// Changes the bounds. Runs that were admitted under wider ones are not touched: others wait until
    /// enough of them have ended.
    #[cfg(feature = "mcp")]
    pub(super) fn set_bounds(&self, runs: usize, memory: TotalMemory) {
        *self.total_memory.lock() = memory;
        self.runs.set_max(runs);
        self.memory.set_max(megabytes_of(memory));
    }

    pub(super) fn stats(&self) -> RunStats {
        let total_memory = *self.total_memory.lock();
        RunStats {
            running: self.running.load(Ordering::Relaxed),
            queued: self.queue.waiting(),
            max_running: self.runs.max(),
            max_queued: self.queue.max_waiting,
            max_memory_bytes: total_memory.bytes,
            memory_source: total_memory.source,
        }
    }

    /// Checks that a run with this memory limit can ever be admitted.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if it needs more than all runs together may use.
    pub(super) fn check(&self, memory_bytes: usize) -> Result<(), Error> {
        let total_memory = *self.total_memory.lock();
        total_memory.check(memory_bytes)
    }

    /// Waits until the run may start. Dropping the future leaves the queue.
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
            let run = self.runs.take(1).await?;
            let memory = self.memory.take(megabytes).await?;
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
            Err(QueueRefusal::Full) => {
                let runs = if max_waiting == 1 { "run is" } else { "runs are" };
                Err(self.full(format!("{max_waiting} {runs} waiting already")))
            }
            Err(QueueRefusal::TimedOut | QueueRefusal::DeadlinePassed) => {
                Err(self.full(format!("no slot was free within {max_wait:?}")))
            }
            Err(QueueRefusal::Cancelled) => Err(cancelled()),
        }
    }

    /// As [`enter`](Self::enter), for a run that was called by one which is nested in `depth`
    /// others.
    ///
    /// It may also take the permit that is reserved for its depth. So of the deepest runs, which
    /// wait for no others, one is always running, and all end in turn. Because of these permits, up
    /// to [`MAX_DEPTH`] runs can exceed the bounds.
    ///
    /// # Errors
    ///
    /// As [`enter`](Self::enter), if the permit of its depth is taken too.
    pub(super) async fn enter_nested(
        &self,
        runtime: &tokio::runtime::Handle,
        depth: usize,
        memory_bytes: usize,
        cancel: &CancellationToken,
    ) -> Result<NestedPermit, Box<ScriptError>> {
        let admitted = self.enter(runtime, memory_bytes, cancel);
        let Some(reserved) = self.reserved.get(depth) else {
            return admitted.await.map(NestedPermit::Admitted);
        };
        tokio::select! {
            biased;
            permit = admitted => match permit {
                Ok(permit) => Ok(NestedPermit::Admitted(permit)),
                // The queue may be full of runs that wait until its caller ends, which waits for it.
                Err(refused) => match Arc::clone(reserved).acquire_many_owned(1).now_or_never() {
                    Some(Ok(permit)) if !cancel.is_cancelled() => Ok(NestedPermit::Reserved(permit)),
                    _ => Err(refused),
                },
            },
            permit = Arc::clone(reserved).acquire_many_owned(1) => {
                permit.map(NestedPermit::Reserved).map_err(|_closed| cancelled())
            }
        }
    }

    fn full(&self, message: String) -> Box<ScriptError> {
        let retry_after = self.queue.max_wait.clamp(MIN_RETRY_AFTER, MAX_RETRY_AFTER);
        let error = ScriptError::new(ErrorCode::QueueFull, message).with_hint("try again later");
        Box::new(ScriptError { retry_after: Some(retry_after), ..error })
    }
}

impl TotalMemory {
    /// Checks that there is room for a run with this memory limit.
    ///
    /// # Errors
    ///
    /// As [`Admission::check`].
    pub(super) fn check(self, memory_bytes: usize) -> Result<(), Error> {
        let Self { bytes, source } = self;
        if memory_bytes <= bytes {
            return Ok(());
        }
        let problem = format!(
            "must be at most the memory of all runs, {bytes} (from: {}): {memory_bytes}",
            source.as_str()
        );
        Err(Error::InvalidOptions { option: OptionName::MemoryBytes, problem })
    }
}

fn megabytes_of(memory: TotalMemory) -> usize {
    (memory.bytes >> 20).min(Semaphore::MAX_PERMITS)
}

/// Permits whose number can change while some are taken.
struct Permits {
    semaphore: Arc<Semaphore>,
    count: Mutex<Count>,
}

#[derive(Clone, Copy)]
struct Count {
    max: usize,
    /// Permits above `max` that are taken: each is withdrawn when it comes back.
    surplus: usize,
}

/// Permits that are taken until this is dropped.
struct Taken {
    /// `None` only while this is dropped.
    permit: Option<OwnedSemaphorePermit>,
    permits: Arc<Permits>,
}

impl Permits {
    fn new(max: usize) -> Arc<Self> {
        let count = Mutex::new(Count { max, surplus: 0 });
        Arc::new(Self { semaphore: Arc::new(Semaphore::new(max)), count })
    }

    fn max(&self) -> usize {
        self.count.lock().max
    }

    #[cfg(feature = "mcp")]
    fn set_max(&self, max: usize) {
        let mut count = self.count.lock();
        let (more, less) = (max.saturating_sub(count.max), count.max.saturating_sub(max));
        count.max = max;
        count.surplus += less;
        let kept = more.min(count.surplus);
        count.surplus -= kept;
        self.semaphore.add_permits(more - kept);
        self.withdraw(&mut count);
    }

    /// Withdraws surplus permits that are not taken.
    fn withdraw(&self, count: &mut Count) {
        if count.surplus > 0 {
            count.surplus -= self.semaphore.forget_permits(count.surplus);
        }
    }

    /// `None` if the semaphore is closed, which it never is.
    async fn take(self: &Arc<Self>, permits: u32) -> Option<Taken> {
        let permit = Arc::clone(&self.semaphore).acquire_many_owned(permits).await.ok()?;
        Some(Taken { permit: Some(permit), permits: Arc::clone(self) })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut count = self.permits.count.lock();
        if let Some(mut permit) = self.permit.take() {
            let surplus = count.surplus.min(permit.num_permits());
            if let Some(part) = permit.split(surplus) {
                part.forget();
                count.surplus -= surplus;
            }
        }
        // The permits of a waiter whose wait was cancelled came back without this.
        self.permits.withdraw(&mut count);
    }
}

fn cancelled() -> Box<ScriptError> {
    Box::new(ScriptError::new(ErrorCode::Cancelled, "the run was cancelled before it started"))
}

#[cfg(test)]
mod models;
#[cfg(test)]
mod tests;
