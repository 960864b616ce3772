//! A tool call at the tool's dispatcher, and the value that a script may receive of the answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::answer::ToolAnswer;
use super::arguments::ExactArguments;
use super::held::HeldCall;
use crate::json::Json;
use crate::run::context::ExecutionContext;
use crate::run::ledger::Call;
use crate::run::observer::sent::SentSlot;
use crate::run::script::CallProgress;
use crate::text::preview_bytes;
use crate::tools::catalog::ResolvedTool;
use crate::tools::caught::caught;
use crate::tools::{ProgressListener, ToolError, ToolKind, ToolRequest, TraceContext};

/// Maximum bytes of a tool's error message that are kept if it is larger than a script may receive.
/// Enough to read.
const MAX_CUT_MESSAGE_BYTES: usize = 16 << 10;

/// How long after the run's end a call in flight ends by itself.
const AFTER_THE_RUN: Duration = Duration::from_millis(500);

impl ExecutionContext {
    /// Calls the tool. Stores the tool's own result in `held` if that keeps it.
    pub(super) async fn dispatch(
        &self,
        held: &HeldCall,
        call: Call<'_>,
        resolved: &ResolvedTool,
        arguments: ExactArguments,
        trace: Option<TraceContext>,
        sent: Option<SentSlot>,
    ) -> Result<Json, ToolError> {
        let in_force = self.in_force();
        let caller =
            (resolved.kind() != ToolKind::Ordinary).then(|| held.context().as_caller(trace.as_ref()));
        let request = ToolRequest {
            server: Arc::clone(&resolved.server),
            tool: Arc::clone(&resolved.tool),
            arguments: arguments.tree,
            exact_numbers: arguments.numbers,
            deadline: self.call_deadline(),
            cancel: self.cancel.clone(),
            on_progress: self.progress_listener(resolved),
            on_elicitation: self.on_elicitation.clone(),
            trace,
            sent,
            caller,
        };
        let result = caught("the tool", async { resolved.dispatcher().call(request).await }).await?;
        // A stored list may be older than the server's output schema, and the value must not depend
        // on its age. An error leaves the list that is there.
        let again = if result.may_be_wrapped() {
            let again = in_force.catalog.resolve_again(resolved, self.latest_deadline(), &self.suggestions);
            again.await.ok().flatten()
        } else {
            None
        };
        let resolved = again.as_ref().unwrap_or(resolved);
        let output_schema = resolved.definition().output_schema.as_ref();
        if held.keeps_answer() {
            self.check_result_bytes("the result", result.bytes())?;
        }
        let kept = held.keeps_answer().then(|| result.clone());
        let value = result.into_value(output_schema).map_err(|error| self.bounded(error));
        if let Some(result) = kept {
            // The observers get the error in the form that the script receives.
            let value = value.clone().map_err(|error| error.for_tool(call.server, call.tool));
            let output_schema = output_schema.cloned();
            held.put_answer(ToolAnswer { result, value, output_schema });
        }
        let value = value?;
        self.check_result_bytes("the result", value.text().len())?;
        self.note_result(call, &value, resolved.observe(&value));
        Ok(value)
    }

    /// The time at which a call ends by itself, even if nothing cancels it. It is a little after the run's end, which
    /// cancels the run's calls: so a run that exceeds its time fails with its own timeout and not with that of its last
    /// call.
    pub(super) fn call_deadline(&self) -> Instant {
        self.latest_deadline() + AFTER_THE_RUN
    }

    /// Truncates an error message of a tool that is larger than a script may receive.
    fn bounded(&self, mut error: ToolError) -> ToolError {
        let max = self.limits().result_bytes;
        if error.message.len() > max {
            error.message = preview_bytes(&error.message, max.min(MAX_CUT_MESSAGE_BYTES)).into_owned();
        }
        if error.content.as_ref().is_some_and(|content| content.text().len() > max) {
            error.content = None;
        }
        error
    }

    /// Returns a listener that forwards the tool's progress reports, if the run has a progress
    /// listener.
    fn progress_listener(&self, resolved: &ResolvedTool) -> Option<ProgressListener> {
        let listener = Arc::clone(self.script.on_progress.as_ref()?);
        let (server, tool) = (Arc::clone(&resolved.server), Arc::clone(&resolved.tool));
        let listening = Arc::clone(&self.listening);
        Some(Arc::new(move |progress| {
            let report = CallProgress { server: server.to_string(), tool: tool.to_string(), progress };
            listening.call(|| listener(&report));
        }))
    }
}
