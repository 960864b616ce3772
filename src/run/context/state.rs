//! Converts errors of the state storage into errors for scripts.

use std::time::Duration;

use crate::storage::state::StateError;
use crate::tools::{ToolError, ToolErrorCode};

/// Suggested delay before a retry when another process holds the file's lock.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl From<StateError> for ToolError {
    /// Leaves out the system's messages about the user's files.
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
