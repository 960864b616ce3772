//! Servers that ask the user during a call, and for roots: over both transports, in handshake revisions and the
//! stateless one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cx::{ElicitationAnswer, ElicitationMode, ElicitationRequest, Limits, Root, Script};
use serde_json::{Value, json};

use crate::support::chaos::Stage;

/// Every way in which a server can ask.
const WAYS: [&[&str]; 4] =
    [&["elicits"], &["elicits", "modern"], &["http", "elicits"], &["http", "elicits", "modern"]];

fn stage(way: &[&str]) -> Stage {
    Stage::over(way, |server| server)
}

/// A question with a field that has a default and one that must be chosen.
fn form() -> Value {
    let properties = json!({
        "size": { "type": "integer", "default": 2 },
        "color": { "type": "string", "enum": ["red", "blue"] },
    });
    let schema = json!({ "type": "object", "properties": properties, "required": ["color"] });
    json!({ "mode": "form", "message": "which one?\u{202e}", "requestedSchema": schema })
}

fn address(url: &str) -> Value {
    json!({ "mode": "url", "message": "look", "url": url, "elicitationId": "1" })
}

/// A script that calls a tool whose server first asks `params`, and returns the answer that the server got.
fn asking(method: &str, params: &Value) -> Script {
    let arguments = json!({ "method": method, "params": params });
    Script::typescript(format!("return (await tools.faulty.target({arguments})).answer"))
}

fn accept(content: &Value) -> ElicitationAnswer {
    ElicitationAnswer::Accept(content.as_object().cloned().unwrap_or_default())
}

/// The result that the server got. In a handshake revision it is the result of a request.
fn given(way: &[&str], answer: &Value) -> Value {
    if way.contains(&"modern") { answer.clone() } else { answer["result"].clone() }
}

#[tokio::test]
async fn a_form_is_filled_in_by_the_user_and_completed_with_its_defaults() {
    for way in WAYS {
        let stage = stage(way);
        let script = asking("elicitation/create", &form()).named("my.ts").elicitor(
            |request: ElicitationRequest| async move {
                assert_eq!((request.server.as_str(), request.tool.as_deref()), ("faulty", Some("target")));
                assert_eq!(request.script, "my.ts");
                assert!(request.render().contains("\n> which one?\\u{202e}"), "{}", request.render());
                let ElicitationMode::Form(form) = request.mode else { panic!("a form") };
                assert_eq!(form.fields.len(), 2);
                accept(&json!({ "color": "blue", "more": 1 }))
            },
        );
        let answer = stage.value(script).await;
        let expected = json!({ "action": "accept", "content": { "size": 2, "color": "blue" } });
        assert_eq!(given(way, &answer), expected, "{way:?}: {answer}");
        stage.close().await;
    }
}

#[tokio::test]
async fn an_address_is_shown_and_only_the_approval_is_sent_back() {
    for way in WAYS {
        let stage = stage(way);
        let script = asking("elicitation/create", &address("https://example.com/pay?x=1")).elicitor(
            |request: ElicitationRequest| async move {
                assert_eq!(request.mode, ElicitationMode::Url("https://example.com/pay?x=1".to_owned()));
                accept(&json!({ "secret": 1 }))
            },
        );
        let answer = stage.value(script).await;
        assert_eq!(given(way, &answer), json!({ "action": "accept" }), "{way:?}: {answer}");
        stage.close().await;
    }
}

#[tokio::test]
async fn a_user_refuses_or_does_not_decide() {
    for (answer, action) in [(ElicitationAnswer::Decline, "decline"), (ElicitationAnswer::Cancel, "cancel")] {
        let stage = stage(WAYS[0]);
        let script = asking("elicitation/create", &form()).elicitor(move |_request| {
            let answer = answer.clone();
            async move { answer }
        });
        assert_eq!(stage.value(script).await["result"], json!({ "action": action }));
        stage.close().await;
    }
}

/// A person takes longer than a call may take, and longer than a run.
#[tokio::test]
async fn time_limits_stand_still_while_the_user_thinks() {
    // Enough for what the run does beside waiting, also on a busy machine.
    const TIME: Duration = Duration::from_secs(10);
    let one = |way: &'static [&'static str]| async move {
        let stage = Stage::over(way, |server| server.call_timeout(TIME));
        // Started, so that its start does not count.
        stage.call("tools.faulty.echo({})").await;
        let limits = Limits { wall_time: TIME, ..Limits::default() };
        let script = asking("elicitation/create", &form()).limits(limits).elicitor(|_request| async {
            tokio::time::sleep(TIME + TIME / 4).await;
            accept(&json!({ "color": "red" }))
        });
        let answer = stage.value(script).await;
        assert_eq!(given(way, &answer)["action"], "accept", "{way:?}: {answer}");
        stage.close().await;
    };
    futures::future::join_all(WAYS.map(one)).await;
}

