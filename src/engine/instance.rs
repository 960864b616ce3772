//! What the pool needs of a script engine: it makes instances, and each serves one run.

use std::io;
use std::sync::Arc;

use crate::engine::host::RunHost;
use crate::engine::stop::Stop;
use crate::run::check::survey::Survey;
use crate::run::result::{Outcome, ScriptError};

/// Runs scripts of one language.
pub(crate) trait Engine: Send + Sync + Sized + 'static {
    /// Name of the worker threads; a number is appended.
    const THREAD: &'static str;
    /// Made ahead of time on a worker thread, used for one run, and dropped on the same thread.
    type Instance: Instance<Self>;
    /// A source that is ready to be executed.
    type Prepared;

    /// Runs `task` on a new thread, which inherits nothing from the calling thread.
    ///
    /// # Errors
    ///
    /// If the operating system refuses the thread.
    fn spawn(&self, name: String, task: Box<dyn FnOnce() + Send>) -> io::Result<()>;

    /// Makes an instance, including all of its state that does not depend on a script. Called
    /// inside the thread's tokio runtime.
    ///
    /// # Errors
    ///
    /// Why the instance could not be made, as text.
    fn make(&self) -> impl Future<Output = Result<Self::Instance, String>>;

    /// Called in a process that was forked, on its only thread and while it can open files: replaces files that describe
    /// the other process, such as those of `/proc/self`, which belong to the process that opened them.
    #[cfg(all(feature = "process", target_os = "linux"))]
    fn begin_forked(&self) {}

    /// Makes an instance ready that was made before its process was forked: replaces the random numbers that the other
    /// process has, too, and uses the memory that a run will use, because the first use of each page takes time. Called
    /// on the instance's thread, before it is known what its run is.
    ///
    /// # Errors
    ///
    /// Why that failed, as text. The instance must not be used then.
    #[cfg(all(feature = "process", target_os = "linux"))]
    fn renew(&self, _instance: &mut Self::Instance) -> impl Future<Output = Result<(), String>> {
        std::future::ready(Ok(()))
    }

    /// Prepares a source as far as that is possible without an instance.
    ///
    /// # Errors
    ///
    /// The run's error, for a source that cannot be run. The instance then serves another run.
    fn prepare(&self, host: &dyn RunHost, source: &str) -> Result<Self::Prepared, Box<Unprepared>>;

    /// Called every 5 ms while there are runs.
    fn tick(&self) {}

    /// Called when surplus workers have ended. Releases memory that was kept for them.
    fn trim(&self) {}

    /// Called on a worker thread, inside its tokio runtime, that has dropped the instance of a run
    /// that used much memory. Releases what the engine's library keeps of that memory.
    fn release_kept_memory(&self) {}
}

/// A source that cannot be run.
pub(crate) struct Unprepared {
    pub(crate) error: ScriptError,
    /// The survey of the parts that could be read.
    pub(crate) survey: Survey,
}

impl From<ScriptError> for Box<Unprepared> {
    fn from(error: ScriptError) -> Self {
        Self::new(Unprepared { error, survey: Survey::default() })
    }
}

/// One use of an engine. It never leaves its thread.
pub(crate) trait Instance<E: Engine> {
    /// The handle that stops the instance's run.
    fn stop(&self) -> &Arc<Stop>;

    /// Sets the run's memory limit in bytes.
    fn set_memory_limit(&mut self, bytes: usize);

    /// Finds the calls that the source shows. Runs no part of it, and is fast for any source.
    ///
    /// # Errors
    ///
    /// The outcome of the run, if only this step finds out why the source cannot be run.
    fn survey(
        &mut self,
        host: &Arc<dyn RunHost>,
        source: &str,
        prepared: &mut E::Prepared,
    ) -> impl Future<Output = Result<Survey, Outcome>>;

    /// Runs a script until it finishes, or until soon after its run is cancelled.
    fn execute(
        &mut self,
        host: &Arc<dyn RunHost>,
        source: &str,
        prepared: E::Prepared,
    ) -> impl Future<Output = Outcome>;

    /// Compiles a script without running any of it. Returns `null`, or the error.
    fn check(
        &mut self,
        host: &Arc<dyn RunHost>,
        source: &str,
        prepared: E::Prepared,
    ) -> impl Future<Output = Outcome>;

    /// Bytes of memory that the run uses.
    fn memory_bytes(&self) -> usize;

    /// Fuel that the run has used, if it is counted.
    fn fuel_used(&self) -> Option<u64> {
        None
    }

    /// Idle trim: called once when no run has come for a while. Releases memory that can be
    /// restored later at some cost.
    fn trim(&mut self) {}
}
