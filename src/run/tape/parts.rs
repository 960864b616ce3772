//! Shared parts of recording and playing back.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::run::limits::Limits;
use crate::tools::ToolError;

/// Maximum number of steps of both clocks in a recording. Beyond it, each eighth of that doubles the
/// resolution that the script sees.
pub(super) const MAX_CLOCK_STEPS: usize = 100_000;

/// What a host call returns to a script.
pub(crate) type Answer = Result<String, ToolError>;

/// What a tape needs to know of its run.
pub(crate) struct Facts {
    pub(crate) limits: Limits,
    pub(crate) time_zone: &'static str,
    pub(crate) clock_resolution: Duration,
    pub(crate) servers: Vec<Arc<str>>,
    /// Whether the script has `fetch`.
    pub(crate) has_network: bool,
    pub(crate) cancel: CancellationToken,
}

/// How a wait of Python continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// As it would without a tape.
    Real,
    /// It ends at once, without an answer.
    Empty,
    /// Until an answer is delivered, which is soon.
    Delivers,
}
