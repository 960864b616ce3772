use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::*;
use crate::tools::ToolErrorCode;

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).unwrap()
}

fn read(task: &str) -> Result<TaskState, ToolError> {
    TaskState::read("s", task)
}

#[test]
fn only_a_required_task_is_one() {
    for (execution, expected) in [
        (json!({ "taskSupport": "required" }), true),
        (json!({ "taskSupport": "required", "more": [1] }), true),
        (json!({ "taskSupport": "optional" }), false),
        (json!({ "taskSupport": "forbidden" }), false),
        (json!({ "taskSupport": ["required"] }), false),
        (json!({ "taskSupport": null }), false),
        (json!({}), false),
        (json!("required"), false),
    ] {
        assert_eq!(requires_task(&raw(&execution)), expected, "{execution}");
    }
}

#[test]
fn a_server_that_makes_no_tasks_is_asked_for_none() {
    let names = || HashSet::from(["t".to_owned()]);
    let (none, some) = (TaskTools::new(false), TaskTools::new(true));
    assert!(!none.have_to_be_listed() && some.have_to_be_listed());
    none.set(names(), 0);
    some.set(names(), 0);
    assert!(!none.contains("t") && some.contains("t") && !some.contains("u"));
}

/// Two lists can be requested at once, and answered in any order.
#[test]
fn an_older_list_does_not_replace_a_newer_one() {
    let names = |name: &str| HashSet::from([name.to_owned()]);
    let tools = TaskTools::new(true);
    tools.set(names("new"), 2);
    tools.set(names("old"), 1);
    assert!(tools.contains("new") && !tools.contains("old"));
    tools.set(names("again"), 2);
    assert!(tools.contains("again"));
}

#[test]
fn v_641_tools_that_were_just_listed_for_a_call_are_not_listed_for_the_next_one() {
    let tools = TaskTools::new(true);
    tools.set(HashSet::new(), 0);
    assert!(tools.have_to_be_listed(), "a list for something else may be older than the call");
    tools.note_listed_for_call();
    assert!(!tools.have_to_be_listed());
}

#[test]
fn a_task_is_read() {
    let text = r#"{ "taskId": "a\"b", "status": "working", "statusMessage": "half", "createdAt": 5, "ttl": null,
                    "pollInterval": 250, "resultType": "complete" }"#;
    let expected = TaskState {
        id: "a\"b".to_owned(),
        status: TaskStatus::Working,
        message: Some("half".to_owned()),
        pause: Duration::from_millis(250),
    };
    assert_eq!(read(text).unwrap(), expected);
    let created = TaskState::created("s", &format!(r#"{{ "task": {text}, "_meta": {{}} }}"#)).unwrap();
    assert_eq!(created, Some(expected));
    assert_eq!(TaskState::created("s", r#"{ "content": [] }"#).unwrap(), None);
}

/// SEP-2663 has the fields of the task beside those of the result.
#[test]
fn a_task_of_the_stateless_revision_is_read() {
    let task = |kind: &str| {
        let text = json!({
            "resultType": kind, "taskId": "t", "status": "completed", "ttlMs": null, "pollIntervalMs": 250,
            "result": { "content": [] },
        });
        text.to_string()
    };
    let created = TaskState::created_statelessly("s", &task("task")).unwrap().unwrap();
    assert_eq!((created.id.as_str(), created.pause), ("t", Duration::from_millis(250)));
    assert_eq!(TaskState::created_statelessly("s", &task("complete")).unwrap(), None);
    assert_eq!(TaskState::created_statelessly("s", "{}").unwrap(), None);
    assert!(TaskState::created_statelessly("s", r#"{ "resultType": "task" }"#).is_err());
    let text = task("complete");
    let details: TaskDetails<'_> = serde_json::from_str(&text).unwrap();
    assert_eq!(details.result.map(RawValue::get), Some(r#"{"content":[]}"#));
    assert!(details.error.is_none() && details.input_requests.is_none());
}

#[test]
fn v_628_a_pause_has_bounds_whatever_the_server_asks_for() {
    let pause_of = |interval: &str| {
        read(&format!(r#"{{ "taskId": "t", "status": "working", "pollInterval": {interval} }}"#))
            .unwrap()
            .pause
    };
    for (interval, expected) in [
        ("0", MIN_PAUSE),
        ("-1", MIN_PAUSE),
        ("1e-300", MIN_PAUSE),
        ("-1e300", MIN_PAUSE),
        ("99", MIN_PAUSE),
        ("2500", Duration::from_millis(2_500)),
        ("9223372036854775808", MAX_PAUSE),
        ("1e300", MAX_PAUSE),
        ("null", DEFAULT_PAUSE),
        ("\"5\"", DEFAULT_PAUSE),
        ("[]", DEFAULT_PAUSE),
    ] {
        assert_eq!(pause_of(interval), expected, "{interval}");
    }
}

#[test]
fn v_630_a_task_has_an_id_and_a_status_of_bounded_size() {
    let long = "x".repeat(3 << 20);
    let task = |id: &str, status: &str| json!({ "taskId": id, "status": status }).to_string();
    for (text, part) in [
        (task("", "working"), "has 0 bytes"),
        (task(&long, "working"), "has 3145728 bytes"),
        (task("t", &long), "unknown status `xxx"),
        (task("t", "done"), "unknown status `done`"),
        (json!({ "taskId": 5, "status": "working" }).to_string(), "invalid type"),
        (json!({ "status": "working" }).to_string(), "taskId"),
        ("[]".to_owned(), "invalid"),
    ] {
        let error = read(&text).unwrap_err();
        assert_eq!(error.code, ToolErrorCode::UpstreamProtocol, "{error}");
        assert!(error.message.contains(part) && error.message.len() < 1_000, "{error}");
    }
    let told = json!({ "taskId": "t", "status": "failed", "statusMessage": long }).to_string();
    assert!(read(&told).unwrap().message.unwrap().len() < MESSAGE_BYTES + 100);
    assert!(TaskState::created("s", r#"{ "task": 5 }"#).is_err());
    assert!(TaskState::created("s", "5").is_err());
}

#[test]
fn messages_name_their_task_in_their_meta() {
    let named = |meta: Value| related_task(&json!({ "content": [], "_meta": meta }).to_string());
    assert_eq!(named(json!({ "a": 1, (RELATED_TASK): { "taskId": "t", "b": 2 } })).as_deref(), Some("t"));
    for other in [json!({}), json!(null), json!(5), json!({ (RELATED_TASK): "t" })] {
        assert_eq!(named(other), None);
    }
    assert_eq!(related_task("{}"), None);
    let kept = |meta: Value| without_task(meta.into()).map(|meta| meta.text().to_owned());
    assert_eq!(kept(json!({ (RELATED_TASK): { "taskId": "t" } })), None);
    assert_eq!(kept(json!({ "a": 1, (RELATED_TASK): {} })).as_deref(), Some(r#"{"a":1}"#));
    assert_eq!(kept(json!({ "a": 1 })).as_deref(), Some(r#"{"a":1}"#));
}
