//! Writes that are delayed, so that changes in quick succession are written together.
//!
//! Tools that scripts call teach their catalog something: the shapes of results, and which tools are used together.
//! Calls come in bursts, and each write of such a record locks and replaces a file that all processes share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;

use crate::machine::probe;

/// How long to wait for further changes before new ones are written.
const PAUSE: Duration = Duration::from_secs(2);

/// The delayed write of one record.
#[derive(Debug, Default)]
pub(crate) struct DelayedSave {
    is_scheduled: Arc<AtomicBool>,
}

impl DelayedSave {
    /// Calls `save`, which may block, on a thread of `runtime` after [`PAUSE`]. Does nothing if a call is scheduled
    /// already. `what` names the record in the log.
    pub(crate) fn schedule(
        &self,
        runtime: &Handle,
        what: &'static str,
        save: impl FnOnce() + Send + 'static,
    ) {
        if self.is_scheduled.swap(true, Ordering::Relaxed) {
            return;
        }
        let is_scheduled = Arc::clone(&self.is_scheduled);
        // The task ends by itself. If the runtime is shut down earlier, closing has already saved.
        runtime.spawn(async move {
            tokio::time::sleep(PAUSE).await;
            // Before the write: a change during it needs another one.
            is_scheduled.store(false, Ordering::Relaxed);
            match probe::spawn_blocking(&Handle::current(), save) {
                Ok(saving) => {
                    let _runtime_ends = saving.await;
                }
                Err(error) => tracing::warn!(%error, "{what} are not saved"),
            }
        });
    }
}
