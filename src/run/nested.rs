//! Stored scripts that a script calls: runs of their own, within the limits of the run that calls them.
//!
//! Such a run has a fresh instance of its engine, and its own ledger and clock. It shares its caller's rules, approver,
//! state, language models and permits for calls in flight, and has what is left of its caller's time. In a trace it is
//! a child of the call. Its calls also count at every caller above it. It ends at the latest with its caller.

mod unsaved;

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::Semaphore;

use crate::error::Error;
use crate::json::Json;
use crate::run::context::{ExecutionContext, Purpose};
use crate::run::errors::over;
use crate::run::limits::Limits;
use crate::run::result::{ErrorCode, ExecuteResult, Outcome, Output, ScriptError};
use crate::run::script::Script;
use crate::text::{MAX_SHOWN_NAME, preview, visible_preview};
use crate::tools::{ScriptCaller, StoredScript, ToolError, ToolErrorCode, TraceContext};

/// Maximum depth of stored scripts below a run: enough for scripts that are built of others, and a script that calls
/// itself ends soon.
pub(crate) const MAX_DEPTH: usize = 4;

/// Maximum number of stored scripts that run at once at each depth below one run. Others wait. Each has a thread and an
/// instance of its engine.
const MAX_AT_ONCE: usize = 8;

/// Maximum characters of the message of a stored script's error.
const MAX_MESSAGE: usize = 4_000;

/// Starts a run, or a check, for the context that calls it, and returns its result.
pub(crate) type NestedRunner = Arc<
    dyn Fn(Script, Purpose, Arc<ExecutionContext>) -> BoxFuture<'static, Result<ExecuteResult, Error>>
        + Send
        + Sync,
>;

/// Bounds how many stored scripts of one run run at once. Each depth has its own permits, so that a script never waits
/// for permits of scripts that wait for it.
pub(super) struct NestedSlots([Semaphore; MAX_DEPTH]);

impl Default for NestedSlots {
    fn default() -> Self {
        Self(std::array::from_fn(|_depth| Semaphore::new(MAX_AT_ONCE)))
    }
}

impl ExecutionContext {
    /// This run as the caller of stored scripts, by a call with this trace context.
    pub(super) fn as_caller(self: &Arc<Self>, trace: Option<&TraceContext>) -> ScriptCaller {
        let (context, trace) = (Arc::clone(self), trace.cloned());
        ScriptCaller {
            language: self.script.language,
            run: Arc::new(move |stored| Arc::clone(&context).run_stored(stored, trace.clone()).boxed()),
        }
    }

    /// Counts a call at all callers above this run. It is in flight in this run only.
    ///
    /// # Errors
    ///
    /// As the caller's own call.
    pub(super) fn count_at_callers(&self) -> Result<(), ToolError> {
        let mut next = self.environment.caller.as_deref();
        while let Some(caller) = next {
            let mut ledger = caller.ledger.lock();
            if ledger.is_over() {
                return Err(over());
            }
            ledger.count_call(&caller.limits())?;
            drop(ledger);
            next = caller.environment.caller.as_deref();
        }
        Ok(())
    }

    async fn run_stored(
        self: Arc<Self>,
        stored: StoredScript,
        trace: Option<TraceContext>,
    ) -> Result<Json, ToolError> {
        let name = visible_preview(&stored.name, MAX_SHOWN_NAME);
        match self.perform_stored(&name, stored, Purpose::Run, trace).await? {
            Outcome::Returned(value) => Ok(value),
            Outcome::Failed(error) => Err(failure(&name, &error)),
        }
    }

