//! Operations of a script on what is kept for its client between runs: the state, and the records of earlier runs.

use std::sync::Arc;

use crate::run::context::ExecutionContext;
use crate::run::errors::over;
use crate::run::state::StateAccess;
use crate::storage::state::StateCall;
use crate::text::visible_preview;
use crate::tools::{ToolError, ToolErrorCode};

/// Maximum characters of the id of a run in a message. Real ids are shorter.
const MAX_SHOWN_ID: usize = 40;

impl ExecutionContext {
    /// Performs an operation on the script's state and returns JSON text.
    ///
    /// It is not a tool call and does not count against [`Limits::tool_calls`](crate::Limits::tool_calls), but it
    /// needs one of the slots for calls in flight and waits for it together with other calls. Dropping the future
    /// stops the wait; an operation that has started is completed.
    pub(crate) async fn state(self: &Arc<Self>, call: StateCall) -> Result<String, ToolError> {
        let _held = self.hold_uncounted(call.bytes())?;
        let state = match &self.environment.state {
            StateAccess::Open(state) => state,
            StateAccess::None(problem) => return Err((*problem).into()),
        };
        let _slot = self.slots.acquire().await.map_err(|_closed| over())?;
        let answer = state.call(call, self.latest_deadline(), &self.environment.runtime).await?;
        self.check_result_bytes("the answer", answer.len())?;
        Ok(answer)
    }

    /// Returns the record of an earlier run of the same client as JSON text. Records of other
    /// clients are not found.
    pub(crate) async fn earlier_run(&self, id: &str) -> Result<String, ToolError> {
        let run = match self.environment.history.as_ref().zip(self.script.client.as_ref()) {
            Some((history, client)) => history.find(client, id).await.map_err(|error| {
                let problem = format!("the records that front ends share cannot be read: {error}");
                ToolError::new(ToolErrorCode::StateUnavailable, problem)
            })?,
            None => None,
        };
        let Some(run) = run else {
            let shown = visible_preview(id, MAX_SHOWN_ID);
            let problem = format!(
                "no run `{shown}` is kept: `runId` names one in the answer that left something out, until it is too \
                 old or newer ones need its place"
            );
            return Err(ToolError::new(ToolErrorCode::RunNotFound, problem));
        };
        let text = run.to_json_text();
        self.check_result_bytes("the run record", text.len()).map_err(|mut error| {
            error.message += "; its parts are the resources `output`, `value` and `calls` of the run";
            error
        })?;
        Ok(text)
    }
}