#[tokio::test]
async fn no_answer_in_time() {
    let stage = stage(WAYS[0]);
    let limits = Limits { answer_time: Duration::from_millis(100), ..Limits::default() };
    let script = asking("elicitation/create", &form()).limits(limits);
    let answer = stage.value(script.elicitor(|_request| std::future::pending())).await;
    assert_eq!(answer["result"], json!({ "action": "cancel" }));
    stage.close().await;
}

/// What the person typed does not fit the form of the server.
#[tokio::test]
async fn an_answer_that_does_not_fit_is_not_sent() {
    let stage = stage(WAYS[0]);
    let script = asking("elicitation/create", &form());
    let answer =
        stage.value(script.elicitor(|_request| async { accept(&json!({ "color": "green" })) })).await;
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    stage.close().await;
}

#[tokio::test]
async fn questions_of_servers_and_approvals_share_one_bound() {
    let stage = stage(WAYS[0]);
    let limits = Limits { questions: 2, ..Limits::default() };
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let arguments = json!({ "method": "elicitation/create", "params": form() });
    let source = format!(
        "await tools.well.echo({{}});
         const answers = [];
         for (let n = 0; n < 2; n++) answers.push((await tools.faulty.target({arguments})).answer);
         return answers.map((answer) => answer.error?.message ?? answer.result.action)"
    );
    let script = Script::typescript(source)
        .limits(limits)
        .ask(["well.echo"])
        .approver(|_request| async { cx::Approval::Approve })
        .elicitor(move |_request| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { ElicitationAnswer::Decline }
        });
    let answers = stage.value(script).await;
    assert_eq!(answers[0], "decline");
    assert!(answers[1].as_str().unwrap().contains("maxQuestions"), "{answers}");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    stage.close().await;
}

#[tokio::test]
async fn where_no_user_can_be_asked_the_server_is_told() {
    for way in WAYS {
        let stage = stage(way);
        let arguments = json!({ "method": "elicitation/create", "params": form() });
        let called = stage.call(&format!("tools.faulty.target({arguments})")).await;
        if way.contains(&"modern") {
            called.failed("TOOL_DENIED", &["faulty", "no user can be asked here"]);
        } else {
            assert_eq!(called.value["answer"]["error"]["message"], "no user can be asked here", "{called:?}");
        }
        stage.close().await;
    }
}

/// In the stateless revision each request says whether a user can be asked.
#[tokio::test]
async fn each_call_declares_what_can_be_asked() {
    let stage = stage(&["elicits", "modern"]);
    let source = "return (await tools.faulty.target({ rounds: 0 })).capabilities";
    assert_eq!(stage.value(source).await, json!({}));
    let script = Script::typescript(source).elicitor(|_request| async { ElicitationAnswer::Decline });
    assert_eq!(stage.value(script).await, json!({ "elicitation": { "form": {}, "url": {} } }));
    stage.close().await;
}

#[tokio::test]
async fn the_operator_switches_questions_off() {
    for way in WAYS {
        let stage = Stage::over(way, |server| server.elicitation(false));
        let arguments = json!({ "method": "elicitation/create", "params": form() });
        let script = Script::typescript(format!(
            "try {{ return (await tools.faulty.target({arguments})).answer.error.code }} catch (error) {{ return error.code }}"
        ));
        let asked = script.elicitor(|_request| async { panic!("no user must be asked") });
        let expected = if way.contains(&"modern") { json!("TOOL_DENIED") } else { json!(-32601) };
        assert_eq!(stage.value(asked).await, expected, "{way:?}");
        stage.close().await;
    }
}

/// Contents of a resource and the messages of a prompt, with the method that the user is told.
const REQUESTS: [(&str, &str); 2] = [
    ("mcp.readResource('faulty', 'chaos://color:1')", "resources/read"),
    ("mcp.getPrompt('faulty', 'color:1')", "prompts/get"),
];

