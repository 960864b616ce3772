//! Errors of calls on the state.

use std::io;

use rusqlite::ErrorCode;

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
    Damaged(rusqlite::Error),
    /// The executor has ended.
    #[error("the run is over")]
    Ended,
    /// An error of the operating system.
    #[error("{0}")]
    Files(#[from] io::Error),
    /// Any other error of SQLite.
    #[error("the state file cannot be used: {0}")]
    Database(rusqlite::Error),
}

impl From<rusqlite::Error> for StateError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::DiskFull) => Self::Full(
                "all state together has reached its 256 MB, or the disk is full; a user frees space with \
                 `cx state clear`"
                    .to_owned(),
            ),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(error),
            _ => Self::Database(error),
        }
    }
}
