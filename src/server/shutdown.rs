//! Why a server ends, and how long each step of its shutdown may take.

use std::time::Duration;

/// How long the runs in flight may continue when the server ends because of hung workers.
pub(crate) const MAX_DRAIN: Duration = Duration::from_secs(10);

/// How long cancelled runs have to return their results. The executor needs half a second at most.
pub(crate) const MAX_CANCELLATION: Duration = Duration::from_millis(700);

/// How long writing the last answers may take.
pub(crate) const MAX_LAST_WRITE: Duration = Duration::from_millis(500);

/// Why [`Server::serve`](super::Server::serve) or [`Server::serve_http`](super::Server::serve_http)
/// ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShutdownReason {
    /// The client has closed its end or has stopped reading.
    ClientGone,
    /// Output to the client cannot be written for another reason than its absence: a full disk, for example.
    CannotWrite,
    /// The caller's token was cancelled.
    Stopped,
    /// Too many workers are hung: their scripts cannot be stopped. Only the end of the process frees them, so the
    /// process should exit with a failure, so that its client or supervisor restarts it.
    WorkersHung,
}
