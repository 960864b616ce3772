//! The tokio runtime of the tools' timers, sockets, tasks and child processes.

use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};

use crate::error::{Error, OptionName};
use crate::machine;

/// Threads of a runtime of the executor's own.
const WORKERS: usize = 2;

/// File descriptors that such a runtime and the first instance of an engine open.
const DESCRIPTORS: usize = 20;

/// A runtime of the executor's own. Dropping it does not wait for its tasks, because that is not
/// possible on a worker thread of a runtime, where an executor may be dropped.
pub(super) struct OwnRuntime(Option<Runtime>);

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Starts a runtime, unless the embedder gives one.
///
/// # Errors
///
/// [`Error::InvalidOptions`] for a current-thread runtime, [`Error::Start`] if the system refuses a
/// thread.
pub(super) fn start(given: Option<Handle>) -> Result<(OwnRuntime, Handle), Error> {
    if let Some(runtime) = given {
        // A script's thread blocks while it waits for some calls, so a runtime that is driven by
        // one blocked thread would never make progress.
        if runtime.runtime_flavor() == RuntimeFlavor::CurrentThread {
            let problem = "expected a multi-thread runtime: a current-thread one".to_owned();
            return Err(Error::InvalidOptions { option: OptionName::Runtime, problem });
        }
        return Ok((OwnRuntime(None), runtime));
    }
    let failed = |source| Error::Start { what: "the tools' runtime", source };
    // tokio panics without a thread or without descriptors for signals, and what it runs on threads
    // that may block would wait forever for the first of these.
    machine::check_machine(WORKERS + 1, DESCRIPTORS, 0).map_err(failed)?;
    let runtime = Builder::new_multi_thread()
        // For protocol work only; scripts and native tools run on their own threads.
        .worker_threads(WORKERS)
        .thread_name("cx-io")
        .enable_all()
        .build()
        .map_err(failed)?;
    let handle = runtime.handle().clone();
    Ok((OwnRuntime(Some(runtime)), handle))
}
