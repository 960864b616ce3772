//! A question of an upstream server reaches the person at the client, marked with the server's name.

use serde_json::{Value, json};

use crate::support::serve::{Client, Start, meta};

fn code(params: &Value) -> String {
    let arguments = json!({ "method": "elicitation/create", "params": params });
    format!("return (await tools.notes.target({arguments})).answer")
}

fn form() -> Value {
    let properties = json!({
        "name": { "type": "string", "title": "Your name", "default": "Ada" },
        "size": { "type": "string", "oneOf": [{ "const": "s", "title": "Small" }, { "const": "l", "title": "Large" }] },
    });
    let schema = json!({ "type": "object", "properties": properties, "required": ["size"] });
    json!({ "mode": "form", "message": "who are you?\nThe server `bank` asks.", "requestedSchema": schema })
}

fn address() -> Value {
    json!({ "mode": "url", "message": "pay here", "url": "https://example.com/pay", "elicitationId": "1" })
}

fn client(elicitation: &Value) -> Client {
    let start = Start::new().server("notes", &["elicits"]);
    start.spawn().shaken_with(json!({ "elicitation": elicitation }))
}

fn question(client: &mut Client) -> Value {
    client.receive_method("elicitation/create")
}

#[test]
fn a_form_reaches_the_person_with_the_name_of_its_server() {
    let mut client = client(&json!({ "form": {} }));
    let call = client.begin_call("executeTypescript", json!({ "code": code(&form()) }));
    let asked = question(&mut client);
    let message = asked["params"]["message"].as_str().unwrap();
    assert!(message.starts_with("The server `notes` asks in a call of `target`."), "{message}");
    // Text of the server cannot be mistaken for the mark.
    assert!(message.ends_with("\n> who are you?\n> The server `bank` asks."), "{message}");
    let schema = &asked["params"]["requestedSchema"];
    assert_eq!(schema["properties"], form()["requestedSchema"]["properties"], "{schema:#}");
    assert_eq!(schema["required"], json!(["size"]));
    let answer = json!({ "action": "accept", "content": { "size": "l" } });
    client.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": answer }));
    let structured = &client.answer(&call)["result"]["structuredContent"];
    let given = json!({ "action": "accept", "content": { "name": "Ada", "size": "l" } });
    assert_eq!(structured["value"]["result"], given, "{structured:#}");
    client.end();
}

#[test]
fn an_address_reaches_a_client_that_opens_addresses() {
    let mut client = client(&json!({ "url": {} }));
    let call = client.begin_call("executeTypescript", json!({ "code": code(&address()) }));
    let asked = question(&mut client)["params"].clone();
    assert_eq!(
        (&asked["mode"], &asked["url"]),
        (&json!("url"), &json!("https://example.com/pay")),
        "{asked:#}"
    );
    assert!(!asked["elicitationId"].as_str().unwrap().is_empty(), "{asked:#}");
    client.end();
    drop(call);
}

#[test]
fn a_client_is_asked_only_what_it_can_show() {
    for (elicitation, params) in [(json!({ "form": {} }), address()), (json!({ "url": {} }), form())] {
        let mut client = client(&elicitation);
        let call = client.begin_call("executeTypescript", json!({ "code": code(&params) }));
        let structured = &client.answer(&call)["result"]["structuredContent"];
        assert_eq!(structured["value"]["error"]["message"], "no user can be asked here", "{structured:#}");
        client.end();
    }
}

#[test]
fn a_question_is_withdrawn_when_its_call_has_no_waiter() {
    let mut client = client(&json!({ "form": {} }));
    let asks = code(&form()).replace("return ", "");
    let code = format!(
        "const call = (async () => {asks})(); call.catch(() => 0);
         while (!(await state.get('asked'))) await new Promise((done) => setTimeout(done, 20)); return 'over'"
    );
    let call = client.begin_call("executeTypescript", json!({ "code": code }));
    let asked = question(&mut client);
    client.begin_call("executeTypescript", json!({ "code": "await state.set('asked', true)" }));
    // In either order.
    let (mut withdrawn, mut answer) = (Value::Null, Value::Null);
    while withdrawn.is_null() || answer.is_null() {
        let message = client.receive();
        if message["method"] == "notifications/cancelled" {
            withdrawn = message["params"]["requestId"].clone();
        } else if message["id"] == call {
            answer = message["result"]["structuredContent"]["value"].clone();
        }
    }
    assert_eq!((withdrawn, answer), (asked["id"].clone(), json!("over")));
    client.end();
}

/// The client has no handshake, the upstream server has one: the question is a result for the client and a request of
/// the server.
#[test]
fn without_a_handshake_the_question_is_a_result() {
    for mode in [&["elicits"][..], &["elicits", "modern"]] {
        let mut client = Start::new().server("notes", mode).spawn();
        let capabilities = json!({ "elicitation": { "form": {} } });
        let meta = meta(json!({ "io.modelcontextprotocol/clientCapabilities": capabilities }));
        let call =
            json!({ "name": "executeTypescript", "arguments": { "code": code(&form()) }, "_meta": meta });
        let asked = client.request("tools/call", call.clone())["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{asked:#}");
        let (key, request) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
        assert!(request["params"]["message"].as_str().unwrap().contains("`notes`"), "{asked:#}");
        let mut again = call;
        again["requestState"] = asked["requestState"].clone();
        // Answers to what was not asked are ignored (SEP-2322).
        let extra = json!({ "action": "accept", "content": { "size": "xl" } });
        let given = json!({ "action": "accept", "content": { "size": "s" } });
        again["inputResponses"] = json!({ "extra": extra, key: given, "roots": { "roots": [] } });
        let done = client.request("tools/call", again);
        let value = &done["result"]["structuredContent"]["value"];
        let given = if mode.len() == 1 { &value["result"] } else { value };
        assert_eq!(given["content"], json!({ "name": "Ada", "size": "s" }), "{done:#}");
        client.end();
    }
}

#[test]
fn the_configuration_switches_questions_off() {
    let mut client =
        Start::new().server("notes", &["elicits"]).config("elicitation", json!(false)).spawn().shaken();
    let call = client.begin_call("executeTypescript", json!({ "code": code(&form()) }));
    let structured = &client.answer(&call)["result"]["structuredContent"];
    assert_eq!(structured["value"]["error"]["code"], -32601, "{structured:#}");
    client.end();
}
