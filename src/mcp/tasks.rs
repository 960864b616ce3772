//! Calls of tools that a server runs only as tasks: the server makes a task of the call, is asked about it until it has
//! ended, and its result is that of the call.
//!
//! In revision 2025-11-25 the list of tools says which ones these are (`execution.taskSupport: "required"`), and the
//! client asks for the task. In the stateless revision (SEP-2663) a server refuses calls of clients that do not declare
//! that they support tasks.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rmcp::model::{ErrorCode, InputResponses, TASKS_EXTENSION_ID};
use rmcp::service::ServiceError;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::answers;
use super::connection::{CallFailure, Called, Connection};
use super::errors::{self, unreadable};
use super::input::Rounds;
use super::message::read_error;
use super::questions::Caller;
use super::results::{self, CallAnswer, RequiredInput};
use super::task_making::{TaskMaking, cancel_task};
use super::task_state::{
    MAX_PAUSE, MIN_PAUSE, TaskDetails, TaskState, TaskStatus, related_task, without_task,
};
use crate::json::Json;
use crate::tools::{ProgressListener, ToolError, ToolErrorCode, ToolResult};

/// Maximum number of requests about a task in a row that fail on the way, as at a proxy that is restarted. Such a request
/// has no effects, so it is sent again, and the work of the task is not lost.
const MAX_UNANSWERED: u32 = 3;

