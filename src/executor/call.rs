//! Calls of tools without a script: runs of one call that need no engine.

use std::sync::Arc;
use std::time::Instant;

use super::core::Executor;
use super::metrics::CountedRun;
use crate::error::Error;
use crate::json::Json;
use crate::run::calls::resolve::ToolName;
use crate::run::context::{ExecutionContext, Measured};
use crate::run::grants::RunGrants;
use crate::run::limits::in_force::RunLimits;
use crate::run::result::{ErrorCode, ExecuteResult, Outcome, ScriptError};
use crate::run::script::Script;
use crate::run::tool_call::{self, CallResult, ToolCall};
use crate::tools::in_force::RunTools;
use crate::tools::{ServerRequest, ToolError, ToolErrorCode};

/// A run without a script that has ended.
struct FinishedRequest<T> {
    /// What was asked for, or why there is none.
    result: Result<T, ToolError>,
    /// The record of the run.
    run: ExecuteResult,
}

impl Executor {
    /// Calls one tool as a script would, without starting an engine: the same rules, approvals, hooks,
    /// limits, checks of arguments, rate limits, dry runs and listeners apply, and it counts among the
    /// runs. Unlike a script it gets the tool's own result, with all content blocks.
    ///
    /// Dropping the future cancels the call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), cx::Error> {
    /// use cx::{Executor, ToolCall};
    /// use serde_json::{Value, json};
    ///
    /// let double = |input: Value| async move {
    ///     Ok::<_, String>(json!({ "doubled": input["n"].as_i64().unwrap_or(0) * 2 }))
    /// };
    /// let executor = Executor::builder().tool("math.double", json!({ "type": "object" }), double).build()?;
    /// let call = ToolCall::new("math", "double").arguments(json!({ "n": 21 }));
    /// let result = executor.call(call).await?.result.expect("the tool exists");
    /// assert_eq!(result.structured.expect("it is an object").text(), r#"{"doubled":42}"#);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run). What goes wrong with the call itself is in [`CallResult::result`].
    pub async fn call(&self, call: ToolCall) -> Result<CallResult, Error> {
        let mut counted = CountedRun::without_script();
        let ToolCall { server, tool, arguments, options } = call;
        let arguments = arguments.map_or_else(String::new, Json::into_text);
        let result = self
            .without_script(options, tool_call::to_json, async |context| {
                context.call_alone(ToolName::Pair { server, tool }, arguments).await
            })
            .await
            .map(|FinishedRequest { result, run }| CallResult { result, run });
        counted.record(result.as_ref().map(|result| &result.run));
        result
    }

    /// Sends a request about resources to a server, as [`call`](Self::call) calls a tool. Rules
    /// deny it only by naming the method. If the executor accepts no runs, the error is
    /// `CANCELLED`.
    pub(crate) async fn request_resource(
        &self,
        options: Script,
        server: &str,
        request: ServerRequest,
    ) -> Result<Json, ToolError> {
        let finished = self
            .without_script(options, Json::clone, async |context| context.read_alone(server, request).await)
            .await;
        match finished {
            Ok(finished) => finished.result,
            Err(error) => Err(ToolError::new(ToolErrorCode::Cancelled, error.to_string())),
        }
    }

    /// Makes a run whose script is `work`. `value` converts its result to the value of the run.
    async fn without_script<T>(
        &self,
        mut script: Script,
        value: fn(&T) -> Json,
        work: impl AsyncFnOnce(Arc<ExecutionContext>) -> Result<T, ToolError>,
    ) -> Result<FinishedRequest<T>, Error> {
        let queued = Instant::now();
        let inner = &self.inner;
        let cancel = inner.closed.child_token();
        let lowered = inner.max_limits.subscribe();
        let settings = inner.settings.read().clone();
        let limits = script.limits.unwrap_or(settings.limits);
        limits.validate()?;
        let policy = script.policy()?;
        // Kept until the call has ended: servers that nothing else uses any more end then.
        let servers = self.servers_of(&mut script)?;
        if inner.closed.is_cancelled() {
            return Err(Error::Closed);
        }
        // The arguments, the result, and a copy of each on its way.
        let memory_bytes = 2 * (limits.argument_bytes + limits.result_bytes);
        let memory_bytes = memory_bytes.min(limits.memory_bytes);
        inner.admission.check(memory_bytes)?;
        let grants = RunGrants::default();
        let observed = inner.observers.start(&script, None, &limits, &grants, &inner.runtime).await;
        let _stop_on_drop = cancel.clone().drop_guard();
        let _forward = script.cancel.as_ref().map(|token| self.forward(token, &cancel));
        let admitted = inner.admission.enter(&inner.runtime, memory_bytes, &cancel).await;
        drop(script.while_queued.take());
        let limits = RunLimits::new(limits, settings.max_limits, lowered);
        let tools = RunTools::new(servers.tools.clone(), policy, inner.current.subscribe());
        let observation = observed.observation().clone();
        let environment = inner.environment(settings, limits, tools, observation, cancel, queued);
        let context = Arc::new(ExecutionContext::new(script, environment));
        let (result, outcome) = match admitted {
            Ok(_permit) if let Some(refusal) = observed.refusal() => {
                (Err(refusal.clone()), Outcome::Failed(failed(refusal)))
            }
            Ok(_permit) => {
                let result = work(Arc::clone(&context)).await;
                let outcome = match &result {
                    Ok(answer) => Outcome::Returned(value(answer)),
                    Err(error) => Outcome::Failed(failed(error)),
                };
                (result, outcome)
            }
            Err(refused) => (Err(not_admitted(&refused)), Outcome::Failed(*refused)),
        };
        let run = context.finish(outcome, Measured::default());
        // As a run with a script: what its caller does not get is no success for others either.
        let lost = context.listening().panic();
        observed.finish(lost.map_or(Ok(&run), |_message| Err(ErrorCode::EngineUnavailable)));
        if let Some(message) = lost {
            return Err(Error::WorkerLost { message: message.to_owned() });
        }
        Ok(FinishedRequest { result, run })
    }
}

/// The error of a call whose run was not admitted.
fn not_admitted(refused: &ScriptError) -> ToolError {
    let code = match refused.code {
        ErrorCode::QueueFull => ToolErrorCode::QueueFull,
        _ => ToolErrorCode::Cancelled,
    };
    let mut error = ToolError::new(code, refused.message.clone());
    error.retry_after = refused.retry_after;
    error
}

/// The error of a run whose call has failed.
fn failed(error: &ToolError) -> ScriptError {
    let code = match error.code {
        ToolErrorCode::Cancelled => ErrorCode::Cancelled,
        ToolErrorCode::ResultTooLarge => ErrorCode::ResultTooLarge,
        ToolErrorCode::MaxToolCallsExceeded => ErrorCode::MaxToolCallsExceeded,
        _ => ErrorCode::RuntimeError,
    };
    let mut failed = ScriptError::new(code, error.message.clone());
    failed.tool_code = Some(error.code);
    failed.retry_after = error.retry_after;
    failed
}

#[cfg(test)]
mod tests;
