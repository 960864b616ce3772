//! What a server says about the tasks that it makes of calls (revision 2025-11-25, and SEP-2663 in the stateless
//! revision), within bounds.

use std::borrow::Cow;
use std::collections::HashSet;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::errors::{MESSAGE_BYTES, shortened, unreadable};
use crate::json::Json;
use crate::text::preview;
use crate::tools::ToolError;

/// The key of `_meta` that names the task to which a message belongs.
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// Maximum bytes of a task's id, which is a UUID or a signed token.
const MAX_ID_BYTES: usize = 1024;

/// Maximum bytes of a status in an error message.
const MAX_SHOWN: usize = 40;

/// The pause before a task is asked about again, if its server does not say how long.
const DEFAULT_PAUSE: Duration = Duration::from_secs(1);

/// Bounds of the pause that a server asks for. A shorter one would be a flood of requests, after a longer one runs
/// would end before their tasks are seen to have ended.
pub(crate) const MIN_PAUSE: Duration = Duration::from_millis(100);
pub(crate) const MAX_PAUSE: Duration = Duration::from_secs(10);

/// The time between two calls for which the tools are listed.
const BETWEEN_LISTS_FOR_CALLS: Duration = Duration::from_secs(1);

/// The tools that a server runs only as tasks, as it has listed them last over one connection.
pub(crate) struct TaskTools {
    /// Whether the server has declared that it makes tasks of calls. No task is asked for otherwise.
    makes_tasks: bool,
    names: Mutex<Names>,
    /// When the tools were listed last because of a call.
    listed_for_call: Mutex<Option<Instant>>,
}

#[derive(Default)]
struct Names {
    /// How many changes the server had announced when the list was requested.
    changes: u64,
    names: HashSet<String>,
}

impl TaskTools {
    pub(crate) fn new(makes_tasks: bool) -> Self {
        Self { makes_tasks, names: Mutex::default(), listed_for_call: Mutex::default() }
    }

    /// Whether the tools have to be listed before it is known how they are called. Lists that were kept from an
    /// earlier connection do not say it. A server that announces changes without end is not listed for each call.
    pub(crate) fn have_to_be_listed(&self) -> bool {
        self.makes_tasks
            && self.listed_for_call.lock().is_none_or(|listed| listed.elapsed() >= BETWEEN_LISTS_FOR_CALLS)
    }

    /// Records that the tools were listed because of a call.
    pub(crate) fn note_listed_for_call(&self) {
        *self.listed_for_call.lock() = Some(Instant::now());
    }

    /// Sets the names from a list that was requested after this many announced changes, unless there is a newer one.
    pub(crate) fn set(&self, names: HashSet<String>, changes: u64) {
        let mut known = self.names.lock();
        if self.makes_tasks && changes >= known.changes {
            *known = Names { changes, names };
        }
    }

    /// Whether the tool runs only as a task.
    pub(crate) fn contains(&self, tool: &str) -> bool {
        self.makes_tasks && self.names.lock().names.contains(tool)
    }
}

/// Whether the `execution` of a tool's definition says that it runs only as a task.
pub(crate) fn requires_task(execution: &RawValue) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Execution<'a> {
        #[serde(borrow)]
        task_support: Option<Cow<'a, str>>,
    }
    serde_json::from_str::<Execution<'_>>(execution.get())
        .is_ok_and(|execution| execution.task_support.as_deref() == Some("required"))
}

/// Where a task is in its life. The last three are final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskStatus {
    Working,
    /// The server has a question to the user, which it sends to whoever waits for the task's result.
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

