//! Errors of calls on the state.

use std::error::Error;
use std::io;

use crate::storage::shared::SharedError;

/// Why a call on the state fails.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateError {
    /// The script's request is invalid.
    #[error("{0}")]
    Invalid(String),
    /// A bound on size would be exceeded.
    #[error("{0}")]
    Full(String),
    /// Another process holds the file's lock.
    #[error("another process holds the state file for too long; try again")]
    Busy,
    /// The file has a newer format.
    #[error("the state file was written by a newer version of cx; update cx, or move the file away")]
    Newer,
    /// The file is another program's database.
    #[error("the state file is a database of another program; move it away")]
    Foreign,
    /// The file is not a database, or is damaged.
    #[error("the state file is damaged: {0}")]
    Damaged(Box<dyn Error + Send + Sync>),
    /// One value is damaged; the rest of the file is intact.
    #[error(
        "the value of `{0}` is damaged; `state.set` replaces it, `state.delete` removes it, and \
         `cx state list` names every damaged one"
    )]
    DamagedValue(String),
    /// There is no space for the shared memory of the processes. Reading without other processes is possible.
    #[error("the state file cannot be used, because the disk is full: {0}")]
    NoSharedMemory(Box<dyn Error + Send + Sync>),
    /// The server that stores shared state cannot be used.
    #[error("the state that is shared over a NATS server cannot be used: {0}")]
    Away(String),
    /// Other processes write to the same scope continuously.
    #[error("the state that is shared over a NATS server takes too long, or others write to it all the time")]
    Contended,
    /// Another front end has a newer version.
    #[error("the shared state was written by a newer version of cx; update cx")]
    NewerShared,
    /// The executor has ended.
    #[error("the run is over")]
    Ended,
    /// An error of the operating system.
    #[error("{0}")]
    Files(#[from] io::Error),
    /// Any other error of SQLite.
    #[error("the state file cannot be used: {0}")]
    Database(Box<dyn Error + Send + Sync>),
}

impl From<StateError> for io::Error {
    /// The conversion for an embedder, to whom the state is a file.
    fn from(error: StateError) -> Self {
        let kind = match error {
            StateError::Files(error) => return error,
            StateError::Invalid(_) => io::ErrorKind::InvalidInput,
            StateError::Full(_) | StateError::NoSharedMemory(_) => io::ErrorKind::StorageFull,
            StateError::Busy | StateError::Contended => io::ErrorKind::ResourceBusy,
            StateError::Newer | StateError::NewerShared => io::ErrorKind::Unsupported,
            StateError::Foreign | StateError::Damaged(_) | StateError::DamagedValue(_) => {
                io::ErrorKind::InvalidData
            }
            StateError::Away(_) => io::ErrorKind::NotConnected,
            StateError::Ended => io::ErrorKind::Interrupted,
            StateError::Database(_) => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

impl From<SharedError> for StateError {
    fn from(error: SharedError) -> Self {
        match error {
            SharedError::Away(problem) => Self::Away(format!(
                "{problem}; what was to be written may be there nevertheless, or come later"
            )),
            SharedError::Full => Self::Full(
                "all state of this tenant together has reached its 256 MB; delete what is not needed"
                    .to_owned(),
            ),
            SharedError::Refused(_) | SharedError::Damaged => Self::Away(error.to_string()),
        }
    }
}
