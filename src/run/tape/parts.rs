//! Shared parts of recording and playing back.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::run::limits::Limits;
use crate::tools::ToolError;

/// Maximum number of steps of both clocks in a recording. Beyond it, each further eighth of this number doubles the
/// resolution that the script sees.
pub(super) const MAX_CLOCK_STEPS: usize = 100_000;

/// What a host call returns to a script.
pub(crate) type Answer = Result<String, ToolError>;

/// The facts of a run that its tape needs.
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
    /// It lasts until an answer is delivered, which is soon.
    Delivers,
}
