//! Tools that a server runs only as tasks, and servers that make wrong tasks: docs/threats.md, 628 to 634, 641 and
//! 642.

/// Tasks of hostile and of broken servers.
mod threats;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cx::{
    CallProgress, ElicitationAnswer, ElicitationRequest, ErrorCode, Executor, Language, Limits, Script,
};
use serde_json::{Value, json};

use crate::support::chaos::{Stage, impatient};
use crate::support::wait_until;

/// Every transport, with revision 2025-11-25.
const WAYS: [&[&str]; 2] = [&["tasks"], &["http", "tasks"]];

/// The same with the stateless revision.
const STATELESS: [&[&str]; 2] = [&["tasks", "modern"], &["http", "tasks", "modern"]];

fn stage(way: &[&str]) -> Stage {
    Stage::over(way, |server| server)
}

/// A call of the tool that runs only as a task.
fn target(arguments: &Value) -> String {
    format!("tools.faulty.target({arguments})")
}

/// A question of a server in a form that has nothing to fill in.
fn question() -> Value {
    let schema = json!({ "type": "object", "properties": {} });
    json!({ "method": "elicitation/create", "params": { "message": "may I?", "requestedSchema": schema } })
}

/// A script that calls the tool, whose server asks the user before the task ends.
fn asking(mut arguments: Value) -> Script {
    arguments["question"] = question();
    Script::typescript(format!("return (await {}).answer", target(&arguments)))
}

fn accept() -> ElicitationAnswer {
    ElicitationAnswer::Accept(serde_json::Map::new())
}

/// What a script and its calls do within this time beside waiting for a user, also on a busy machine.
const ENOUGH: Duration = Duration::from_secs(10);

/// A stage whose calls have that time, with a server that has started.
async fn stage_for_late_answers(way: &[&str]) -> Stage {
    let stage = Stage::over(way, |server| server.call_timeout(ENOUGH));
    stage.call("tools.faulty.echo({})").await;
    stage
}

/// A script whose user takes longer than a call may, and than the script.
fn answered_late() -> Script {
    let limits = Limits { wall_time: ENOUGH, ..Limits::default() };
    asking(json!({})).limits(limits).elicitor(|request: ElicitationRequest| async move {
        assert_eq!((request.server.as_str(), request.tool.as_deref()), ("faulty", Some("target")));
        tokio::time::sleep(ENOUGH + ENOUGH / 4).await;
        accept()
    })
}

#[tokio::test]
async fn a_tool_that_runs_only_as_a_task_is_called_like_any_other() {
    for way in WAYS {
        let stage = stage(way);
        let script = format!("return await {}", target(&json!({ "polls": 3 })));
        let result = stage.executor.run(&*script).await.unwrap();
        assert_eq!(result.value(), Some(&json!("well")), "{way:?}: {}", result.to_json());
        // One call for whoever counts them, and one task for the server, which is asked until it has ended.
        assert_eq!(result.to_json()["toolCallsMade"], 1, "{way:?}");
        let stats = stage.executor.server_stats();
        let faulty = stats.iter().find(|server| server.name == "faulty").unwrap();
        assert_eq!((faulty.calls_total, faulty.failures_total), (1, 0), "{way:?}");
        for (noted, count) in
            [("executed target", 1), ("tasks/get", 3), ("tasks/result", 1), ("tasks/cancel", 0)]
        {
            assert_eq!(stage.noted(noted), count, "{way:?} {noted}: {}", stage.notes());
        }
        // It is to be kept for as long as the run may last.
        let notes = stage.notes();
        let task = notes.lines().find_map(|line| line.strip_prefix("task ")).unwrap();
        let task: Value = serde_json::from_str(task).unwrap();
        assert!(task["ttl"].as_u64().unwrap() > 1_000, "{task}");
        stage.close().await;
    }
}

/// A recording has the call and nothing of the task.
#[tokio::test]
async fn a_call_that_ran_as_a_task_is_replayed() {
    let stage = stage(WAYS[0]);
    let script = format!("return await {}", target(&json!({ "polls": 2 })));
    let (_result, recording) = stage.executor.record(&*script).await.unwrap();
    stage.close().await;
    let alone = Executor::builder().languages([Language::TypeScript]).build().unwrap();
    let replay = alone.replay(&recording.unwrap()).await.unwrap();
    assert!(replay.difference.is_none(), "{:?}", replay.difference);
    assert_eq!(replay.result.value(), Some(&json!("well")));
}

#[tokio::test]
async fn a_tool_that_may_run_as_a_task_is_called_directly() {
    let stage = stage(WAYS[0]);
    stage.call("tools.faulty.echo({ n: 1 })").await.returned(json!({ "n": 1 }));
    stage.call("tools.faulty.count({})").await.returned(json!({ "count": 1 }));
    assert_eq!(stage.noted("task"), 0, "{}", stage.notes());
    stage.close().await;
}

