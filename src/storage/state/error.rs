//! Why a call on the state fails.

use std::io;

use rusqlite::ErrorCode;

/// Why a call on the state fails.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateError {
    /// The script asks for what cannot be.
    #[error("{0}")]
    Invalid(String),
    /// There is no room.
    #[error("{0}")]
    Full(String),
    /// Another process holds the file.
    #[error("another process holds the state file for too long; try again")]
    Busy,
    /// The file has a format of later.
    #[error("the state file was written by a newer version of cx; update cx, or move the file away")]
    Newer,
    /// The file is somebody else's database.
    #[error("the state file is a database of another program; move it away")]
    Foreign,
    /// The file is no database, or a broken one.
    #[error("the state file is damaged: {0}")]
    Damaged(rusqlite::Error),
    /// The executor has ended.
    #[error("the run is over")]
    Ended,
    /// What the system says.
    #[error("{0}")]
    Files(#[from] io::Error),
    /// What SQLite says of everything else.
    #[error("the state file cannot be used: {0}")]
    Database(rusqlite::Error),
}

impl From<rusqlite::Error> for StateError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::DiskFull) => Self::Full(
                "all state together has reached its 256 MB, or the disk is full; a person makes room with \
                 `cx state clear`"
                    .to_owned(),
            ),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(error),
            _ => Self::Database(error),
        }
    }
}
