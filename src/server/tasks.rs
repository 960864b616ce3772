//! Runs that have become tasks: their clients poll for the result.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use parking_lot::Mutex;
use rmcp::model::{CallToolResult, CreateTaskResult};
use rmcp::task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions};
use serde_json::Value;

use super::pending::KEY;
use super::prompt::Prompt;
use super::run_answer::answer_run;
use super::run_in_flight::RunInFlight;
use super::shared::Shared;

/// How long a task is kept beyond the maximum duration of its run.
const KEPT: Duration = Duration::from_secs(5 * 60);

/// Poll interval that is suggested to clients.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of tasks of one client. A run beyond this number does not become a task; its call
/// is answered when it ends.
const MAX_TASKS: usize = 64;

/// The tasks of one session.
pub(crate) struct Tasks {
    pub(crate) manager: TaskManager,
    /// When the tasks expire.
    ends: Mutex<Vec<Instant>>,
}

impl Tasks {
    pub(crate) fn new() -> Self {
        Self { manager: TaskManager::new(), ends: Mutex::default() }
    }

    /// Whether one more run may become a task.
    pub(crate) fn have_room(&self) -> bool {
        let mut ends = self.ends.lock();
        ends.retain(|&end| end > Instant::now());
        ends.len() < MAX_TASKS
    }

    /// Turns a run into a task; the run continues. It ends with the session, like every run.
    pub(crate) fn start(&self, run: RunInFlight, shared: Arc<Shared>, client: String) -> CreateTaskResult {
        let kept = run.limits.wall_time + KEPT;
        // rmcp keeps the outcome for the same time again.
        self.ends.lock().push(Instant::now() + 2 * kept);
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let options = TaskOptions::new()
            .with_ttl_ms(milliseconds(kept))
            .with_poll_interval_ms(milliseconds(POLL_INTERVAL))
            .with_status_message("the script runs");
        let manager = self.manager.clone();
        let task = self.manager.spawn(options, move |task| {
            async move {
                // Moves the whole struct into the task. Otherwise only the fields named below would
                // be moved; dropping the others would end the run.
                let mut run = run;
                let mut prompts = 0;
                let result = loop {
                    tokio::select! {
                        biased;
                        () = task.cancelled() => {
                            run.cancel.cancel();
                            let _not_needed = run.run.await;
                            return Err(TaskExit::Cancelled);
                        }
                        result = &mut run.run => break result,
                        Some(prompt) = run.prompts.recv() => {
                            prompts += 1;
                            ask(&manager, &task, &format!("{KEY}-{prompts}"), prompt).await?;
                        }
                    }
                };
                drop(run.guard);
                Ok(CallToolResult::from(answer_run(&shared, &client, run.language, result)))
            }
            .boxed()
        });
        CreateTaskResult::new(task)
    }
}

/// Shows a prompt as input that a task requires, until it is answered or closed.
async fn ask(
    manager: &TaskManager,
    task: &TaskContext,
    key: &str,
    mut prompt: Prompt,
) -> Result<(), TaskExit> {
    let request = prompt.request();
    tokio::select! {
        biased;
        response = task.request_input(key, request) => prompt.answer(response?),
        () = prompt.closed() => {
            // Removes the prompt from the task's input requests.
            let _ended = manager.update_task(task.task_id(), [(key.to_owned(), Value::Null)]);
        }
    }
    Ok(())
}
