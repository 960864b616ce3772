//! How a worker elsewhere was lost, as the process that stands for it tells the executor: by its exit status.

/// Why the run of a worker elsewhere cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LostWorker {
    /// The worker process there has ended, or was killed.
    Ended,
    /// Its machine does not answer.
    Silent,
    /// This side has lost its own connection.
    Unreachable,
}

impl LostWorker {
    const ALL: [Self; 3] = [Self::Ended, Self::Silent, Self::Unreachable];

    /// The exit status. Shells, Rust and the system use others.
    pub(crate) fn code(self) -> i32 {
        match self {
            Self::Ended => 81,
            Self::Silent => 82,
            Self::Unreachable => 83,
        }
    }

    pub(super) fn from_code(code: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|lost| lost.code() == code)
    }

    /// The rest of a sentence about the worker process.
    pub(super) fn sentence(self) -> &'static str {
        match self {
            Self::Ended => "has ended on its machine before the script: it has crashed, or was killed",
            Self::Silent => "is lost: its machine does not answer any more",
            Self::Unreachable => "is lost: the connection to its machine is broken",
        }
    }
}
