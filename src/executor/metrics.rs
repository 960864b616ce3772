//! The metrics of a run.

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::run::result::{ErrorCode, ExecuteResult};
use crate::run::script::Language;

/// Metrics of one run, recorded however it ends.
pub(super) struct CountedRun {
    /// The label of its language.
    language: &'static str,
    began: Instant,
    /// `None` if no run took place.
    outcome: Option<&'static str>,
    /// How long it waited for admission and for a worker.
    queue_time: Option<Duration>,
}

impl CountedRun {
    pub(super) fn new(language: Language) -> Self {
        Self::labelled(language.as_str())
    }

    /// A call of a tool without a script.
    pub(super) fn without_script() -> Self {
        Self::labelled("none")
    }

    fn labelled(language: &'static str) -> Self {
        // A run whose future is dropped before its end counts as cancelled.
        let outcome = Some(ErrorCode::Cancelled.as_str());
        Self { language, began: Instant::now(), outcome, queue_time: None }
    }

    pub(super) fn record(&mut self, result: Result<&ExecuteResult, &Error>) {
        if let Ok(result) = result {
            self.queue_time = Some(result.usage.queue_time);
        }
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
        let language = self.language;
        metrics::counter!("cx_runs_total", "language" => language, "outcome" => outcome).increment(1);
        if let Some(time) = self.queue_time {
            metrics::histogram!("cx_run_queue_wait_seconds", "language" => language).record(time);
        }
        metrics::histogram!("cx_run_duration_seconds", "language" => language).record(self.began.elapsed());
    }
}
