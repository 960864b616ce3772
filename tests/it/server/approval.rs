//! A person at the client is asked before a call is made.

use serde_json::{Value, json};

use crate::support::serve::{Client, Start, WATCHDOG, meta, text};

const DELETE: &str = "return await tools.notes.echo({ text: 'a\\u202eb' })";

/// A client that can show forms, if `elicitation` says so. Its server asks about every call of `notes`.
fn client(elicitation: Value) -> Client {
    let capabilities = if elicitation.is_null() { json!({}) } else { json!({ "elicitation": elicitation }) };
    let start = Start::new().server("notes", &["well"]).arguments(&["--ask", "notes.*"]);
    start.spawn().shaken_with(capabilities)
}

/// The next question; no other message may come.
fn question(client: &mut Client) -> Value {
    client.receive_method("elicitation/create")
}

fn run(client: &mut Client) -> Value {
    client.begin_call("executeTypescript", json!({ "code": DELETE }))
}

/// The outcome of the call when the client gives this answer.
fn outcome(answer: Value) -> Value {
    let mut client = client(json!({}));
    let call = run(&mut client);
    let asked = question(&mut client);
    let mut message = json!({ "jsonrpc": "2.0", "id": asked["id"] });
    for (name, value) in answer.as_object().unwrap() {
        message[name] = value.clone();
    }
    client.send(&message);
    client.answer(&call)["result"]["structuredContent"].clone()
}

#[test]
fn a_person_sees_the_call_and_approves_it() {
    let mut client = client(json!({ "form": {} }));
    let call = run(&mut client);
    let asked = question(&mut client);
    let message = asked["params"]["message"].as_str().unwrap();
    for part in ["notes.echo", "`notes.*`", "\"text\": \"a\\u202eb\""] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let schema = &asked["params"]["requestedSchema"];
    assert_eq!(schema["required"], json!(["approve"]));
    assert_eq!(schema["properties"]["approve"]["default"], false);
    let answer = json!({ "action": "accept", "content": { "approve": true } });
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer }));
    let structured = &client.answer(&call)["result"]["structuredContent"];
    assert_eq!(structured["success"], true, "{structured:#}");
    assert_eq!(client.notes("notes").matches("executed echo").count(), 1);
    // The same call once more is another call.
    run(&mut client);
    question(&mut client);
    client.end();
}

/// A tool that the client is shown directly needs approval like a call of a script.
#[test]
fn a_direct_call_is_made_once_it_is_approved() {
    let start = Start::new().server("notes", &["well"]).config("direct", json!(["notes.echo"]));
    let capabilities = json!({ "elicitation": { "form": {} } });
    let mut client = start.arguments(&["--ask", "notes.*"]).spawn().shaken_with(capabilities);
    let mut answered = |action: Value| {
        let parameters = json!({ "name": "notes__echo", "arguments": { "text": "x" } });
        let call = client.begin("tools/call", parameters);
        let asked = question(&mut client);
        let message = asked["params"]["message"].as_str().unwrap();
        assert!(message.contains("notes.echo") && message.contains("\"text\": \"x\""), "{message}");
        client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": action }));
        client.answer(&call)["result"].clone()
    };
    let refused = answered(json!({ "action": "decline" }));
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(text(&refused).contains("a person was asked and refused"), "{refused}");
    let made = answered(json!({ "action": "accept", "content": { "approve": true } }));
    assert_eq!(made["structuredContent"], json!({ "text": "x" }), "{made}");
    assert_eq!(client.notes("notes").matches("executed echo").count(), 1);
    client.end();
}

#[test]
fn whatever_is_not_a_clear_yes_is_a_no() {
    for (answer, part) in [
        (json!({ "result": { "action": "decline" } }), "a person was asked and refused"),
        (json!({ "result": { "action": "cancel" } }), "a person was asked and refused"),
        (json!({ "result": { "action": "accept", "content": {} } }), "a person was asked and refused"),
        (json!({ "result": { "action": "accept", "content": { "approve": "true" } } }), "refused"),
        (
            json!({ "result": { "action": "accept", "content": { "approve": false, "reason": "not today" } } }),
            "not today",
        ),
        (json!({ "error": { "code": -32601, "message": "no forms" } }), "no user can be asked here"),
    ] {
        let structured = outcome(answer.clone());
        let error = &structured["error"];
        assert_eq!(error["toolCode"], "TOOL_DENIED", "{answer}: {structured:#}");
        assert!(error["message"].as_str().unwrap().contains(part), "{answer}: {structured:#}");
    }
}

