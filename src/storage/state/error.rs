//! Why a call on the state fails.

use std::io;
use std::time::Duration;

use rusqlite::ErrorCode;

use crate::tools::{ToolError, ToolErrorCode};

/// When a file that another process holds is worth another try.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Why a call on the state fails.
#[derive(Debug, thiserror::Error)]
pub(super) enum StateError {
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

impl From<StateError> for ToolError {
    /// As scripts see it: without what the system says of the person's files.
    fn from(error: StateError) -> Self {
        let unavailable = |message: String| Self::new(ToolErrorCode::StateUnavailable, message);
        match error {
            StateError::Invalid(message) => Self::new(ToolErrorCode::InvalidArguments, message),
            StateError::Full(message) => Self::new(ToolErrorCode::StateFull, message),
            StateError::Ended => Self::new(ToolErrorCode::Cancelled, error.to_string()),
            StateError::Busy => {
                let mut busy = unavailable(error.to_string());
                busy.retry_after = Some(RETRY_AFTER);
                busy
            }
            StateError::Newer | StateError::Foreign => unavailable(error.to_string()),
            StateError::Damaged(_) | StateError::Files(_) | StateError::Database(_) => {
                tracing::warn!(%error, "the state of scripts cannot be used");
                unavailable("the state file cannot be used; `cx state list` says why".to_owned())
            }
        }
    }
}