/// A client must not ask for tasks where the server does not declare them, whatever a tool says.
#[tokio::test]
async fn a_server_that_declares_no_tasks_is_asked_for_none() {
    let stage = stage(&["tasks", "undeclared"]);
    stage.target().await.failed("TOOL_NOT_FOUND", &["requires task augmentation"]);
    assert_eq!(stage.noted("task"), 0, "{}", stage.notes());
    stage.close().await;
}

/// A server that is asked for a task may ignore that.
#[tokio::test]
async fn an_answer_without_a_task_is_the_result() {
    let stage = stage(WAYS[0]);
    stage.call(&target(&json!({ "fault": "no-task" }))).await.returned("at once");
    assert_eq!(stage.noted("tasks/"), 0, "{}", stage.notes());
    stage.close().await;
}

/// Kept lists have only what models and people see.
#[tokio::test]
async fn a_list_that_was_kept_is_no_reason_for_a_wrong_call() {
    let first = Stage::kept_in(tempfile::tempdir().unwrap(), &["tasks"], false);
    first.target().await.returned("well");
    let second = Stage::kept_in(first.close().await, &["tasks"], false);
    second.target().await.returned("well");
    assert_eq!(second.noted("executed target"), 2, "{}", second.notes());
    second.close().await;
}

/// Some servers add tools as soon as they are connected, and say so before they have answered with the first list.
#[tokio::test]
async fn a_tool_that_is_added_late_is_called_as_its_list_says() {
    let first = Stage::kept_in(tempfile::tempdir().unwrap(), &["tasks", "late"], false);
    first.target().await.returned("well");
    let second = Stage::kept_in(first.close().await, &["tasks", "late"], false);
    second.target().await.returned("well");
    assert_eq!(second.noted("executed target"), 2, "{}", second.notes());
    second.close().await;
}

#[tokio::test]
async fn a_task_that_has_failed_is_an_error_with_what_the_server_says() {
    for way in WAYS {
        let stage = stage(way);
        let says = "the paper jams";
        for (arguments, parts) in [
            (json!({ "ends": "failed", "says": says }), &[says][..]),
            (json!({ "ends": "failed", "says": says, "fault": "fails-well" }), &[says][..]),
            (json!({ "ends": "failed", "says": says, "fault": "broken" }), &["it broke", says][..]),
            (json!({ "ends": "completed", "fault": "broken" }), &["it broke"][..]),
            (json!({ "ends": "cancelled", "says": says }), &["has cancelled the task", says][..]),
            (json!({ "ends": "cancelled", "polls": 0 }), &["has cancelled the task"][..]),
        ] {
            stage.call(&target(&arguments)).await.failed("TOOL_ERROR", parts);
        }
        // The server knows that they have ended.
        assert_eq!(stage.noted("tasks/cancel"), 0, "{way:?}: {}", stage.notes());
        stage.close().await;
    }
}

#[tokio::test]
async fn the_question_of_a_task_goes_to_the_user() {
    let one = |way: &'static [&'static str]| async move {
        let stage = stage_for_late_answers(way).await;
        let answer = stage.value(answered_late()).await;
        assert_eq!(answer["result"], json!({ "action": "accept", "content": {} }), "{way:?}: {answer}");
        // Where no user can be asked, the server is told.
        let answer = stage.value(asking(json!({}))).await;
        assert_eq!(answer["error"]["message"], "no user can be asked here", "{way:?}: {answer}");
        stage.close().await;
    };
    futures::future::join_all(WAYS.map(one)).await;
}

#[tokio::test]
async fn the_progress_of_a_task_is_that_of_its_call() {
    let stage = stage(WAYS[0]);
    let heard = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&heard);
    let script = format!("return await {}", target(&json!({ "polls": 3, "fault": "progress" })));
    let script = Script::typescript(script).on_progress(move |report: &CallProgress| {
        assert_eq!(report.tool, "target");
        counted.fetch_add(1, Ordering::SeqCst);
    });
    assert_eq!(stage.value(script).await, "well");
    assert_eq!(heard.load(Ordering::SeqCst), 3);
    stage.close().await;
}

/// The pause that the server asks for is longer than the call may take.
#[tokio::test]
async fn a_task_that_is_said_to_have_changed_is_asked_about_soon() {
    let stage = Stage::over(WAYS[0], |server| server.call_timeout(Duration::from_secs(8)));
    // What is said before the answer has been read is not heard.
    let arguments = json!({ "announced": 50, "gap": 20, "interval": 9_000 });
    stage.call(&target(&arguments)).await.returned("well");
    assert_eq!(stage.noted("tasks/get"), 1, "{}", stage.notes());
    stage.close().await;
}

