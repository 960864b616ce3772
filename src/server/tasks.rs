//! Runs that have become tasks: their clients poll for the result.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use parking_lot::Mutex;
use rmcp::model::{CallToolResult, CreateTaskResult};
use rmcp::task_manager::{TaskContext, TaskExit, TaskManager, TaskOptions};
use serde_json::Value;

use super::client_slots::{ClientSlot, ClientSlots};
use super::json_size::json_bytes;
use super::pending::{MODEL_KEY, USER_KEY};
use super::prompt::Prompt;
use super::run_in_flight::RunInFlight;
use crate::durations::milliseconds;
use crate::run::history::split_client;

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

/// Maximum bytes of the results of ended tasks of all sessions together, as of answers that are kept over REST. A
/// result has about 100 kB at most, unless its script emitted images.
const MAX_ENDED_BYTES: usize = 64 << 20;

/// The tasks of one session.
pub(crate) struct Tasks {
    slots: ClientSlots,
    state: Arc<Mutex<TasksState>>,
    all: Arc<AllTasks>,
}

/// The tasks of all sessions of a server, whose results are bounded together.
#[derive(Default)]
pub(crate) struct AllTasks(Mutex<Vec<Weak<Mutex<TasksState>>>>);

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
    /// How the task ended. Set by the task itself.
    ended: Arc<OnceLock<TaskEnd>>,
}

/// When a task ended, and the bytes of its result.
#[derive(Clone, Copy)]
struct TaskEnd {
    at: Instant,
    bytes: usize,
}

/// Records the end of a task when it is dropped, whatever ends the task.
struct EndOfTask {
    ended: Arc<OnceLock<TaskEnd>>,
    bytes: usize,
    state: Weak<Mutex<TasksState>>,
    all: Arc<AllTasks>,
    slot: ClientSlot,
}

impl Drop for EndOfTask {
    fn drop(&mut self) {
        let _first = self.ended.set(TaskEnd { at: Instant::now(), bytes: self.bytes });
        let Some(state) = self.state.upgrade() else { return };
        // Dropped after the lock is released: managers hold results.
        let _dropped = state.lock().drop_ended(self.slot.client());
        let _beyond = self.all.drop_ended(MAX_ENDED_BYTES);
    }
}

/// An ended task of one of the sessions.
struct EndedTask {
    /// The position of its session.
    session: usize,
    holder: ResultHolder,
    id: String,
    ended: TaskEnd,
}

/// The holder to which a result counts: a tenant, or without tenants a client of the session at this position.
#[derive(Debug, PartialEq, Eq, Hash)]
enum ResultHolder {
    Tenant(String),
    Client(usize, String),
}

impl ResultHolder {
    fn new(session: usize, client: &str) -> Self {
        match split_client(client) {
            ("", client) => Self::Client(session, client.to_owned()),
            (tenant, _) => Self::Tenant(tenant.to_owned()),
        }
    }
}

impl AllTasks {
    fn add(&self, state: &Arc<Mutex<TasksState>>) {
        let mut all = self.0.lock();
        all.retain(|state| state.strong_count() > 0);
        all.push(Arc::downgrade(state));
    }

    /// Removes ended tasks until the results of the others have at most `max` bytes. The newest one stays, so that its
    /// client can read it at all.
    fn drop_ended(&self, max: usize) -> Vec<Task> {
        let sessions: Vec<Arc<Mutex<TasksState>>> = self.0.lock().iter().filter_map(Weak::upgrade).collect();
        let bytes: usize = sessions.iter().map(|state| state.lock().ended_bytes()).sum();
        if bytes <= max {
            return Vec::new();
        }
        let mut all: Vec<EndedTask> = Vec::new();
        for (session, state) in sessions.iter().enumerate() {
            all.extend(state.lock().tasks.iter().filter_map(|(id, task)| {
                let ended = *task.ended.get().filter(|ended| ended.bytes > 0)?;
                Some(EndedTask {
                    session,
                    holder: ResultHolder::new(session, &task.client),
                    id: id.clone(),
                    ended,
                })
            }));
        }
        all.sort_unstable_by_key(|task| task.ended.at);
        let _newest = all.pop();
        let beyond = to_drop(&all, bytes.saturating_sub(max));
        beyond.into_iter().filter_map(|task| sessions[task.session].lock().tasks.remove(&task.id)).collect()
    }
}

