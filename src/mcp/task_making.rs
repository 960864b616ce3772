//! The request of which the server makes a task (revision 2025-11-25), or may make one (SEP-2663, in the stateless
//! revision), and the one that cancels a task.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::ClientRequest;
use rmcp::service::ServiceError;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::answers::{self, RequestTrace};
use super::connection::Connection;
use super::notifications::Listening;
use super::questions::Caller;
use super::task_state::TaskState;
use crate::tools::{Progress, ProgressListener};

/// How long the server may take to answer that it cancels a task, and before that to say which task it has made.
const CANCEL_TIME: Duration = Duration::from_secs(5);

/// What has come of a request of which the server may make a task.
pub(crate) struct Made {
    pub(crate) answer: Result<String, ServiceError>,
    /// Ends the listening to the task's progress, which has the token of the request that made it.
    pub(crate) listening: Option<Listening>,
}

/// A request of which the server may make a task. If this is dropped before the answer is there, the server is told
/// that the task is cancelled as soon as it has said which one it is: such requests are not cancelled themselves. A
/// server that does not say so in time is told that the request is cancelled.
pub(crate) struct TaskMaking {
    connection: Arc<Connection>,
    /// `None` when the answer has been taken.
    made: Option<JoinHandle<Made>>,
}

impl TaskMaking {
    /// Sends the request.
    pub(crate) fn begin(
        connection: &Arc<Connection>,
        request: ClientRequest,
        caller: &Arc<Caller>,
        on_progress: Option<ProgressListener>,
    ) -> Self {
        let (sender, caller) = (Arc::clone(connection), Arc::clone(caller));
        // The request goes on when its call is over, whose listener then hears nothing.
        let on_progress = on_progress.map(|listener| {
            let caller = Arc::clone(&caller);
            let guarded = move |progress: Progress| {
                if !caller.is_over() {
                    listener(progress);
                }
            };
            Arc::new(guarded) as ProgressListener
        });
        let made = connection.handle.spawn(async move {
            let mut listening = None;
            let answer = sender
                .exchange_listening(request, Some(&caller), &caller.trace, on_progress, &mut listening)
                .await;
            Made { answer, listening }
        });
        Self { connection: Arc::clone(connection), made: Some(made) }
    }

    /// Waits for the answer.
    pub(crate) async fn made(mut self) -> Made {
        let made = match &mut self.made {
            Some(made) => made.await.ok(),
            None => None,
        };
        self.made = None;
        // Without a runtime there is no connection.
        made.unwrap_or_else(|| Made { answer: Err(ServiceError::TransportClosed), listening: None })
    }
}

impl Drop for TaskMaking {
    fn drop(&mut self) {
        let Some(mut made) = self.made.take() else { return };
        let permits = Arc::clone(&self.connection.task_cancellations);
        let Ok(permit) = permits.try_acquire_owned() else {
            made.abort();
            return;
        };
        let connection = Arc::clone(&self.connection);
        // The task ends by its deadlines.
        self.connection.handle.spawn(async move {
            match timeout(CANCEL_TIME, &mut made).await {
                Ok(Ok(Made { answer: Ok(text), .. })) => {
                    let server = &connection.server;
                    let task = match connection.is_stateless() {
                        true => TaskState::created_statelessly(server, &text),
                        false => TaskState::created(server, &text),
                    };
                    if let Ok(Some(task)) = task
                        && !task.status.is_final()
                    {
                        cancel_task(&connection, &task.id).await;
                    }
                }
                Ok(_no_task) => {}
                // The server is told that the request is cancelled.
                Err(_late) => made.abort(),
            }
            drop(permit);
        });
    }
}

/// Tells the server that a task is cancelled, and waits for its answer for a time.
pub(crate) async fn cancel_task(connection: &Connection, task: &str) {
    let request = answers::request_about_task("tasks/cancel", task, None, None);
    let trace = RequestTrace::default();
    let _unanswered = timeout(CANCEL_TIME, connection.exchange(request, None, &trace, None)).await;
}
