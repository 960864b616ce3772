//! Tasks of revision 2025-11-25: `target` runs only as one. The arguments of the call say how its task goes:
//!
//! - `polls`: how often it is asked about until it ends, 1 by default; `interval`: the pause that it asks for,
//! - `ends`: its last status, `completed` by default; `says`: its status message,
//! - `question`: a request for the client, whose answer it waits for before it ends,
//! - `id`: its id, or the number of bytes of it,
//! - `late`: the time before the server says that it has made the task,
//! - `announced`: how often the server says that it has changed; `gap`: the time before each of that,
//! - `fault`: what is wrong with it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::server::{Server, Sink, error, notification, result, text_result};

const RELATED: &str = "io.modelcontextprotocol/related-task";

/// The tasks of a server, by their ids.
#[derive(Default)]
pub(crate) struct Tasks(pub(crate) Mutex<HashMap<String, Task>>);

#[derive(Clone)]
pub(crate) struct Task {
    pub(crate) arguments: Value,
    progress_token: Value,
    /// How often the client has asked about it.
    pub(crate) asked: u64,
    /// The answers to its questions, in the stateless revision.
    pub(crate) answers: Value,
    /// Answers that have come and are not read yet.
    pub(crate) unread: Option<Value>,
}

impl Task {
    pub(crate) fn new(parameters: &Value) -> Self {
        let progress_token = parameters["_meta"]["progressToken"].clone();
        let arguments = parameters["arguments"].clone();
        Self { arguments, progress_token, asked: 0, answers: json!({}), unread: None }
    }

    pub(crate) fn has(&self, fault: &str) -> bool {
        self.arguments["fault"] == fault
    }

    /// The time before the server says that it has made the task.
    pub(crate) fn late(&self) -> Duration {
        Duration::from_millis(self.number("late"))
    }

    fn number(&self, name: &str) -> u64 {
        self.arguments[name].as_u64().unwrap_or(0)
    }

    pub(crate) fn status(&self) -> &str {
        if self.asked < self.arguments["polls"].as_u64().unwrap_or(1) {
            "working"
        } else if self.has("unknown-status") {
            "dreaming"
        } else if self.has("waits-for-nothing")
            || self.arguments["question"].is_object() && self.answers.get("question").is_none()
        {
            "input_required"
        } else {
            self.arguments["ends"].as_str().unwrap_or("completed")
        }
    }

    pub(crate) fn state(&self, id: &str) -> Value {
        let interval = self.arguments.get("interval").cloned().unwrap_or_else(|| json!(1));
        // The names of both revisions.
        let mut state = json!({
            "taskId": id,
            "status": self.status(),
            "createdAt": "2025-11-25T10:30:00Z",
            "lastUpdatedAt": "2025-11-25T10:30:00Z",
            "ttl": 60_000,
            "ttlMs": 60_000,
            "pollInterval": interval,
            "pollIntervalMs": interval,
        });
        if let Some(says) = self.arguments.get("says") {
            state["statusMessage"] = says.clone();
        }
        state
    }
}

/// Declares how the tools are called: `target` only as a task, `echo` as one or not.
pub(crate) fn declare(tools: &mut [Value]) {
    for tool in tools {
        match tool["name"].as_str() {
            Some("target") => tool["execution"] = json!({ "taskSupport": "required" }),
            Some("echo") => tool["execution"] = json!({ "taskSupport": "optional" }),
            _ => {}
        }
    }
}

/// Whether the tool is not in the list that is the `lists`th, because a server that was started again adds it late.
pub(crate) fn adds_late(server: &Server, lists: u64) -> bool {
    server.options.is("tasks") && server.options.variant == "late" && server.restarted && lists == 0
}

