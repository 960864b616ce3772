//! The prompts of one run, approvals and elicitations: it bounds their number, shows one at a time,
//! and bounds the time that each may stay open.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::run::clock::RunClock;
use crate::run::limits::in_force::RunLimits;
use crate::text::panic_message;

/// The prompts of one run.
pub(super) struct Prompts {
    limits: RunLimits,
    /// Number of prompts that were shown or wait to be shown.
    reserved: Arc<AtomicU32>,
    /// The holder of its permit shows a prompt.
    turn: Arc<Semaphore>,
    clock: Arc<RunClock>,
    cancel: CancellationToken,
    runtime: Handle,
}

/// Why a prompt has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// The run is over.
    RunOver,
    /// There was no answer in time.
    Elapsed,
    /// The code that shows prompts has panicked, or the runtime is shutting down.
    Failed,
}

impl Prompts {
    pub(super) fn new(
        limits: &RunLimits,
        clock: &Arc<RunClock>,
        cancel: &CancellationToken,
        runtime: &Handle,
    ) -> Arc<Self> {
        Arc::new(Self {
            limits: limits.clone(),
            reserved: Arc::default(),
            turn: Arc::new(Semaphore::new(1)),
            clock: Arc::clone(clock),
            cancel: cancel.clone(),
            runtime: runtime.clone(),
        })
    }

    /// The prompts of a run that this run has called. They count as this run's prompts, and only one prompt of both
    /// runs is open at a time.
    pub(super) fn of_nested(&self, clock: &Arc<RunClock>, cancel: &CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            limits: self.limits.clone(),
            reserved: Arc::clone(&self.reserved),
            turn: Arc::clone(&self.turn),
            clock: Arc::clone(clock),
            cancel: cancel.clone(),
            runtime: self.runtime.clone(),
        })
    }

    /// Maximum number of prompts.
    pub(super) fn max(&self) -> u32 {
        self.limits.now().questions
    }

    /// Time limit of each answer.
    pub(super) fn time(&self) -> Duration {
        self.limits.now().answer_time
    }

    /// Reserves one of the run's prompts; `false` if none is left.
    pub(super) fn reserve(&self) -> bool {
        let max = self.max();
        let next = |reserved: u32| (reserved < max).then_some(reserved + 1);
        self.reserved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }

    /// Shows a reserved prompt, after those that were requested before it, and waits for the answer. The run's clock is
    /// paused while the prompt is open.
    ///
    /// `ask` is polled by a task on the executor's runtime, and not before the prompt's turn. The task ends at the
    /// timeout, with the run, or when this future is dropped.
    pub(super) async fn show<T: Send + 'static>(
        &self,
        ask: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, NoAnswer> {
        // The semaphore is never closed; an error would only mean that the run is over.
        let turn = Arc::clone(&self.turn).acquire_owned().await.map_err(|_closed| NoAnswer::RunOver)?;
        let (clock, cancel, time) = (Arc::clone(&self.clock), self.cancel.clone(), self.time());
        let mut asking = JoinSet::new();
        asking.spawn_on(
            async move {
                let _turn = turn;
                let _pause = clock.pause();
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => Err(NoAnswer::RunOver),
                    answer = timeout(time, ask) => answer.map_err(|_elapsed| NoAnswer::Elapsed),
                }
            },
            &self.runtime,
        );
        match asking.join_next().await {
            Some(Ok(answer)) => answer,
            Some(Err(ended)) => {
                if let Ok(panic) = ended.try_into_panic() {
                    tracing::error!(panic = panic_message(&*panic), "what shows prompts has panicked");
                }
                Err(NoAnswer::Failed)
            }
            None => Err(NoAnswer::Failed),
        }
    }
}