/// Chooses the tasks to drop so that `bytes` are freed: repeatedly the oldest one of the holder with most bytes. `all`
/// is sorted from the oldest to the newest.
fn to_drop(all: &[EndedTask], bytes: usize) -> Vec<&EndedTask> {
    let mut positions: HashMap<&ResultHolder, usize> = HashMap::new();
    let mut held: Vec<(usize, VecDeque<&EndedTask>)> = Vec::new();
    for task in all {
        let position = *positions.entry(&task.holder).or_insert(held.len());
        if position == held.len() {
            held.push((0, VecDeque::new()));
        }
        let (bytes, tasks) = &mut held[position];
        *bytes += task.ended.bytes;
        tasks.push_back(task);
    }
    // A heap, because there can be tens of thousands of tasks. Among holders with equal bytes, the one with the oldest
    // task is first.
    let mut largest: BinaryHeap<(usize, Reverse<usize>)> =
        held.iter().enumerate().map(|(position, (bytes, _))| (*bytes, Reverse(position))).collect();
    let (mut freed, mut dropped) = (0_usize, Vec::new());
    while freed < bytes
        && let Some((had, Reverse(position))) = largest.pop()
    {
        let Some(task) = held[position].1.pop_front() else { continue };
        freed += task.ended.bytes;
        dropped.push(task);
        largest.push((had.saturating_sub(task.ended.bytes), Reverse(position)));
    }
    dropped
}

impl TasksState {
    /// Removes the ended tasks that are no longer kept: those that have expired, and the oldest ones
    /// beyond the bounds.
    fn drop_ended(&mut self, client: &str) -> Vec<Task> {
        let has_expired =
            |_: &String, task: &mut Task| task.ended.get().is_some_and(|end| end.at.elapsed() >= task.kept);
        let mut dropped: Vec<Task> = self.tasks.extract_if(has_expired).map(|(_, task)| task).collect();
        for (client, max) in [(Some(client), MAX_ENDED), (None, MAX_ENDED_OF_ALL)] {
            let mut ended: Vec<(Instant, String)> = self
                .tasks
                .iter()
                .filter(|(_, task)| client.is_none_or(|client| task.client == client))
                .filter_map(|(id, task)| Some((task.ended.get()?.at, id.clone())))
                .collect();
            ended.sort_unstable();
            let surplus = ended.len().saturating_sub(max);
            dropped.extend(ended[..surplus].iter().filter_map(|(_, id)| self.tasks.remove(id)));
        }
        dropped
    }

    /// The bytes of the results of ended tasks.
    fn ended_bytes(&self) -> usize {
        self.tasks.values().filter_map(|task| task.ended.get()).map(|ended| ended.bytes).sum()
    }
}

impl Tasks {
    /// The tasks of a new session of the server that has `all`.
    pub(crate) fn new(all: &Arc<AllTasks>) -> Self {
        let state = Arc::default();
        all.add(&state);
        Self { slots: ClientSlots::new(MAX_TASKS), state, all: Arc::clone(all) }
    }

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
        let options = TaskOptions::new()
            .with_ttl_ms(milliseconds(kept))
            .with_poll_interval_ms(milliseconds(POLL_INTERVAL))
            .with_status_message("the script runs");
        let manager = TaskManager::new();
        let (inner, holder) = (manager.clone(), slot.client().to_owned());
        let ended = Arc::<OnceLock<TaskEnd>>::default();
        let (state, all) = (Arc::downgrade(&self.state), Arc::clone(&self.all));
        let end = EndOfTask { ended: Arc::clone(&ended), bytes: 0, state, all, slot };
        let task = manager.spawn(options, move |task| {
            async move {
                // Moves the whole structs into the task. Otherwise only the fields named below would
                // be moved; dropping the others would end the run.
                let (mut run, mut end) = (run, end);
                let result = end_of(&mut run, &inner, &task).await?;
                end.bytes = json_bytes(&result);
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
                    let name = if prompt.is_for_model() { MODEL_KEY } else { USER_KEY };
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
