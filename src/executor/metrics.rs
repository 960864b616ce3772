//! The metrics of a run.

use std::time::Instant;

use crate::error::Error;
use crate::run::result::{ErrorCode, ExecuteResult};
use crate::run::script::Language;

/// Metrics of one run, recorded however it ends.
pub(super) struct CountedRun {
    language: Language,
    began: Instant,
    /// `None` if no run took place.
    outcome: Option<&'static str>,
}

impl CountedRun {
    pub(super) fn new(language: Language) -> Self {
        // A run whose future is dropped before its end counts as cancelled.
        Self { language, began: Instant::now(), outcome: Some(ErrorCode::Cancelled.as_str()) }
    }

    pub(super) fn settle(&mut self, result: &Result<ExecuteResult, Error>) {
        self.outcome = match result {
            Ok(result) => Some(result.error().map_or("ok", |error| error.code.as_str())),
            Err(Error::Closed) => Some(ErrorCode::Cancelled.as_str()),
            Err(Error::Start { .. } | Error::WorkerLost { .. }) => {
                Some(ErrorCode::EngineUnavailable.as_str())
            }
            Err(_) => None,
        };
    }
}

impl Drop for CountedRun {
    fn drop(&mut self) {
        let Some(outcome) = self.outcome else { return };
        let language = match self.language {
            Language::TypeScript => "typescript",
            Language::Python => "python",
        };
        metrics::counter!("cx_runs_total", "language" => language, "outcome" => outcome).increment(1);
        metrics::histogram!("cx_run_duration_seconds", "language" => language).record(self.began.elapsed());
    }
}