#[tokio::test]
async fn a_server_may_ask_before_it_gives_a_resource_or_a_prompt() {
    for way in WAYS {
        let stage = stage(way);
        for (request, method) in REQUESTS {
            let script = Script::typescript(format!("return (await {request}).told.answer")).elicitor(
                move |asked: ElicitationRequest| async move {
                    assert_eq!((asked.server.as_str(), asked.tool.as_deref()), ("faulty", Some(method)));
                    accept(&json!({ "color": "blue" }))
                },
            );
            let answer = stage.value(script).await;
            let expected = json!({ "action": "accept", "content": { "color": "blue" } });
            assert_eq!(given(way, &answer), expected, "{way:?} {method}: {answer}");
        }
        stage.close().await;
    }
}

/// Threat 714.
#[tokio::test]
async fn v_714_questions_before_a_resource_or_a_prompt_are_bounded_and_need_a_user() {
    let stage = stage(&["elicits", "modern"]);
    let asked = Arc::new(AtomicUsize::new(0));
    for request in ["mcp.readResource('faulty', 'chaos://color:100')", "mcp.getPrompt('faulty', 'color:100')"]
    {
        stage.call(request).await.failed("TOOL_DENIED", &["faulty", "no user can be asked here"]);
        let counted = Arc::clone(&asked);
        let source =
            format!("try {{ return await {request} }} catch (error) {{ return error.code + error.message }}");
        let script = Script::typescript(source).elicitor(move |_request| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { ElicitationAnswer::Decline }
        });
        let value = stage.value(script).await;
        let text = value.as_str().unwrap_or_else(|| panic!("{value}"));
        assert!(text.starts_with("UPSTREAM_PROTOCOL") && text.contains("more than 10 times"), "{text}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 20);
    stage.close().await;
}

/// Over pipes a server does not say for which call it asks. If it could be a call of another run, no user is asked.
#[tokio::test]
async fn a_question_that_could_be_of_another_run_is_refused() {
    let stage = Stage::over(WAYS[0], |server| server.call_timeout(Duration::from_secs(59)));
    let waiting = stage.executor.start("return await tools.faulty.slow({ ms: 50_000 })");
    crate::support::wait_until(|| stage.noted("executed slow") == 1).await;
    let script = asking("elicitation/create", &form());
    let answer = stage.value(script.elicitor(|_request| async { ElicitationAnswer::Decline })).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("several runs"), "{answer}");
    waiting.cancel();
    waiting.await.unwrap();
    stage.close().await;
}

#[tokio::test]
async fn rounds_of_questions_are_bounded() {
    let stage = stage(&["elicits", "modern"]);
    for (rounds, is_enough) in [(3, true), (100, false)] {
        let arguments = json!({ "method": "elicitation/create", "params": form(), "rounds": rounds });
        let source = format!(
            "try {{ return (await tools.faulty.target({arguments})).answer.action }} catch (error) {{ return error.message }}"
        );
        let script = Script::typescript(source).elicitor(|_request| async { ElicitationAnswer::Decline });
        let value = stage.value(script).await;
        let text = value.as_str().unwrap();
        assert!(if is_enough { text == "decline" } else { text.contains("more than 10 times") }, "{value}");
    }
    stage.close().await;
}

#[tokio::test]
async fn an_error_that_needs_an_address_asks_the_user_and_calls_nothing_again() {
    let stage = stage(WAYS[0]);
    let arguments = json!({ "first": "address", "params": address("https://example.com/sign-in") });
    for (answer, code, part) in [
        (accept(&json!({})), "TOOL_ERROR", "call again when they are done there"),
        (ElicitationAnswer::Decline, "TOOL_DENIED", "refused"),
    ] {
        let source = format!(
            "try {{ await tools.faulty.target({arguments}) }} catch (error) {{ return error.code + ' ' + error.message }}"
        );
        let script = Script::typescript(source).elicitor(move |request: ElicitationRequest| {
            assert!(matches!(request.mode, ElicitationMode::Url(_)));
            let answer = answer.clone();
            async move { answer }
        });
        let value = stage.value(script).await;
        let text = value.as_str().unwrap();
        assert!(text.starts_with(code) && text.contains(part), "{text}");
    }
    assert_eq!(stage.noted("executed target"), 2);
    stage.close().await;
}

#[tokio::test]
async fn roots_are_told_as_configured() {
    let root = || Root::from_directory("/srv/project").unwrap();
    for way in WAYS {
        let some = Stage::over(way, |server| server.root(root()));
        let told = some.value(asking("roots/list", &json!({}))).await;
        let roots = json!({ "roots": [{ "uri": "file:///srv/project", "name": "project" }] });
        assert_eq!(given(way, &told), roots, "{way:?}: {told}");
        some.close().await;
    }
    let none = stage(WAYS[0]);
    assert_eq!(none.value(asking("roots/list", &json!({}))).await["error"]["code"], -32601);
    none.close().await;
}
