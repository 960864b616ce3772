//! Calls of a run without a script. No watchdog observes such a run, so each call ends by itself at the deadline.

use std::sync::Arc;
use std::time::Instant;

use super::answer::own_result;
use super::resolve::ToolName;
use super::send::Permission;
use crate::json::Json;
use crate::run::context::ExecutionContext;
use crate::run::errors::over;
use crate::tools::{ServerRequest, ToolError, ToolErrorCode, ToolResult};

impl ExecutionContext {
    /// Calls a tool as [`call`](Self::call) does and returns its own result, for a run without a script. If hooks
    /// change the value, the result is made from the changed value.
    ///
    /// Ends at the run's deadline, which no watchdog observes here.
    pub(crate) async fn call_alone(
        self: &Arc<Self>,
        name: ToolName,
        arguments: String,
    ) -> Result<ToolResult, ToolError> {
        let mut held = self.hold_call(arguments.len())?;
        held.keep_answer();
        let call = async {
            tokio::select! {
                biased;
                result = self.call_tool(&held, name, arguments) => result,
                () = self.cancel.cancelled() => Err(over()),
                () = self.passed_deadline() => Err(self.too_late()),
            }
        };
        let result = Arc::clone(self).in_runtime(call).await;
        held.note_failure(&result);
        own_result(held.take_answer(), result)
    }

    /// Returns the contents of a resource that belongs to a tool which may be called, or the list of resources, for a
    /// run without a script. An allow list need not name the method; deny lists are obeyed. Otherwise the same as
    /// [`request`](Self::request), except that it ends at the run's deadline.
    pub(crate) async fn read_alone(
        self: &Arc<Self>,
        server: &str,
        request: ServerRequest,
    ) -> Result<Json, ToolError> {
        let held = self.hold_call(0)?;
        let call = async {
            tokio::select! {
                biased;
                result = self.send_request(&held, server, request, Permission::OfTool) => result,
                () = self.cancel.cancelled() => Err(over()),
                () = self.passed_deadline() => Err(self.too_late()),
            }
        };
        let result = Arc::clone(self).in_runtime(call).await;
        held.note_failure(&result);
        result
    }

    /// Completes at the run's deadline, which moves while a prompt is open, and when an operator lowers the limits.
    async fn passed_deadline(&self) {
        let mut lowered = self.environment.limits.changes();
        loop {
            lowered.mark_unchanged();
            let deadline = self.deadline();
            if Instant::now() >= deadline {
                return;
            }
            // A closed channel means that the executor has ended, and with it the run.
            let _ = tokio::time::timeout_at(deadline.into(), lowered.changed()).await;
        }
    }

    fn too_late(&self) -> ToolError {
        let message = format!("no answer within {} ms", self.limits().wall_time.as_millis());
        ToolError::new(ToolErrorCode::ToolTimeout, message)
    }
}
