//! Replaces the lending of worker processes in a build without the feature `process`.

use axum::http::StatusCode;
use axum::response::Response;

use super::responses::plain;
use crate::error::{Error, OptionName};
use crate::executor::Executor;

/// Never constructed: it has no value.
pub(crate) enum Lending {}

impl Lending {
    /// Returns `None`, because this build has no workers to lend.
    ///
    /// # Errors
    ///
    /// If `max` is not 0.
    pub(super) fn new(_executor: &Executor, max: usize) -> Result<Option<Self>, Error> {
        if max == 0 {
            return Ok(None);
        }
        let problem = "worker processes are for Linux, in builds with the feature `process`";
        Err(Error::InvalidOptions { option: OptionName::LentWorkers, problem: problem.to_owned() })
    }
}

/// Answers a request for a worker.
pub(super) async fn lend() -> Response {
    plain(StatusCode::NOT_FOUND, "this server lends no workers: its build has none")
}
