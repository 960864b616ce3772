//! Worker processes that an executor lends to those of other machines.

use crate::engine::process::lent::LentWorkers;
use crate::error::Error;
use crate::machine::SandboxFeatures;
use crate::run::isolation::WorkerProcesses;

use super::core::Executor;
use super::isolation::worker_program;

impl Executor {
    /// Makes worker processes to lend, and starts `ahead` of each language ahead of time. Their runs may use at most
    /// what clients of this executor may ask for.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOptions`] if this program cannot be started as a worker; [`Error::Start`] if the system
    /// refuses a thread.
    pub(crate) fn lend_workers(&self, ahead: usize) -> Result<LentWorkers, Error> {
        // Scripts of other machines run here, so the sandbox has to be complete.
        let required = WorkerProcesses { require: true, ..WorkerProcesses::default() };
        let program = worker_program(&required, &SandboxFeatures::of_kernel())?;
        let workers = LentWorkers::new(&program, self.cache_directories(), self.max_limits(), ahead);
        workers.map_err(|source| Error::Start { what: "the workers to lend", source })
    }
}
