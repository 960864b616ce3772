//! Runs that have become tasks: their clients poll for the result.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use parking_lot::Mutex;
use rmcp::model::{CallToolResult, CreateTaskResult};
use rmcp::task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions};
use serde_json::Value;

use super::client_slots::{ClientSlot, ClientSlots};
use super::pending::{KEY, MODEL_KEY};
use super::prompt::Prompt;
use super::run_in_flight::RunInFlight;

/// How long a task is kept beyond the maximum duration of its run.
const KEPT: Duration = Duration::from_secs(5 * 60);

/// Poll interval that is suggested to clients.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of tasks of one client that run. A run beyond this number does not become a task; its
/// call is answered when it ends.
const MAX_TASKS: usize = 64;

/// Maximum number of ended tasks of one client whose results are kept. Beyond it the oldest result is dropped.
const MAX_ENDED: usize = 64;

/// Maximum number of ended tasks of all clients of a session together. Only the session of clients without one has
/// several clients.
const MAX_ENDED_OF_ALL: usize = 1_024;

/// The tasks of one session.
pub(crate) struct Tasks {
    slots: ClientSlots,
    state: Arc<Mutex<TasksState>>,
}

impl Default for Tasks {
    fn default() -> Self {
        Self { slots: ClientSlots::new(MAX_TASKS), state: Arc::default() }
    }
}

#[derive(Default)]
struct TasksState {
    /// The tasks by id, each with a manager of its own: rmcp's cannot drop a single task.
    tasks: HashMap<String, Task>,
}

struct Task {
    client: String,
    manager: TaskManager,
    /// How long the task's result is kept.
    kept: Duration,
    /// When the task ended. Set by the task itself.
    ended: Arc<OnceLock<Instant>>,
}

/// Records the end of a task when it is dropped, whatever ends the task.
struct EndOfTask {
    ended: Arc<OnceLock<Instant>>,
    state: Weak<Mutex<TasksState>>,
    slot: ClientSlot,
}

impl Drop for EndOfTask {
    fn drop(&mut self) {
        let _first = self.ended.set(Instant::now());
        let Some(state) = self.state.upgrade() else { return };
        // Dropped after the lock is released: managers hold results.
        let _dropped = state.lock().drop_ended(self.slot.client());
    }
}

impl TasksState {
    /// Removes the ended tasks that are no longer kept: those that have expired, and the oldest ones
    /// beyond the bounds.
    fn drop_ended(&mut self, client: &str) -> Vec<Task> {
        let has_expired =
            |_: &String, task: &mut Task| task.ended.get().is_some_and(|at| at.elapsed() >= task.kept);
        let mut dropped: Vec<Task> = self.tasks.extract_if(has_expired).map(|(_, task)| task).collect();
        for (client, max) in [(Some(client), MAX_ENDED), (None, MAX_ENDED_OF_ALL)] {
            let mut ended: Vec<(Instant, String)> = self
                .tasks
                .iter()
                .filter(|(_, task)| client.is_none_or(|client| task.client == client))
                .filter_map(|(id, task)| Some((*task.ended.get()?, id.clone())))
                .collect();
            ended.sort_unstable();
            let surplus = ended.len().saturating_sub(max);
            dropped.extend(ended[..surplus].iter().filter_map(|(_, id)| self.tasks.remove(id)));
        }
        dropped
    }
}

impl Tasks {
    /// Takes a slot for one more task of `client`; `None` if it has as many as it may have.
    pub(crate) fn slot(&self, client: &str) -> Option<ClientSlot> {
        self.slots.acquire(client)
    }

    /// The manager that answers requests about a task. If no task has this id, a manager without tasks, whose answer
    /// says so.
    pub(crate) fn manager(&self, id: &str) -> TaskManager {
        self.state.lock().tasks.get(id).map(|task| task.manager.clone()).unwrap_or_default()
    }

    /// Turns a run into a task; the run continues. It ends with the session, like every run.
    pub(crate) fn start(&self, slot: ClientSlot, run: RunInFlight) -> CreateTaskResult {
        let kept = run.limits.wall_time + KEPT;
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let options = TaskOptions::new()
            .with_ttl_ms(milliseconds(kept))
            .with_poll_interval_ms(milliseconds(POLL_INTERVAL))
            .with_status_message("the script runs");
        let manager = TaskManager::new();
        let (inner, holder) = (manager.clone(), slot.client().to_owned());
        let ended = Arc::<OnceLock<Instant>>::default();
        let end = EndOfTask { ended: Arc::clone(&ended), state: Arc::downgrade(&self.state), slot };
        let task = manager.spawn(options, move |task| {
            async move {
                // Moves the whole structs into the task. Otherwise only the fields named below would
                // be moved; dropping the others would end the run.
                let (mut run, end) = (run, end);
                let result = end_of(&mut run, &inner, &task).await?;
                drop(run.guard);
                drop(end);
                Ok(result)
            }
            .boxed()
        });
        let entry = Task { client: holder, manager, kept, ended };
        self.state.lock().tasks.insert(task.task_id.clone(), entry);
        CreateTaskResult::new(task)
    }
}

/// Waits for a run's answer. Meanwhile its prompts are shown as input that the task requires.
///
/// # Errors
///
/// If the task is cancelled, which cancels the run, or its manager has ended.
async fn end_of(
    run: &mut RunInFlight,
    manager: &TaskManager,
    task: &TaskContext,
) -> Result<CallToolResult, TaskExit> {
    let mut prompts = 0;
    loop {
        tokio::select! {
            biased;
            () = task.cancelled() => {
                run.cancel.cancel();
                let _not_needed = (&mut run.run).await;
                return Err(TaskExit::Cancelled);
            }
            result = &mut run.run => return Ok(result),
            Some(first) = run.prompts.recv() => {
                let open = run.with_all_open(first).await;
                let asked = open.into_iter().map(|prompt| {
                    prompts += 1;
                    let name = if prompt.is_for_model() { MODEL_KEY } else { KEY };
                    ask(manager, task, format!("{name}-{prompts}"), prompt)
                });
                futures::future::try_join_all(asked).await?;
            }
        }
    }
}

/// Shows a prompt as input that a task requires, until it is answered or closed.
async fn ask(
    manager: &TaskManager,
    task: &TaskContext,
    key: String,
    mut prompt: Prompt,
) -> Result<(), TaskExit> {
    let request = prompt.request();
    tokio::select! {
        biased;
        response = task.request_input(&key, request) => prompt.answer(response?),
        () = prompt.closed() => {
            // Removes the prompt from the task's input requests.
            let _ended = manager.update_task(task.task_id(), [(key.clone(), Value::Null)]);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
