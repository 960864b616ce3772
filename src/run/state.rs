//! Errors of the state that scripts keep between runs, as scripts see them.

use std::sync::Arc;
use std::time::Duration;

use crate::storage::state::{RunState, StateError};
use crate::tools::{ToolError, ToolErrorCode};

/// Suggested delay before a retry when another process holds the file's lock, or a server does not answer.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A run's access to the state of its client.
#[derive(Clone)]
pub(crate) enum StateAccess {
    /// Shared with the scripts that the run calls.
    Open(Arc<RunState>),
    None(NoState),
}

/// Why a run has no state.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(crate) enum NoState {
    /// The executor has no store.
    #[error(
        "nothing is kept between runs here: the program that runs scripts has to say where, with `ExecutorBuilder::state`"
    )]
    NotConfigured,
    /// The run belongs to a client of a server whose clients do not share state, and names no session.
    #[error(
        "clients of this server that have no session of the protocol share no state: name a session of your own with \
         the parameter `session`, and the same one each time"
    )]
    NoSession,
}

impl From<NoState> for ToolError {
    fn from(problem: NoState) -> Self {
        Self::new(ToolErrorCode::StateUnavailable, problem.to_string())
    }
}

impl From<StateError> for ToolError {
    /// Does not include the operating system's messages about the user's files.
    fn from(error: StateError) -> Self {
        let unavailable = |message: String| Self::new(ToolErrorCode::StateUnavailable, message);
        match error {
            StateError::Invalid(message) => Self::new(ToolErrorCode::InvalidArguments, message),
            StateError::Full(message) => Self::new(ToolErrorCode::StateFull, message),
            StateError::Ended => Self::new(ToolErrorCode::Cancelled, error.to_string()),
            StateError::Busy | StateError::Contended | StateError::Away(_) => {
                let mut busy = unavailable(error.to_string());
                busy.retry_after = Some(RETRY_AFTER);
                busy
            }
            StateError::Newer
            | StateError::NewerShared
            | StateError::Foreign
            | StateError::DamagedValue(_) => unavailable(error.to_string()),
            StateError::Damaged(_)
            | StateError::NoSharedMemory(_)
            | StateError::Files(_)
            | StateError::Database(_) => {
                tracing::warn!(%error, "the state of scripts cannot be used");
                unavailable("the state file cannot be used; `cx state list` says why".to_owned())
            }
        }
    }
}
