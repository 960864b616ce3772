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
    /// What its processes are.
    pub(crate) role: WorkerRole,
}

/// What the processes of a program do. Those that stand for a worker elsewhere say by their exit status how that was
/// lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkerRole {
    /// Each executes scripts, or forks others that do, if they can.
    Worker { forks: bool },
    /// Each stands for a worker of a server on another machine, which it asks for one at once.
    Remote,
    /// Each stands for a worker that has joined a queue, and sends nothing before it has a run. It gets `SIGTERM`
    /// before it is killed, so that it can tell the worker.
    Queued,
}

impl WorkerRole {
    /// Whether the scripts are executed elsewhere.
    pub(super) fn is_elsewhere(self) -> bool {
        match self {
            Self::Worker { .. } => false,
            Self::Remote | Self::Queued => true,
        }
    }
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
