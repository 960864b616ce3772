//! The start of a run: its engine, and the result of a run that was never started.

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::engine::compile::CodeForm;
use crate::engine::engines::Engines;
use crate::error::Error;
use crate::run::limits::Limits;
use crate::run::result::{ErrorCode, ExecuteResult, Outcome, ScriptError, Usage};
use crate::run::script::Language;
use crate::tools::ToolError;

/// Starts the engine of a language, for at most the run's wall-clock limit. Returns the run's error if
/// that was too short, or the run was cancelled.
pub(super) async fn start_engine(
    engines: &Engines,
    runtime: &Handle,
    language: Language,
    limits: &Limits,
    cancel: &CancellationToken,
) -> Result<Option<ScriptError>, Error> {
    let too_late = {
        let _entered = runtime.enter();
        tokio::time::sleep(limits.wall_time)
    };
    tokio::select! {
        biased;
        started = engines.start(language, CodeForm::from(limits), runtime) => started.map(|()| None),
        // Only Python in this process is waited for. The other engines start at once.
        () = too_late => {
            let message = format!("Python was not ready within {:?}", limits.wall_time);
            let error = ScriptError::new(ErrorCode::Timeout, message).with_hint(
                "the first run of Python on a machine makes its machine code ready, which is kept: run it again, \
                 or with a longer timeout",
            );
            Ok(Some(error))
        }
        () = cancel.cancelled() => {
            let message = "the run was cancelled while its engine was being made ready";
            Ok(Some(ScriptError::new(ErrorCode::Cancelled, message)))
        }
    }
}

/// The result of a run that an observer has refused.
pub(super) fn refused(refusal: &ToolError) -> ExecuteResult {
    not_run(ScriptError::new(ErrorCode::EngineUnavailable, refusal.message.clone()), Usage::default())
}

/// The code under which observers see a run that has no result, because of the executor.
pub(super) fn code_without_result(error: &Error) -> ErrorCode {
    match error {
        Error::Closed => ErrorCode::Cancelled,
        _ => ErrorCode::EngineUnavailable,
    }
}

/// The result of a run that was never started.
pub(super) fn not_run(error: ScriptError, usage: Usage) -> ExecuteResult {
    ExecuteResult {
        outcome: Outcome::Failed(error),
        logs: Vec::new(),
        tool_calls: Vec::new(),
        returned: Vec::new(),
        planned_calls: None,
        sampling: None,
        usage,
    }
}
