//! Tasks of the stateless revision (SEP-2663). The arguments of `target` are those of `tasks`. Of the faults there are
//! some of those, `no-result`, `asks-again`: a task that has another question whenever it is asked about, and
//! `reads-late`: one that lists its question once more after it was answered.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::server::{Server, Sink, error, result, result_of, text_result};
use crate::tasks::Task;

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Whether the client declares with a request that it supports tasks.
fn supports_tasks(parameters: &Value) -> bool {
    parameters["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"].get(EXTENSION).is_some()
}

fn refuse(id: &Value) -> Value {
    let mut refusal = error(id, -32021, "a capability is required");
    refusal["error"]["data"] = json!({ "requiredCapabilities": { "extensions": { (EXTENSION): {} } } });
    refusal
}

/// Makes a task of a call of `target`, for a client that supports tasks.
pub(crate) fn create(
    server: &Server,
    id: &Value,
    parameters: &Value,
    sink: &Arc<dyn Sink>,
) -> std::io::Result<()> {
    if !supports_tasks(parameters) {
        server.options.note("refused");
        return sink.send(&refuse(id));
    }
    let task = Task::new(parameters);
    server.options.note(&format!("task {}", task.arguments));
    if task.has("no-task") {
        return sink.send(&text_result(id, "at once"));
    }
    let name = format!("task-{id}");
    let (state, late) = (task.state(&name), task.late());
    server.tasks.0.lock().unwrap().insert(name, task);
    std::thread::sleep(late);
    sink.send(&result_of("task", id, state))
}

/// Answers a request about a task.
pub(crate) fn answer(
    server: &Server,
    method: &str,
    id: &Value,
    parameters: &Value,
    sink: &Arc<dyn Sink>,
) -> std::io::Result<()> {
    let name = parameters["taskId"].as_str().unwrap_or_default();
    server.options.note(&format!("{method} {name}"));
    if !supports_tasks(parameters) {
        return sink.send(&refuse(id));
    }
    let mut tasks = server.tasks.0.lock().unwrap();
    let Some(task) = tasks.get_mut(name) else {
        return sink.send(&error(id, -32602, "there is no such task"));
    };
    if method != "tasks/get" {
        if method == "tasks/update" {
            let answers = parameters["inputResponses"].clone();
            if task.has("reads-late") {
                task.unread = Some(answers);
            } else {
                task.answers = answers;
            }
        }
        return sink.send(&result(id, json!({})));
    }
    task.asked += 1;
    let told = details(task, name);
    if let Some(answers) = task.unread.take() {
        task.answers = answers;
    }
    sink.send(&result(id, told))
}

/// A task with what its status adds.
fn details(task: &Task, name: &str) -> Value {
    let told = if task.has("other-task") { "another" } else { name };
    let mut state = task.state(told);
    if task.has("asks-again") {
        let key = format!("question-{}", task.asked);
        state["status"] = "input_required".into();
        state["inputRequests"] = json!({ (key): task.arguments["question"] });
        return state;
    }
    match task.status() {
        "input_required" => state["inputRequests"] = json!({ "question": task.arguments["question"] }),
        "failed" => state["error"] = json!({ "code": -32603, "message": "it broke" }),
        "completed" if task.has("no-result") => {}
        "completed" => {
            let mut answer = json!({ "content": [{ "type": "text", "text": "well" }] });
            if let Some(given) = task.answers.get("question") {
                answer["structuredContent"] = json!({ "answer": given });
            }
            state["result"] = answer;
        }
        _ => {}
    }
    state
}
