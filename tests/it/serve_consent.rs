//! A person at the client is asked before a call is made.

use serde_json::{Value, json};

use crate::serve::{Client, Start, meta};

const DELETE: &str = "return await tools.notes.echo({ text: 'a\\u202eb' })";

/// A client that can show forms, if `elicitation` says so, of a server that asks about every call of `notes`.
fn client(elicitation: Value) -> Client {
    let mut client = Start::new().server("notes", &["well"]).arguments(&["--ask", "notes.*"]).spawn();
    let capabilities = if elicitation.is_null() { json!({}) } else { json!({ "elicitation": elicitation }) };
    let info = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info });
    client.request("initialize", params);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    client
}

/// The next question; other messages are none.
fn question(client: &mut Client) -> Value {
    loop {
        let message = client.receive();
        if message["method"] == "elicitation/create" {
            return message;
        }
    }
}

fn run(client: &mut Client) -> Value {
    client.begin_call("executeTypescript", json!({ "code": DELETE }))
}

/// What becomes of the call when the client answers so.
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
    // The next call of the same is another one.
    run(&mut client);
    question(&mut client);
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
        (json!({ "error": { "code": -32601, "message": "no forms" } }), "nobody can be asked here"),
    ] {
        let structured = outcome(answer.clone());
        let error = &structured["error"];
        assert_eq!(error["toolCode"], "TOOL_DENIED", "{answer}: {structured:#}");
        assert!(error["message"].as_str().unwrap().contains(part), "{answer}: {structured:#}");
    }
}

#[test]
fn a_client_that_cannot_ask_is_told_what_to_do() {
    let refused = |structured: &Value| {
        let message = structured["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("nobody can be asked here; use a client that can ask"), "{structured:#}");
    };
    for elicitation in [Value::Null, json!({ "url": {} })] {
        let mut client = client(elicitation);
        let call = run(&mut client);
        refused(&client.answer(&call)["result"]["structuredContent"]);
    }
    // Without a handshake nobody can be asked in the middle of a request.
    let mut client = Start::new().server("notes", &["well"]).arguments(&["--ask", "notes.*"]).spawn();
    let capabilities = json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } });
    let params =
        json!({ "name": "executeTypescript", "arguments": { "code": DELETE }, "_meta": meta(capabilities) });
    refused(&client.request("tools/call", params)["result"]["structuredContent"]);
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
    // A late yes is none.
    let answer = json!({ "action": "accept", "content": { "approve": true } });
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer }));
    client.ping();
    assert!(!client.notes("notes").contains("executed"), "{}", client.notes("notes"));
    client.end();
}
