//! Detects that an engine has had too many hung workers for too long, so that the server has to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::engine::engines;
use crate::executor::Executor;

/// How long an engine may have too many hung workers before the server ends, so that its client or supervisor restarts
/// it. Most built-in functions that cannot be interrupted return within seconds.
const GRACE: Duration = Duration::from_secs(10);

/// Interval at which the number of hung workers is checked during that time.
const INTERVAL: Duration = Duration::from_millis(250);

/// Why a call is refused when the server is about to end. It is logged too, once.
pub(crate) const SERVER_ENDS: &str =
    "the server is about to end: too many threads run scripts that cannot be stopped";

/// Watches the hung workers of an executor while there are too many of them.
pub(crate) struct HungWorkers {
    executor: Executor,
    /// Whether a task is watching them.
    is_watched: AtomicBool,
    /// Cancelled when an engine has had too many for [`GRACE`].
    server_must_end: CancellationToken,
}

impl HungWorkers {
    pub(crate) fn new(executor: Executor) -> Self {
        Self { executor, is_watched: AtomicBool::new(false), server_must_end: CancellationToken::new() }
    }

    /// Starts to watch the hung workers if an engine has too many of them. Called before and after
    /// each run. Must be called in a tokio runtime.
    pub(crate) fn watch(self: &Arc<Self>) {
        if self.are_few() || self.is_watched.swap(true, Ordering::Relaxed) {
            return;
        }
        // A weak reference, so that this task does not keep a server alive that is about to end.
        let workers = Arc::downgrade(self);
        tokio::spawn(async move {
            let until = Instant::now() + GRACE;
            loop {
                tokio::time::sleep(INTERVAL).await;
                let Some(workers) = workers.upgrade() else { return };
                if workers.are_few() {
                    return workers.is_watched.store(false, Ordering::Relaxed);
                }
                if Instant::now() >= until {
                    tracing::error!("{SERVER_ENDS}");
                    return workers.server_must_end.cancel();
                }
            }
        });
    }

    /// Whether the server is about to end because of hung workers and accepts no more calls.
    pub(crate) fn server_must_end(&self) -> bool {
        self.server_must_end.is_cancelled()
    }

    /// Completes when the server has to end because of hung workers.
    pub(crate) async fn end_of_server(&self) {
        self.server_must_end.cancelled().await;
    }

    /// Whether a task is watching them.
    #[cfg(test)]
    pub(crate) fn are_watched(&self) -> bool {
        self.is_watched.load(Ordering::Relaxed)
    }

    fn are_few(&self) -> bool {
        engines::AVAILABLE.iter().all(|&language| self.executor.pool_stats(language).takes_runs())
    }
}