impl Connection {
    /// Calls a tool as a task of revision 2025-11-25, which the server is asked to keep for at least `keep`. Dropping
    /// the future tells the server that the task is cancelled.
    pub(crate) async fn call_as_task(
        self: &Arc<Self>,
        tool: &str,
        arguments: Json,
        caller: &Arc<Caller>,
        keep: Duration,
        on_progress: Option<ProgressListener>,
    ) -> Result<ToolResult, CallFailure> {
        let request = answers::task_request(tool, arguments, Arc::clone(caller), keep);
        let made = TaskMaking::begin(self, request, caller, on_progress).made().await;
        // Until the task has ended.
        let _listening = made.listening;
        let created = match made.answer {
            Ok(created) => created,
            Err(error) => return Err(self.call_failure(tool, caller, error, true).await),
        };
        self.has_answered.store(true, Ordering::Relaxed);
        let server = &self.server;
        let sent = CallFailure::after_sending;
        // A server that makes no task ignores that it is asked for one.
        let Some(mut state) = TaskState::created(server, &created).map_err(sent)? else {
            return complete(server, &created).map_err(sent);
        };
        let mut task = TaskInFlight::begin(self, caller, &state.id).map_err(sent)?;
        while state.status == TaskStatus::Working {
            (state, _) = self.ask_later(tool, caller, &state, &task.changed).await?;
        }
        task.is_over = state.status.is_final();
        if state.status == TaskStatus::Cancelled {
            return Err(sent(cancelled(server, &state)));
        }
        // The answer comes when the task has ended, and the server's questions before it.
        let mut failed = 0;
        let text = loop {
            match self.request_about(&task.id, "tasks/result", caller, None).await {
                Ok(text) => break text,
                Err(error) => {
                    if let Some(pause) = self.may_repeat(&mut failed, &error) {
                        tokio::select! {
                            () = sleep(pause.max(state.pause)) => {}
                            // The next request fails.
                            () = self.ended() => {}
                        }
                        continue;
                    }
                    let mut failure = self.call_failure(tool, caller, error, false).await;
                    // An error of the server's own is how the task has ended.
                    task.is_over |= failure.error.json_rpc_code.is_some();
                    if failure.error.json_rpc_code.is_some() && state.status == TaskStatus::Failed {
                        append_status(&mut failure.error, &state);
                    }
                    return Err(failure);
                }
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

    /// Whether the server has refused a call because the request did not declare that this client supports tasks.
    pub(crate) fn needs_tasks(&self, error: &ToolError) -> bool {
        // The capabilities that the server requires are in the error's data, which is part of the message.
        error.json_rpc_code == Some(ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY.0)
            && error.message.contains(TASKS_EXTENSION_ID)
            && self.is_stateless()
    }

    /// Calls a tool of the stateless revision, of which the server may make a task. Dropping the future tells the
    /// server that the task is cancelled.
    pub(crate) async fn call_with_tasks(
        self: &Arc<Self>,
        tool: &str,
        arguments: Json,
        caller: &Arc<Caller>,
        on_progress: Option<ProgressListener>,
    ) -> Result<ToolResult, CallFailure> {
        let mut listening = None;
        let called = self.call_declaring(tool, arguments, caller, on_progress, Some(&mut listening)).await?;
        let mut state = match called {
            Called::Result(result) => return Ok(result),
            Called::Task(state) => state,
        };
        if state.status != TaskStatus::Working {
            // Only what it is asked for says more.
            state.pause = MIN_PAUSE;
        }
        let sent = CallFailure::after_sending;
        let mut task = TaskInFlight::begin(self, caller, &state.id).map_err(sent)?;
        let mut input = TaskInput::default();
        let text = loop {
            let (next, text) = self.ask_later(tool, caller, &state, &task.changed).await?;
            state = next;
            match state.status {
                TaskStatus::Working => {}
                TaskStatus::InputRequired => {
                    self.give_input(&mut input, tool, caller, &task.id, &text).await?;
                }
                _ => break text,
            }
        };
        task.is_over = true;
        self.end_of_task(tool, &state, &text).map_err(sent)
    }

    /// The result of a task of the stateless revision that has ended.
    fn end_of_task(&self, tool: &str, state: &TaskState, text: &str) -> Result<ToolResult, ToolError> {
        let server = &self.server;
        let details = self.details(text)?;
        match (state.status, details.result, details.error) {
            (TaskStatus::Cancelled, ..) => Err(cancelled(server, state)),
            (TaskStatus::Failed, _, Some(error)) => {
                let error = read_error(error).map_err(|error| unreadable(server, &error.to_string()))?;
                let mut error = errors::call_error(server, tool, &error);
                append_status(&mut error, state);
                Err(error)
            }
            (TaskStatus::Completed, Some(result), _) => complete(server, result.get()),
            _ => Err(unreadable(server, "its task has ended without a result and without an error")),
        }
    }

    fn details<'a>(&self, text: &'a str) -> Result<TaskDetails<'a>, ToolError> {
        serde_json::from_str(text).map_err(|error| unreadable(&self.server, &error.to_string()))
    }

    /// Gives a task the input that it waits for, each time once.
    async fn give_input(
        &self,
        input: &mut TaskInput,
        tool: &str,
        caller: &Arc<Caller>,
        task: &str,
        text: &str,
    ) -> Result<(), CallFailure> {
        let sent = CallFailure::after_sending;
        let details = self.details(text).map_err(sent)?;
        let requests = details.input_requests.map(|all| input.unanswered(all)).transpose();
        let requests = requests.map_err(|error| sent(unreadable(&self.server, &error.to_string())))?;
        let Some(requests) = requests.filter(|requests| !requests.is_empty()) else { return Ok(()) };
        let required = RequiredInput { requests, state: None };
        let questions = self.notifications.questions();
        let given = input.rounds.give(questions, &self.server, caller, required).await;
        let (responses, _no_state) = given.map_err(sent)?;
        match self.request_about(task, "tasks/update", caller, Some(responses)).await {
            Ok(_acknowledged) => Ok(()),
            Err(error) => Err(self.call_failure(tool, caller, error, false).await),
        }
    }

    /// Asks how a task is, after the pause that its server wants, or soon after it says that the task has changed.
    /// Returns the answer as it was written, too.
    async fn ask_later(
        &self,
        tool: &str,
        caller: &Arc<Caller>,
        last: &TaskState,
        changed: &Notify,
    ) -> Result<(TaskState, String), CallFailure> {
        let (mut failed, mut pause) = (0, last.pause);
        let text = loop {
            tokio::select! {
                () = sleep(pause) => {}
                // However often it says so.
                () = changed.notified() => sleep(MIN_PAUSE).await,
                // Nobody says any more how the task is.
                () = self.ended() => {
                    return Err(self.call_failure(tool, caller, ServiceError::TransportClosed, false).await);
                }
            }
            match self.request_about(&last.id, "tasks/get", caller, None).await {
                Ok(text) => break text,
                Err(error) => {
                    if let Some(at_least) = self.may_repeat(&mut failed, &error) {
                        pause = at_least.max(last.pause);
                        continue;
                    }
                    let ServiceError::McpError(error) = error else {
                        return Err(self.call_failure(tool, caller, error, false).await);
                    };
                    let own = errors::own_error(&self.server, &error);
                    let error = own.unwrap_or_else(|| unknown(&self.server, &errors::message(&error)));
                    return Err(CallFailure::of_begun(error));
                }
            }
        };
        let state = TaskState::read(&self.server, &text).map_err(CallFailure::after_sending)?;
        if state.id != last.id {
            let problem = "it is asked about one task and answers about another";
            return Err(CallFailure::after_sending(unreadable(&self.server, problem)));
        }
        Ok((state, text))
    }

    /// The pause after which a request about a task that has failed is sent again, as the server wants it: it failed on
    /// the way, and not too often in a row. `failed` counts how often.
    fn may_repeat(&self, failed: &mut u32, error: &ServiceError) -> Option<Duration> {
        *failed += 1;
        let ServiceError::McpError(error) = error else { return None };
        let own = errors::own_error(&self.server, error).filter(|own| errors::is_passing(own.code))?;
        let may_repeat = *failed < MAX_UNANSWERED && self.is_alive();
        may_repeat.then(|| own.retry_after.unwrap_or_default().min(MAX_PAUSE))
    }

    async fn request_about(
        &self,
        task: &str,
        method: &str,
        caller: &Arc<Caller>,
        input: Option<InputResponses>,
    ) -> Result<String, ServiceError> {
        let request = answers::request_about_task(method, task, Some(Arc::clone(caller)), input);
        self.exchange(request, Some(caller), &caller.trace, None).await
    }
}

/// The input that a task of the stateless revision has been given.
#[derive(Default)]
struct TaskInput {
    rounds: Rounds,
    /// The keys of requests that have been answered. They are listed until the server has read the answers.
    answered: HashSet<String>,
}

impl TaskInput {
    /// The requests that are new, which count as answered from now on.
    fn unanswered(&mut self, all: &RawValue) -> Result<Vec<(String, String)>, serde_json::Error> {
        let mut requests = results::input_requests(all)?;
        requests.retain(|(key, _)| self.answered.insert(key.clone()));
        Ok(requests)
    }
}

/// The result in an answer.
fn complete(server: &str, text: &str) -> Result<ToolResult, ToolError> {
    match results::call_answer(server, text, false)? {
        CallAnswer::Complete(result) => Ok(result),
        // Only the stateless revision has such answers, and there a task asks otherwise.
        CallAnswer::InputRequired(_) => Err(unreadable(server, "it asks for input out of turn")),
    }
}

fn cancelled(server: &str, state: &TaskState) -> ToolError {
    let message = format!("server `{server}` has cancelled the task of the call");
    let mut error = ToolError::new(ToolErrorCode::ToolError, message);
    append_status(&mut error, state);
    error
}

/// Adds what the server says about the status of a task, unless its error says the same.
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
    changed: Arc<Notify>,
    is_over: bool,
}

impl TaskInFlight {
    /// # Errors
    ///
    /// `UpstreamProtocol` if another call has a task of the same id: questions of the one would go to the user of the
    /// other.
    fn begin(connection: &Arc<Connection>, caller: &Arc<Caller>, id: &str) -> Result<Self, ToolError> {
        let Some(changed) = connection.notifications.questions().begin_task(id, caller) else {
            return Err(unreadable(&connection.server, "its task has the id of one that has not ended"));
        };
        Ok(Self { connection: Arc::clone(connection), id: id.to_owned(), changed, is_over: false })
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
            cancel_task(&connection, &id).await;
            drop(permit);
        });
    }
}