/// A question about a task has no effects, so it can be asked again.
#[tokio::test]
async fn a_task_outlives_requests_about_it() {
    let stage = Stage::http(&["http", "tasks", "refused"]);
    stage.target().await.returned("well");
    for (noted, count) in [
        ("request POST /mcp tasks/get", 3),
        ("tasks/get", 1),
        ("request POST /mcp tasks/result", 3),
        ("tasks/result", 1),
        ("executed target", 1),
    ] {
        assert_eq!(stage.noted(noted), count, "{noted}: {}", stage.notes());
    }
    stage.close().await;
}

/// The task was made, so that the call must not look like one that can be made again, even if the server says when.
#[tokio::test]
async fn v_642_a_call_whose_task_was_made_counts_although_nothing_more_is_answered() {
    for (variant, status) in [("refused-always", "503"), ("limited-always", "429")] {
        let stage = Stage::http(&["http", "tasks", variant]);
        let script = format!(
            "return await {}.catch((error) => [error.code, error.message, error.retryAfterMs ?? null])",
            target(&json!({}))
        );
        let result = stage.executor.run(&*script).await.unwrap();
        let error = result.value().unwrap();
        assert_eq!((&error[0], &error[2]), (&json!("UPSTREAM_UNAVAILABLE"), &Value::Null), "{error}");
        let message = error[1].as_str().unwrap();
        assert!(message.contains(status) && message.contains("took effect is unknown"), "{message}");
        assert_eq!(result.to_json()["toolCallsMade"], 1, "{variant}: {}", result.to_json());
        assert_eq!(stage.noted("request POST /mcp tasks/get"), 3, "{variant}: {}", stage.notes());
        wait_until(|| stage.noted("tasks/cancel") == 1).await;
        stage.close().await;
    }
}

/// The first request about the task would be nine seconds later, when the call has no time any more.
#[tokio::test]
async fn the_end_of_a_server_ends_the_calls_of_its_tasks() {
    let stage = Stage::stdio_with(&["tasks"], |server| server.call_timeout(Duration::from_secs(8)));
    let arguments = json!({ "polls": 1_000_000, "interval": 9_000 });
    let ending = async {
        wait_until(|| stage.noted("task ") == 1).await;
        // The answer with the task is on its way before this one.
        stage.call("tools.faulty.slow({ ms: 100 })").await.returned("slow");
        let process = stage.processes("started").remove(0);
        Command::new("kill").args(["-9", &process]).status().unwrap();
    };
    let call = target(&arguments);
    let (called, ()) = tokio::join!(stage.call(&call), ending);
    called.failed("UPSTREAM_UNAVAILABLE", &["took effect is unknown"]);
    assert_eq!(stage.noted("tasks/get"), 0, "{}", stage.notes());
    stage.close().await;
}

#[tokio::test]
async fn the_end_of_a_run_cancels_its_tasks() {
    for way in WAYS {
        // Calls have longer than the run.
        let stage = Stage::over(way, |server| server.call_timeout(Duration::from_secs(59)));
        stage.call("tools.faulty.echo({})").await;
        // Long enough for the call to reach the server.
        let limits = Limits { wall_time: Duration::from_secs(6), ..Limits::default() };
        let script = Script::typescript(format!("await {}", target(&json!({ "polls": 1_000_000 }))));
        let result = stage.executor.run(script.limits(limits)).await.unwrap();
        assert_eq!(result.error().unwrap().code, ErrorCode::Timeout, "{way:?}: {}", result.to_json());
        wait_until(|| stage.noted("tasks/cancel") == 1).await;
        stage.close().await;
    }
}

#[tokio::test]
async fn a_call_that_its_script_ends_cancels_its_task() {
    for way in WAYS.into_iter().chain(STATELESS) {
        let stage = stage(way);
        stage.call("tools.faulty.echo({})").await;
        let arguments = json!({ "polls": 1_000_000, "interval": 0 });
        let source = format!(
            "const ending = new AbortController();
             setTimeout(() => ending.abort('ended'), 4000);
             const ends = [{{ timeoutMs: 4000 }}, {{ signal: ending.signal }}];
             const calls = ends.map((end) => tools.faulty.target({arguments}, end));
             return await Promise.all(calls.map((call) => call.catch((error) => error.code ?? error)))"
        );
        assert_eq!(stage.value(&*source).await, json!(["TOOL_TIMEOUT", "ended"]), "{way:?}");
        wait_until(|| stage.noted("tasks/cancel") == 2).await;
        stage.close().await;
    }
}

