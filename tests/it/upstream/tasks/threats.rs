//! Tasks of hostile and of broken servers.

use super::*;

/// The server announces a change whenever its tools were listed.
#[tokio::test]
async fn v_641_announcements_without_end_do_not_list_the_tools_for_each_call() {
    let stage = Stage::stdio(&["tasks", "restless"]);
    let call = target(&json!({ "fault": "no-task" }));
    let source = format!("for (let n = 0; n < 100; n++) await {call}; return 'done'");
    assert_eq!(stage.value(&*source).await, "done");
    assert!(stage.noted("list") < 100, "{}", stage.notes());
    stage.close().await;
}

/// The server asks for a pause of nothing, or of almost for ever.
#[tokio::test]
async fn v_628_tasks_are_asked_about_at_a_bounded_pace() {
    let stage = Stage::over(WAYS[0], impatient);
    for interval in [0, -5] {
        let arguments = json!({ "interval": interval, "says": "done" });
        stage.call(&target(&arguments)).await.returned("done");
    }
    // One that never ends is asked about some thirty times in the time of its call.
    let endless = json!({ "interval": 0, "polls": 1_000_000 });
    stage.call(&target(&endless)).await.failed("TOOL_TIMEOUT", &[]);
    // What was asked before is noted by then.
    wait_until(|| stage.noted("tasks/cancel") == 1).await;
    let asked = stage.noted("tasks/get");
    assert!(asked < 120, "it was asked about {asked} times");
    // The call is over before the pause is.
    let forever = json!({ "interval": 9_223_372_036_854_775_808_u64 });
    stage.call(&target(&forever)).await.failed("TOOL_TIMEOUT", &["whether the call took effect is unknown"]);
    assert_eq!(stage.noted("tasks/get"), asked, "{}", stage.notes());
    stage.close().await;
}

/// The server says without end that the task has changed. It is asked no faster for that.
#[tokio::test]
async fn v_628_a_flood_of_announcements_is_no_flood_of_requests() {
    let stage = Stage::over(WAYS[0], impatient);
    let arguments = json!({ "announced": 20_000, "polls": 1_000_000, "interval": 9_000 });
    stage
        .beside(async {
            stage.call(&target(&arguments)).await.failed("TOOL_TIMEOUT", &[]);
        })
        .await;
    // Between these there is time for a request and its answer.
    let steady = json!({ "announced": 280, "gap": 5, "polls": 1_000_000, "interval": 9_000 });
    stage.call(&target(&steady)).await.failed("TOOL_TIMEOUT", &[]);
    assert!(stage.noted("tasks/get") < 100, "{}", stage.notes());
    stage.close().await;
}

#[tokio::test]
async fn v_629_a_task_without_an_end_has_the_time_of_its_call() {
    for way in WAYS {
        let stage = Stage::over(way, impatient);
        stage
            .beside(async {
                let called = stage.call(&target(&json!({ "polls": 1_000_000, "interval": 0 }))).await;
                called.failed("TOOL_TIMEOUT", &["whether the call took effect is unknown"]);
                wait_until(|| stage.noted("tasks/cancel") == 1).await;
                // Nothing asks about it any more, and the connection stays.
                stage.call("tools.faulty.echo({ n: 1 })").await.returned(json!({ "n": 1 }));
            })
            .await;
        assert_eq!(stage.noted("initialize"), 1, "{way:?}: {}", stage.notes());
        stage.close().await;
    }
}

#[tokio::test]
async fn v_630_a_task_that_is_none_ends_its_call() {
    for way in WAYS {
        let stage = stage(way);
        for (arguments, part) in [
            (json!({ "id": 3 << 20 }), "the id of its task has 3145728 bytes"),
            (json!({ "id": "" }), "the id of its task has 0 bytes"),
            (json!({ "fault": "unknown-status" }), "unknown status `dreaming`"),
            (json!({ "fault": "lost" }), "the task has expired"),
        ] {
            stage.call(&target(&arguments)).await.failed("UPSTREAM_PROTOCOL", &[part]);
        }
        stage.call("tools.faulty.echo({ n: 1 })").await.returned(json!({ "n": 1 }));
        stage.close().await;
    }
}

