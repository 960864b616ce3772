//! What workers are processes of, and how many there are.

use std::path::PathBuf;

/// The program whose processes are workers, and how many runs each serves.
#[derive(Clone, Debug)]
pub(crate) struct WorkerProgram {
    /// The program, and its arguments.
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    /// Whether a worker whose sandbox is incomplete must not run scripts.
    pub(crate) requires_sandbox: bool,
    /// How many runs of a tenant a worker serves, at least one.
    pub(crate) runs: u32,
    /// Whether a process of it can be a fork server.
    pub(crate) forks: bool,
    /// Whether its processes stand for workers elsewhere, and send nothing before they have a run.
    /// They get `SIGTERM` before they are killed, so that they can tell the worker elsewhere.
    pub(crate) stands_in: bool,
    /// Whether the scripts are executed elsewhere. The exit status of its processes then says how
    /// the worker there was lost.
    pub(crate) is_elsewhere: bool,
}

/// How worker processes are made.
#[derive(Clone, Debug)]
pub(crate) struct WorkerOptions {
    pub(crate) program: WorkerProgram,
    /// How many workers are started ahead of time.
    pub(crate) spare: usize,
    pub(crate) is_python: bool,
    pub(crate) counts_fuel: bool,
    /// Memory limit in bytes of runs that set none of their own.
    pub(crate) memory_bytes: usize,
    /// Cache directories for machine code, best first.
    pub(crate) caches: Vec<PathBuf>,
}