/// Threat 394. After an invalid answer the call does not wait for another answer.
#[test]
fn v_394_an_answer_that_cannot_be_read_is_none() {
    let yes = json!({ "action": "accept", "content": { "approve": true } });
    for answer in [
        json!({ "result": null }),
        json!({ "error": null }),
        json!({ "result": 7 }),
        json!({ "result": { "action": "perhaps" } }),
        json!({ "result": yes, "error": { "code": 1, "message": "both" } }),
    ] {
        let error = outcome(answer.clone())["error"].clone();
        assert_eq!(error["toolCode"], "TOOL_DENIED", "{answer}: {error:#}");
        assert!(error["message"].as_str().unwrap().contains("no user can be asked"), "{answer}: {error:#}");
    }
}

#[test]
fn a_client_that_cannot_ask_is_told_what_to_do() {
    let refused = |structured: &Value| {
        let message = structured["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("no user can be asked here; use a client that can ask"), "{structured:#}");
    };
    for elicitation in [Value::Null, json!({ "url": {} })] {
        let mut client = client(elicitation);
        let call = run(&mut client);
        refused(&client.answer(&call)["result"]["structuredContent"]);
    }
    // A client without a handshake sends its capabilities with each request.
    for capabilities in [json!({}), json!({ "elicitation": { "url": {} } })] {
        let mut client = stateless(&[]);
        refused(&client.request("tools/call", call(&capabilities, json!({})))["result"]["structuredContent"]);
    }
}

// --- clients without a handshake: the question is a result, and the same call comes again with the answer

fn stateless(more: &[&str]) -> Client {
    let arguments = [&["--ask", "notes.*"], more].concat();
    Start::new().server("notes", &["well"]).arguments(&arguments).spawn()
}

fn forms() -> Value {
    json!({ "elicitation": { "form": {} } })
}

/// The call, with the fields that a client adds when it repeats it.
fn call(capabilities: &Value, more: Value) -> Value {
    call_of(DELETE, capabilities, more)
}

fn call_of(code: &str, capabilities: &Value, more: Value) -> Value {
    let meta = meta(json!({ "io.modelcontextprotocol/clientCapabilities": capabilities }));
    let mut params = json!({ "name": "executeTypescript", "arguments": { "code": code }, "_meta": meta });
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    params
}

/// The answer of a client that shows forms.
fn answered(asked: &Value, answer: Value) -> Value {
    json!({ "requestState": asked["requestState"], "inputResponses": { "approval": answer } })
}

fn yes() -> Value {
    json!({ "action": "accept", "content": { "approve": true } })
}

#[test]
fn without_a_handshake_the_question_is_a_result() {
    let mut client = stateless(&[]);
    let asked = client.request("tools/call", call(&forms(), json!({})))["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked:#}");
    let question = &asked["inputRequests"]["approval"];
    assert_eq!(question["method"], "elicitation/create", "{asked:#}");
    assert!(question["params"]["message"].as_str().unwrap().contains("notes.echo"), "{asked:#}");
    assert!(!client.notes("notes").contains("executed"));
    // Repeated without an answer, the call asks again, under another id.
    let again =
        client.request("tools/call", call(&forms(), json!({ "requestState": asked["requestState"] })));
    let again = &again["result"];
    assert_eq!(again["inputRequests"], asked["inputRequests"], "{again:#}");
    let late = client.request("tools/call", call(&forms(), answered(&asked, yes())));
    assert!(text(&late["result"]).contains("no run waits for this answer any more"), "{late:#}");

    let done = client.request("tools/call", call(&forms(), answered(again, yes())));
    assert_eq!(done["result"]["structuredContent"]["success"], true, "{done:#}");
    assert_eq!(client.notes("notes").matches("executed echo").count(), 1);
    // The request state can be used once.
    let twice = client.request("tools/call", call(&forms(), answered(again, yes())));
    assert_eq!(twice["result"]["structuredContent"]["error"]["code"], "INVALID_ARGUMENTS", "{twice:#}");
    assert_eq!(client.notes("notes").matches("executed echo").count(), 1);
    client.end();
}

#[test]
fn each_question_of_a_script_is_one_more_result() {
    let mut client = stateless(&[]);
    let code = "const some = [];
        for (const text of ['a', 'b', 'c']) {
            try { some.push(await tools.notes.echo({ text })) } catch (error) { some.push(error.code) }
        }
        return some.length + ' ' + some[1]";
    let mut result = client.request("tools/call", call_of(code, &forms(), json!({})));
    for (text, answer) in [("a", yes()), ("b", json!({ "action": "decline" })), ("c", yes())] {
        let asked = result["result"].clone();
        let message = asked["inputRequests"]["approval"]["params"]["message"].as_str().unwrap();
        assert!(message.contains(&format!("\"text\": \"{text}\"")), "{message}");
        result = client.request("tools/call", call_of(code, &forms(), answered(&asked, answer)));
    }
    assert_eq!(result["result"]["structuredContent"]["value"], "3 TOOL_DENIED", "{result:#}");
    assert_eq!(client.notes("notes").matches("executed echo").count(), 2);
    client.end();
}

#[test]
fn what_comes_back_is_no_yes_unless_it_is_one() {
    for answer in [
        Value::Null,
        json!(true),
        json!({ "action": "accept" }),
        json!({ "action": "accept", "content": { "approve": "yes" } }),
        json!({ "action": "approve", "content": { "approve": true } }),
    ] {
        let mut client = stateless(&[]);
        let asked = client.request("tools/call", call(&forms(), json!({})))["result"].clone();
        let result = client.request("tools/call", call(&forms(), answered(&asked, answer.clone())));
        let structured = &result["result"]["structuredContent"];
        assert_eq!(structured["error"]["toolCode"], "TOOL_DENIED", "{answer}: {result:#}");
        assert!(!client.notes("notes").contains("executed"), "{answer}");
    }
}

/// A model cannot approve by writing arguments, and an answer holds for one call.
#[test]
fn an_answer_is_for_the_call_that_was_asked_about() {
    let mut client = stateless(&[]);
    let asked = client.request("tools/call", call(&forms(), json!({})))["result"].clone();
    let other = "return await tools.notes.echo({ text: 'other' })";
    let result = client.request("tools/call", call_of(other, &forms(), answered(&asked, yes())));
    assert!(text(&result["result"]).contains("belongs to a call with other arguments"), "{result:#}");
    let changed = format!("{}-changed", asked["requestState"].as_str().unwrap());
    for state in ["", "0123456789abcdef0123456789abcdef", &changed, &"x".repeat(100_000)] {
        let forged = json!({ "requestState": state, "inputResponses": { "approval": yes() } });
        let result = client.request("tools/call", call(&forms(), forged));
        assert_eq!(result["error"]["code"], -32602, "{result:#}");
        let message = result["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("`requestState` is not of this server, or was changed"), "{message}");
    }
    // An answer without a question makes a new call, which needs approval.
    let unasked = json!({ "inputResponses": { "approval": yes() } });
    let result = client.request("tools/call", call(&forms(), unasked));
    assert_eq!(result["result"]["resultType"], "input_required", "{result:#}");
    let mut arguments = call(&forms(), json!({}));
    arguments["arguments"]["inputResponses"] = json!({ "approval": yes() });
    let result = client.request("tools/call", arguments);
    assert_eq!(result["result"]["structuredContent"]["error"]["code"], "INVALID_ARGUMENTS", "{result:#}");
    assert!(!client.notes("notes").contains("executed"));
    // The first one still waits.
    let done = client.request("tools/call", call(&forms(), answered(&asked, yes())));
    assert_eq!(done["result"]["structuredContent"]["success"], true, "{done:#}");
    client.end();
}

#[test]
fn suspended_runs_are_bounded() {
    let mut client = stateless(&["--max-runs", "100"]);
    for _ in 0..64 {
        let asked = client.request("tools/call", call(&forms(), json!({})));
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked:#}");
    }
    let refused = client.request("tools/call", call(&forms(), json!({})));
    assert!(text(&refused["result"]).contains("no user can be asked here"), "{refused:#}");
    // They end with the client, at once.
    client.end();
}

/// A suspended run is not kept for ever for a client that does not come back.
#[test]
fn a_run_ends_whose_client_does_not_come_back() {
    let limits = json!({ "answerTimeoutMs": 500, "timeoutMs": 600_000 });
    let start = Start::new().server("notes", &["well"]).config("limits", limits);
    let mut client = start.arguments(&["--ask", "notes.*"]).spawn();
    let code =
        "await call_tool('notes', 'echo', {}); for (;;) await new Promise(done => setTimeout(done, 100))";
    let asked = client.request("tools/call", call_of(code, &forms(), json!({})))["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked:#}");
    // Ten seconds after the time for an answer, and not at the run's own limit, which is ten minutes after its start.
    client.wait_for_health(|health| health["connectionPool"]["active"] == 0);
    let late = client.request("tools/call", call_of(code, &forms(), answered(&asked, yes())));
    assert!(text(&late["result"]).contains("no run waits"), "{late:#}");
    assert!(!client.notes("notes").contains("executed"));
    client.end();
}

#[test]
fn a_task_asks_while_it_goes_on() {
    let mut client = stateless(&[]);
    let capabilities = json!({
        "elicitation": { "form": {} }, "extensions": { "io.modelcontextprotocol/tasks": {} },
    });
    let code = "await new Promise(done => setTimeout(done, 4000));
        const some = [];
        for (const text of ['a', 'b']) some.push((await call_tool('notes', 'echo', { text })).ok);
        return some";
    let made = client.request("tools/call", call_of(code, &capabilities, json!({})));
    let task = made["result"]["taskId"].clone();
    assert!(task.is_string(), "{made:#}");
    let about = |more: Value| {
        let mut params = json!({ "taskId": task });
        params["_meta"] = meta(json!({ "io.modelcontextprotocol/clientCapabilities": capabilities }));
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        params
    };
    let mut answers = vec![("approval-1", yes()), ("approval-2", json!({ "action": "decline" }))].into_iter();
    let end = std::time::Instant::now() + WATCHDOG;
    loop {
        assert!(std::time::Instant::now() < end);
        let state = client.request("tasks/get", about(json!({})))["result"].clone();
        match state["status"].as_str().unwrap() {
            "input_required" => {
                let (key, answer) = answers.next().unwrap();
                assert_eq!(state["inputRequests"][key]["method"], "elicitation/create", "{state:#}");
                let mut responses = json!({});
                responses[key] = answer;
                client.request("tasks/update", about(json!({ "inputResponses": responses })));
            }
            "completed" => {
                let value = &state["result"]["structuredContent"]["value"];
                assert_eq!(value, &json!([true, false]), "{state:#}");
                break;
            }
            "working" => std::thread::sleep(std::time::Duration::from_millis(50)),
            _ => panic!("{state:#}"),
        }
    }
    client.end();
}

#[test]
fn a_question_is_taken_back_when_the_run_ends() {
    let mut client = client(json!({}));
    let call = run(&mut client);
    let asked = question(&mut client);
    client.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": call } }),
    );
    loop {
        let message = client.receive();
        if message["method"] == "notifications/cancelled" {
            assert_eq!(message["params"]["requestId"], asked["id"]);
            break;
        }
    }
    // A late approval does not count.
    let answer = json!({ "action": "accept", "content": { "approve": true } });
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer }));
    client.ping();
    assert!(!client.notes("notes").contains("executed"), "{}", client.notes("notes"));
    client.end();
}