/// The server says which task it has made when nobody waits for it any more. Requests that make tasks are not cancelled
/// themselves, also not those of the stateless revision, of which the server could do without.
#[tokio::test]
async fn a_task_that_is_made_after_its_call_has_ended_is_cancelled() {
    for way in WAYS.into_iter().chain(STATELESS) {
        let stage = stage(way);
        stage.call("tools.faulty.echo({})").await;
        let call = target(&json!({ "late": 500, "polls": 1_000_000 }));
        let run = stage.executor.start(&*format!("await {call}"));
        wait_until(|| stage.noted("task ") == 1).await;
        run.cancel();
        assert_eq!(run.await.unwrap().error().unwrap().code, ErrorCode::Cancelled, "{way:?}");
        wait_until(|| stage.noted("tasks/cancel") == 1).await;
        assert_eq!(stage.noted("cancelled"), 0, "{way:?}: {}", stage.notes());
        stage.close().await;
    }
}

/// A server of the stateless revision refuses a call that does not declare tasks, if it cannot do without.
#[tokio::test]
async fn a_tool_of_the_stateless_revision_that_needs_tasks_is_called_like_any_other() {
    for way in STATELESS {
        let stage = stage(way);
        let script = format!("return await {}", target(&json!({ "polls": 3 })));
        let result = stage.executor.run(&*script).await.unwrap();
        assert_eq!(result.value(), Some(&json!("well")), "{way:?}: {}", result.to_json());
        assert_eq!(result.to_json()["toolCallsMade"], 1, "{way:?}");
        for (noted, count) in [("refused", 1), ("tasks/get", 3), ("tasks/update", 0), ("tasks/cancel", 0)] {
            assert_eq!(stage.noted(noted), count, "{way:?} {noted}: {}", stage.notes());
        }
        stage.call(&target(&json!({ "fault": "no-task" }))).await.returned("at once");
        // A task that has ended when it is made is not waited for, whatever pause its server wants.
        stage.call(&target(&json!({ "polls": 0, "interval": 9_000 }))).await.returned("well");
        // Where no task is needed, none is offered.
        stage.call("tools.faulty.echo({ n: 1 })").await.returned(json!({ "n": 1 }));
        assert_eq!(stage.noted("executed echo"), 1, "{way:?}: {}", stage.notes());
        stage.close().await;
    }
}

#[tokio::test]
async fn the_question_of_a_task_of_the_stateless_revision_is_answered_once() {
    let one = |way: &'static [&'static str]| async move {
        let stage = stage_for_late_answers(way).await;
        let answer = stage.value(answered_late()).await;
        assert_eq!(answer, json!({ "action": "accept", "content": {} }), "{way:?}");
        assert_eq!(stage.noted("tasks/update"), 1, "{way:?}: {}", stage.notes());
        // Its server lists the question once more before it reads the answer.
        let slow = asking(json!({ "fault": "reads-late" })).elicitor(|_request| async { accept() });
        assert_eq!(stage.value(slow).await, json!({ "action": "accept", "content": {} }), "{way:?}");
        assert_eq!(stage.noted("tasks/update"), 2, "{way:?}: {}", stage.notes());
        // Where no user can be asked, the task is of no use.
        let called = stage.call(&target(&json!({ "question": question() }))).await;
        called.failed("TOOL_DENIED", &["no user can be asked here"]);
        wait_until(|| stage.noted("tasks/cancel") == 1).await;
        stage.close().await;
    };
    futures::future::join_all(STATELESS.map(one)).await;
}

#[tokio::test]
async fn a_task_of_the_stateless_revision_that_fails_is_an_error() {
    for way in STATELESS {
        let stage = stage(way);
        for (arguments, code, part) in [
            (json!({ "ends": "failed", "says": "the paper jams" }), "TOOL_ERROR", "it broke: the paper jams"),
            (json!({ "ends": "cancelled", "says": "no paper" }), "TOOL_ERROR", "has cancelled the task"),
            (json!({ "fault": "no-result" }), "UPSTREAM_PROTOCOL", "without a result"),
            (json!({ "fault": "other-task" }), "UPSTREAM_PROTOCOL", "answers about another"),
        ] {
            stage.call(&target(&arguments)).await.failed(code, &[part]);
        }
        stage.close().await;
    }
}

#[tokio::test]
async fn v_634_a_task_that_asks_again_and_again_is_cancelled() {
    let stage = Stage::stdio_with(STATELESS[0], |server| server.call_timeout(Duration::from_secs(59)));
    let arguments = json!({ "fault": "asks-again", "question": question() });
    let source = format!("try {{ await {} }} catch (error) {{ return error.message }}", target(&arguments));
    let script = Script::typescript(source).elicitor(|_request| async { ElicitationAnswer::Decline });
    let message = stage.value(script).await;
    assert!(message.as_str().unwrap().contains("more than 10 times"), "{message}");
    assert_eq!(stage.noted("tasks/update"), 10, "{}", stage.notes());
    wait_until(|| stage.noted("tasks/cancel") == 1).await;
    stage.close().await;
}
