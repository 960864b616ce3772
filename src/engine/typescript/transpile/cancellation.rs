//! The check between passes whether the run has been stopped.

use super::error::{TranspileError, TranspileErrorKind};

/// Checked between passes: whether the run has been stopped. A pass itself cannot be interrupted.
#[derive(Clone, Copy)]
pub(super) struct Cancellation<'a>(&'a dyn Fn() -> bool);

impl<'a> Cancellation<'a> {
    /// `stopped` returns true once the run has been stopped.
    pub(super) fn new(stopped: &'a dyn Fn() -> bool) -> Self {
        Self(stopped)
    }

    /// Returns an error of the kind [`Stopped`](TranspileErrorKind::Stopped) if the run has been
    /// stopped.
    pub(super) fn check(self) -> Result<(), TranspileError> {
        if !(self.0)() {
            return Ok(());
        }
        Err(TranspileError {
            kind: TranspileErrorKind::Stopped,
            message: "the run was stopped".to_owned(),
            location: None,
            hint: None,
        })
    }
}
