//! Calls of tools that a server runs only as tasks (`execution.taskSupport: "required"` of revision 2025-11-25): the
//! server makes a task of the call, is asked about it until it has ended, and then for its result.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rmcp::service::ServiceError;
use tokio::time::{sleep, timeout};

use super::answers::{self, RequestTrace};
use super::connection::{CallFailure, Connection};
use super::errors::{self, unreadable};
use super::questions::Caller;
use super::results::{self, CallAnswer};
use super::task_state::{TaskState, TaskStatus, related_task, without_task};
use crate::json::Json;
use crate::tools::{ProgressListener, ToolError, ToolErrorCode, ToolResult};

/// How long the server may take to answer that it cancels a task.
const CANCEL_TIME: Duration = Duration::from_secs(5);

impl Connection {
    /// Calls a tool as a task, which the server is asked to keep for at least `keep`. Dropping the future tells the
    /// server that the task is cancelled.
    pub(crate) async fn call_as_task(
        self: &Arc<Self>,
        tool: &str,
        arguments: Json,
        caller: &Arc<Caller>,
        keep: Duration,
        on_progress: Option<ProgressListener>,
    ) -> Result<ToolResult, CallFailure> {
        let request = answers::task_request(tool, arguments, Arc::clone(caller), keep);
        // The progress of a task has the token of the request that made it.
        let mut listening = None;
        let created =
            self.exchange_listening(request, Some(caller), &caller.trace, on_progress, &mut listening).await;
        let created = match created {
            Ok(created) => created,
            Err(error) => return Err(self.call_failure(tool, caller, error, true).await),
        };
        self.has_answered.store(true, Ordering::Relaxed);
        let server = &self.server;
        let sent = CallFailure::after_sending;
        // A server that makes no task ignores that it is asked for one.
        let Some(state) = TaskState::created(server, &created).map_err(sent)? else {
            return complete(server, &created).map_err(sent);
        };
        let mut task = TaskInFlight::begin(self, caller, &state.id).map_err(sent)?;
        let state = self.await_task(tool, caller, state).await?;
        task.is_over = state.status.is_final();
        if state.status == TaskStatus::Cancelled {
            return Err(sent(cancelled(server, &state)));
        }
        // The answer comes when the task has ended, and the server's questions before it.
        let request = answers::request_about_task("tasks/result", &task.id, Some(Arc::clone(caller)));
        let text = match self.exchange(request, Some(caller), &caller.trace, None).await {
            Ok(text) => text,
            Err(error) => {
                let mut failure = self.call_failure(tool, caller, error, false).await;
                // An error of the server's own is how the task has ended.
                task.is_over |= failure.error.json_rpc_code.is_some();
                add_status(&mut failure.error, &state);
                return Err(failure);
            }
        };
        task.is_over = true;
        if related_task(&text).is_some_and(|related| related != task.id) {
            return Err(sent(unreadable(server, "the result is that of another task")));
        }
        let mut result = complete(server, &text).map_err(sent)?;
        result.is_error |= state.status == TaskStatus::Failed;
        result.meta = result.meta.and_then(without_task);
        Ok(result)
    }

    /// Asks about a task until it has ended or waits for input, at the pace that its server asks for within bounds. The
    /// time is bounded by that of the call.
    async fn await_task(
        &self,
        tool: &str,
        caller: &Arc<Caller>,
        mut state: TaskState,
    ) -> Result<TaskState, CallFailure> {
        while state.status == TaskStatus::Working {
            sleep(state.pause).await;
            let request = answers::request_about_task("tasks/get", &state.id, Some(Arc::clone(caller)));
            let text = match self.exchange(request, Some(caller), &caller.trace, None).await {
                Ok(text) => text,
                Err(ServiceError::McpError(error)) => {
                    let own = errors::own_error(&self.server, &error);
                    let other = || unknown(&self.server, &errors::message(&error));
                    return Err(CallFailure::after_sending(own.unwrap_or_else(other)));
                }
                Err(error) => return Err(self.call_failure(tool, caller, error, false).await),
            };
            let next = TaskState::read(&self.server, &text).map_err(CallFailure::after_sending)?;
            if next.id != state.id {
                let problem = "it is asked about one task and answers about another";
                return Err(CallFailure::after_sending(unreadable(&self.server, problem)));
            }
            state = next;
        }
        Ok(state)
    }
}

/// The result in an answer.
fn complete(server: &str, text: &str) -> Result<ToolResult, ToolError> {
    match results::call_answer(server, text, false)? {
        CallAnswer::Complete(result) => Ok(result),
        // Only the stateless revision has such answers.
        CallAnswer::InputRequired(_) => Err(unreadable(server, "it asks for input out of turn")),
    }
}

fn cancelled(server: &str, state: &TaskState) -> ToolError {
    let mut error = ToolError::new(
        ToolErrorCode::ToolError,
        format!("server `{server}` has cancelled the task of the call"),
    );
    append_status(&mut error, state);
    error
}

/// Adds what the server says about a task that has failed, unless its error says the same.
fn add_status(error: &mut ToolError, state: &TaskState) {
    if state.status == TaskStatus::Failed && error.json_rpc_code.is_some() {
        append_status(error, state);
    }
}

fn append_status(error: &mut ToolError, state: &TaskState) {
    if let Some(message) = state.message.as_deref().filter(|message| !error.message.contains(*message)) {
        error.message = format!("{}: {message}", error.message);
    }
}

/// The error for a task about which the server says nothing, although it has to keep it.
fn unknown(server: &str, problem: &str) -> ToolError {
    ToolError::new(
        ToolErrorCode::UpstreamProtocol,
        format!(
            "server `{server}` says nothing about the task that it has made of the call: {problem}; whether the call \
             took effect is unknown"
        ),
    )
}

/// A task of a call. If it has not ended when this is dropped, the server is told that it is cancelled.
struct TaskInFlight {
    connection: Arc<Connection>,
    id: String,
    is_over: bool,
}

impl TaskInFlight {
    /// # Errors
    ///
    /// `UpstreamProtocol` if another call has a task of the same id: questions of the one would go to the user of the
    /// other.
    fn begin(connection: &Arc<Connection>, caller: &Arc<Caller>, id: &str) -> Result<Self, ToolError> {
        if !connection.notifications.questions().begin_task(id, caller) {
            return Err(unreadable(&connection.server, "its task has the id of one that has not ended"));
        }
        Ok(Self { connection: Arc::clone(connection), id: id.to_owned(), is_over: false })
    }
}

impl Drop for TaskInFlight {
    fn drop(&mut self) {
        self.connection.notifications.questions().end_task(&self.id);
        if self.is_over || !self.connection.is_alive() {
            return;
        }
        let permits = Arc::clone(&self.connection.task_cancellations);
        let Ok(permit) = permits.try_acquire_owned() else { return };
        let (connection, id) = (Arc::clone(&self.connection), std::mem::take(&mut self.id));
        // The task ends by its deadline.
        self.connection.handle.spawn(async move {
            let request = answers::request_about_task("tasks/cancel", &id, None);
            let trace = RequestTrace::default();
            let _unanswered = timeout(CANCEL_TIME, connection.exchange(request, None, &trace, None)).await;
            drop(permit);
        });
    }
}