/// Makes a task of a call of `target`.
pub(crate) fn create(
    server: &Server,
    id: &Value,
    parameters: &Value,
    sink: &Arc<dyn Sink>,
) -> std::io::Result<()> {
    let Some(wanted) = parameters.get("task") else {
        return sink.send(&error(id, -32601, "it requires task augmentation"));
    };
    server.options.note(&format!("task {wanted}"));
    let task = Task::new(parameters);
    if task.has("no-task") {
        return sink.send(&text_result(id, "at once"));
    }
    let name = match &task.arguments["id"] {
        Value::String(name) => name.clone(),
        Value::Number(bytes) => "i".repeat(usize::try_from(bytes.as_u64().unwrap()).unwrap()),
        _ => format!("task-{id}"),
    };
    let state = task.state(&name);
    let (announced, gap) = (task.number("announced"), Duration::from_millis(task.number("gap")));
    let late = task.late();
    server.tasks.0.lock().unwrap().insert(name.clone(), task);
    std::thread::sleep(late);
    sink.send(&result(id, json!({ "task": state })))?;
    (0..announced).try_for_each(|_| {
        std::thread::sleep(gap);
        sink.send(&notification("notifications/tasks/status", json!({ "taskId": name, "status": "working" })))
    })
}

/// Answers a request about a task.
pub(crate) fn answer(
    server: &Arc<Server>,
    method: &str,
    id: &Value,
    parameters: &Value,
    sink: &Arc<dyn Sink>,
) -> std::io::Result<()> {
    let name = parameters["taskId"].as_str().unwrap_or_default().to_owned();
    server.options.note(&format!("{method} {name}"));
    let task = {
        let mut tasks = server.tasks.0.lock().unwrap();
        let Some(task) = tasks.get_mut(&name) else {
            return sink.send(&error(id, -32602, "there is no such task"));
        };
        task.asked += u64::from(method == "tasks/get");
        task.clone()
    };
    match method {
        "tasks/get" => {
            if task.has("lost") {
                return sink.send(&error(id, -32602, "the task has expired"));
            }
            if task.has("progress") {
                let progress = json!({ "progressToken": task.progress_token, "progress": task.asked });
                sink.send(&notification("notifications/progress", progress))?;
            }
            let told = if task.has("other-task") { "another" } else { &*name };
            sink.send(&result(id, task.state(told)))
        }
        "tasks/cancel" if task.has("hang-cancel") => Ok(()),
        "tasks/cancel" => {
            let mut state = task.state(&name);
            state["status"] = "cancelled".into();
            sink.send(&result(id, state))
        }
        _ => {
            let (server, id, sink) = (Arc::clone(server), id.clone(), Arc::clone(sink));
            std::thread::spawn(move || {
                let _closed = finish(&server, &name, &task, &id, &sink);
            });
            Ok(())
        }
    }
}

/// Answers with the result of a task, after its question.
fn finish(server: &Server, name: &str, task: &Task, id: &Value, sink: &Arc<dyn Sink>) -> std::io::Result<()> {
    if task.has("waits-for-nothing") {
        return sink.send(&error(id, -32603, "the task works again"));
    }
    if task.has("broken") {
        return sink.send(&error(id, -32603, "it broke"));
    }
    let told = if task.has("other-result") { "another" } else { name };
    let mut answer = json!({ "_meta": { (RELATED): { "taskId": told }, "own": 1 } });
    let text = task.arguments["says"].as_str().unwrap_or("well");
    answer["content"] = json!([{ "type": "text", "text": text }]);
    if task.arguments["question"].is_object() {
        let mut request = task.arguments["question"].clone();
        let asked = if task.has("question-of-another") { "another" } else { name };
        request["params"]["_meta"] = json!({ (RELATED): { "taskId": asked } });
        let answered = server.question(&json!(format!("question of {name}")), &request, sink)?;
        answer["structuredContent"] = json!({ "answer": answered });
    }
    if task.arguments["ends"] == "failed" && !task.has("fails-well") {
        answer["isError"] = true.into();
    }
    sink.send(&result(id, answer))
}