impl TaskStatus {
    pub(crate) fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// A task, as its server describes it.
#[derive(Debug, PartialEq)]
pub(crate) struct TaskState {
    pub(crate) id: String,
    pub(crate) status: TaskStatus,
    /// What the server says about the status. Untrusted text.
    pub(crate) message: Option<String>,
    /// The pause before it is asked about again, within the bounds.
    pub(crate) pause: Duration,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenTask<'a> {
    #[serde(borrow)]
    task_id: Cow<'a, str>,
    #[serde(borrow)]
    status: Cow<'a, str>,
    #[serde(borrow)]
    status_message: Option<Cow<'a, str>>,
    #[serde(borrow)]
    poll_interval: Option<&'a RawValue>,
    /// The same in the stateless revision.
    #[serde(borrow)]
    poll_interval_ms: Option<&'a RawValue>,
}

impl TaskState {
    /// Parses the result of `tasks/get`.
    ///
    /// # Errors
    ///
    /// `UpstreamProtocol` if it is not a task.
    pub(crate) fn read(server: &str, text: &str) -> Result<Self, ToolError> {
        let task: WrittenTask<'_> =
            serde_json::from_str(text).map_err(|error| unreadable(server, &error.to_string()))?;
        if task.task_id.is_empty() || task.task_id.len() > MAX_ID_BYTES {
            let problem = format!(
                "the id of its task has {} bytes; it must have 1 to {MAX_ID_BYTES}",
                task.task_id.len()
            );
            return Err(unreadable(server, &problem));
        }
        let status = match &*task.status {
            "working" => TaskStatus::Working,
            "input_required" => TaskStatus::InputRequired,
            "completed" => TaskStatus::Completed,
            "failed" => TaskStatus::Failed,
            "cancelled" => TaskStatus::Cancelled,
            other => {
                let problem = format!("its task has the unknown status `{}`", preview(other, MAX_SHOWN));
                return Err(unreadable(server, &problem));
            }
        };
        let message = task.status_message.filter(|message| !message.trim().is_empty());
        Ok(Self {
            id: task.task_id.into_owned(),
            status,
            message: message.map(|message| shortened(&message, MESSAGE_BYTES)),
            pause: pause(task.poll_interval.or(task.poll_interval_ms)),
        })
    }

    /// The task that a server has made of a call, from the answer to the call; `None` if it has answered without one.
    ///
    /// # Errors
    ///
    /// `UpstreamProtocol` if the answer is not an object, or what it has in place of a task is none.
    pub(crate) fn created(server: &str, text: &str) -> Result<Option<Self>, ToolError> {
        #[derive(Deserialize)]
        struct Created<'a> {
            #[serde(borrow)]
            task: Option<&'a RawValue>,
        }
        let created: Created<'_> =
            serde_json::from_str(text).map_err(|error| unreadable(server, &error.to_string()))?;
        created.task.map(|task| Self::read(server, task.get())).transpose()
    }

    /// The same in the stateless revision (SEP-2663).
    ///
    /// # Errors
    ///
    /// As [`created`](Self::created).
    pub(crate) fn created_statelessly(server: &str, text: &str) -> Result<Option<Self>, ToolError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Created<'a> {
            #[serde(borrow)]
            result_type: Option<Cow<'a, str>>,
        }
        let created: Created<'_> =
            serde_json::from_str(text).map_err(|error| unreadable(server, &error.to_string()))?;
        let is_task = created.result_type.as_deref() == Some("task");
        is_task.then(|| Self::read(server, text)).transpose()
    }
}

/// What the stateless revision adds to a task that does not work.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskDetails<'a> {
    #[serde(borrow)]
    pub(crate) input_requests: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) error: Option<&'a RawValue>,
}

/// The pause that a server asks for, within the bounds. It can be any number.
fn pause(interval: Option<&RawValue>) -> Duration {
    let milliseconds = interval.and_then(|interval| interval.get().parse::<f64>().ok());
    milliseconds.filter(|milliseconds| !milliseconds.is_nan()).map_or(DEFAULT_PAUSE, |milliseconds| {
        let seconds = (milliseconds / 1_000.0).clamp(MIN_PAUSE.as_secs_f64(), MAX_PAUSE.as_secs_f64());
        Duration::from_secs_f64(seconds)
    })
}

/// The id of the task to which a message belongs, from its parameters or its result.
pub(crate) fn related_task(text: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow, rename = "_meta")]
        meta: Option<Meta<'a>>,
    }
    #[derive(Deserialize)]
    struct Meta<'a> {
        #[serde(borrow, rename = "io.modelcontextprotocol/related-task")]
        task: Option<Related<'a>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Related<'a> {
        #[serde(borrow)]
        task_id: Cow<'a, str>,
    }
    let message: Message<'_> = serde_json::from_str(text).ok()?;
    Some(message.meta?.task?.task_id.into_owned())
}

/// The `_meta` of a task's result without the task, which the receiver of the result does not know.
pub(crate) fn without_task(meta: Json) -> Option<Json> {
    let Some(Value::Object(fields)) = meta.value() else { return Some(meta) };
    if !fields.contains_key(RELATED_TASK) {
        return Some(meta);
    }
    let mut others = fields.clone();
    others.remove(RELATED_TASK);
    (!others.is_empty()).then(|| Value::Object(others).into())
}

#[cfg(test)]
mod tests;