    /// Runs or checks a stored script within what is left of this run's limits.
    async fn perform_stored(
        self: &Arc<Self>,
        name: &str,
        stored: StoredScript,
        purpose: Purpose,
        trace: Option<TraceContext>,
    ) -> Result<Outcome, ToolError> {
        let Some(runner) = self.environment.nested.clone() else {
            let message = format!("`{name}` cannot be run here: this call has no engine");
            return Err(ToolError::new(ToolErrorCode::ToolDenied, message));
        };
        let Some(slots) = self.nested_slots.0.get(self.depth) else {
            let message = format!(
                "`{name}` was not run: scripts may call one another {MAX_DEPTH} levels deep, and this is one more; \
                 does a script call itself?"
            );
            return Err(ToolError::new(ToolErrorCode::ToolDenied, message));
        };
        // The semaphore is never closed; an error would only mean that the run is over.
        let _slot = slots.acquire().await.map_err(|_closed| over())?;
        let limits = self.limits_left(name)?;
        let mut script = self.nested_script(name, stored, limits);
        // Without spans there is only the client's trace context.
        script.trace = trace.or_else(|| self.script.trace.clone());
        let result = runner(script, purpose, Arc::clone(self)).await.map_err(|error| match error {
            Error::Closed => over(),
            // What a panic says is for the log: scripts are not trusted.
            Error::WorkerLost { message } => {
                tracing::error!(panic = message, "a stored script was lost");
                ToolError::new(ToolErrorCode::ToolError, format!("`{name}` was lost; the log has the reason"))
            }
            other => {
                ToolError::new(ToolErrorCode::UpstreamUnavailable, format!("`{name}` was not run: {other}"))
            }
        })?;
        Ok(self.ledger.lock().absorb(result))
    }

    /// The rest of this run's limits.
    fn limits_left(&self, name: &str) -> Result<Limits, ToolError> {
        let spent = |what: &str| {
            ToolError::new(ToolErrorCode::ToolTimeout, format!("`{name}` was not run: the {what} is used up"))
        };
        let (wall_time, limits) = (self.clock.left(), self.limits());
        let cpu_time = limits.cpu_time.saturating_sub(self.ledger.lock().nested_cpu_time());
        let least = Duration::from_millis(1);
        if wall_time < least {
            return Err(spent("time of the run that calls it"));
        }
        if cpu_time < least {
            return Err(spent("CPU time of the run that calls it"));
        }
        Ok(Limits { wall_time, cpu_time, paused_time: self.clock.pause_left(), ..limits })
    }

    fn nested_script(self: &Arc<Self>, name: &str, stored: StoredScript, limits: Limits) -> Script {
        let file_name = format!("scripts/{name}.{}", stored.language.extension());
        let script = Script::new(stored.language, stored.source);
        let mut script = script.named(file_name).input(stored.input).limits(limits);
        let own = &self.script;
        script.is_dry_run = own.is_dry_run;
        script.client.clone_from(&own.client);
        script.client_name.clone_from(&own.client_name);
        script.client_is_many = own.client_is_many;
        script.tenant.clone_from(&own.tenant);
        script.on_progress.clone_from(&own.on_progress);
        script.on_call.clone_from(&own.on_call);
        // What it prints is its caller's output, and counts there.
        let caller = Arc::downgrade(self);
        script.on_output_with(move |entry, _cancel| {
            let Some(caller) = caller.upgrade() else { return };
            match entry {
                Output::Log { level, text } => caller.log(*level, text.clone()),
                // Blocks beyond the caller's bound are discarded.
                Output::Emit(block) => drop(caller.emit(block.clone())),
            }
        })
    }
}

/// The error of a call of a stored script that has failed.
fn failure(name: &str, error: &ScriptError) -> ToolError {
    let at = error.line.map(|line| format!(" (line {line})")).unwrap_or_default();
    let message = format!(
        "the script `{name}` failed with {}{at}: {}",
        error.code,
        preview(&error.message, MAX_MESSAGE)
    );
    let mut failed = ToolError::new(code_of_call(error.code), message);
    failed.retry_after = error.retry_after;
    failed
}

/// The code of a call whose stored script ended with `code`.
const fn code_of_call(code: ErrorCode) -> ToolErrorCode {
    match code {
        ErrorCode::Timeout | ErrorCode::CpuLimit => ToolErrorCode::ToolTimeout,
        ErrorCode::Cancelled => ToolErrorCode::Cancelled,
        ErrorCode::QueueFull => ToolErrorCode::QueueFull,
        ErrorCode::MaxToolCallsExceeded => ToolErrorCode::MaxToolCallsExceeded,
        ErrorCode::ResultTooLarge => ToolErrorCode::ResultTooLarge,
        _ => ToolErrorCode::ToolError,
    }
}

#[cfg(test)]
mod tests;