#[tokio::test]
async fn v_631_what_is_said_of_another_task_is_not_of_this_one() {
    for way in WAYS {
        let stage = stage(way);
        for (fault, part) in
            [("other-task", "answers about another"), ("other-result", "the result is that of another task")]
        {
            let called = stage.call(&target(&json!({ "fault": fault }))).await;
            called.failed("UPSTREAM_PROTOCOL", &[part]);
        }
        stage.close().await;
    }
}

/// The questions of one of them would go to the user of the other.
#[tokio::test]
async fn v_632_two_calls_have_two_tasks() {
    let stage = stage(WAYS[0]);
    let same = target(&json!({ "id": "same", "polls": 4 }));
    let source = format!(
        "const settled = await Promise.allSettled([{same}, {same}]);
         return settled.map((one) => one.value ?? one.reason.code).sort()"
    );
    assert_eq!(stage.value(&*source).await, json!(["UPSTREAM_PROTOCOL", "well"]));
    // The id can be used again.
    stage.call(&target(&json!({ "id": "same" }))).await.returned("well");
    stage.close().await;
}

/// Over pipes a question does not say for which call it is, but for which task.
#[tokio::test]
async fn v_633_the_question_of_a_task_goes_to_no_other_run() {
    let stage = stage(WAYS[0]);
    let limits = Limits { wall_time: Duration::from_secs(100), ..Limits::default() };
    let other = Script::typescript("return await tools.faulty.slow({ ms: 50_000 })")
        .limits(limits)
        .elicitor(|_request| async { panic!("the user of another run must not be asked") });
    let waiting = stage.executor.start(other);
    wait_until(|| stage.noted("executed slow") == 1).await;
    let answer = stage.value(asking(json!({})).elicitor(|_request| async { accept() })).await;
    assert_eq!(answer["result"]["action"], "accept", "{answer}");
    let unknown = asking(json!({ "fault": "question-of-another" }));
    let answer = stage.value(unknown.elicitor(|_request| async { panic!("it is of no task") })).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("no call is in flight"), "{answer}");
    waiting.cancel();
    assert_eq!(waiting.await.unwrap().error().unwrap().code, ErrorCode::Cancelled);
    stage.close().await;
}

/// A status that goes back and forth: a task that waits for input is asked for its result once, and that is its end.
#[tokio::test]
async fn v_634_a_task_that_only_seems_to_wait_has_ended() {
    for way in WAYS {
        let stage = stage(way);
        let called = stage.call(&target(&json!({ "fault": "waits-for-nothing" }))).await;
        called.failed("TOOL_ERROR", &["the task works again"]);
        assert_eq!(stage.noted("tasks/result"), 1, "{way:?}: {}", stage.notes());
        stage.close().await;
    }
}

/// A server that does not answer that tasks are cancelled is told of a bounded number at once.
#[tokio::test]
async fn v_634_cancelled_tasks_of_a_silent_server_are_bounded() {
    let stage = Stage::stdio_with(&["tasks"], |server| server.call_timeout(Duration::from_secs(59)));
    let call = target(&json!({ "polls": 1_000_000, "interval": 9_000, "fault": "hang-cancel" }));
    let source = format!("await Promise.all(Array.from({{ length: 40 }}, () => {call}))");
    let runs = [stage.executor.start(&*source), stage.executor.start(&*source)];
    wait_until(|| stage.noted("task ") == 80).await;
    for run in &runs {
        run.cancel();
    }
    for run in runs {
        assert_eq!(run.await.unwrap().error().unwrap().code, ErrorCode::Cancelled);
    }
    wait_until(|| stage.noted("tasks/cancel") == 64).await;
    stage.call("tools.faulty.echo({ n: 1 })").await.returned(json!({ "n": 1 }));
    assert_eq!(stage.noted("tasks/cancel"), 64);
    stage.close().await;
}
