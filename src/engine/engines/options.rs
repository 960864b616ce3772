//! The options of all engines.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[cfg(not(all(feature = "process", target_os = "linux")))]
pub(crate) use crate::engine::absent::WorkerProgram;
use crate::engine::backend::Backend;
use crate::engine::compile::{CodeForm, CompileProgress};
#[cfg(all(feature = "process", target_os = "linux"))]
pub(crate) use crate::engine::process::WorkerProgram;

/// Called when Python's machine code is not ready, on one of the executor's threads.
pub(crate) type CompileListener = Arc<dyn Fn(CompileProgress) + Send + Sync>;

/// Options of all engines.
#[derive(Clone)]
pub(crate) struct EngineOptions {
    /// Number of idle instances to keep ready for each language.
    pub(crate) warm: usize,
    /// How long an instance waits for a run before its idle trim.
    pub(crate) trim_after: Duration,
    /// Memory limit in bytes of runs that set none of their own.
    pub(crate) memory_bytes: usize,
    /// The form of Python's code for those runs.
    pub(crate) form: CodeForm,
    /// Cache directories for machine code, best first.
    pub(crate) caches: Vec<PathBuf>,
    /// Called when machine code is not ready.
    pub(crate) on_compile: Option<CompileListener>,
    /// The program of worker processes, if runs are executed in such.
    pub(crate) workers: Option<WorkerProgram>,
    /// The embedder's own, instead of all engines.
    pub(crate) backend: Option<Arc<dyn Backend>>,
}
