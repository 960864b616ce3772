//! Subscriptions to resources: `resources/subscribe` of the handshake revisions, `subscriptions/listen` of the
//! stateless one, and `notifications/resources/updated` of both.

use std::collections::VecDeque;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::serve::{Client, Start, WATCHDOG, meta, save_script};
use crate::support::serve_http::{Server, Session};

const APP: &str = "ui://clock/view";
const CODE: &str = "skill://cx/sum/script.py";
const DESCRIPTION: &str = "skill://cx/sum/SKILL.md";

fn subscribe(client: &mut Client, uri: &str) -> Value {
    client.request("resources/subscribe", json!({ "uri": uri }))
}

fn read(client: &mut Client, uri: &str) -> String {
    let answer = client.request("resources/read", json!({ "uri": uri }));
    answer["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

fn message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

/// The notifications that a client gets, some of them before the answer to a request.
#[derive(Default)]
struct Told {
    waiting: VecDeque<String>,
}

impl Told {
    fn add(&mut self, said: &Value) {
        if said["method"] == "notifications/resources/updated" {
            self.waiting.push_back(said["params"]["uri"].as_str().unwrap().to_owned());
        }
    }

    /// The address in the next notification of a change.
    fn next(&mut self, client: &mut Client) -> String {
        client.take_seen().iter().for_each(|said| self.add(said));
        loop {
            if let Some(uri) = self.waiting.pop_front() {
                return uri;
            }
            let said = client.receive();
            self.add(&said);
        }
    }
}

#[test]
fn a_run_that_goes_on_is_followed() {
    let start = Start::new().server("well", &["well"]).arguments(&["--yield-after", "0s"]);
    let mut client = start.spawn();
    let offered = client.initialize("2025-11-25");
    assert_eq!(offered["result"]["capabilities"]["resources"], json!({ "subscribe": true }), "{offered}");
    client.run("return await tools.well.echo({})");
    let code = "const until = async (key) => {
            while (!(await state.get(key))) await new Promise((done) => setTimeout(done, 20));
        };
        console.log('one'); await until('go'); console.log('two'); await until('end'); return 42";
    let first = client.call("executeTypescript", json!({ "code": code, "yieldAfterMs": 6_000 }));
    let id = first["structuredContent"]["runId"].as_str().unwrap().to_owned();
    let (output, value) = (format!("cx://runs/{id}/output"), format!("cx://runs/{id}/value"));
    for uri in [&output, &value] {
        assert_eq!(subscribe(&mut client, uri)["result"], json!({}));
    }
    let mut told = Told::default();
    client.run("await state.set('go', true)");
    assert_eq!(told.next(&mut client), output);
    assert_eq!(read(&mut client, &output), "one\ntwo");
    client.run("await state.set('end', true)");
    let mut at_end = [told.next(&mut client), told.next(&mut client)];
    at_end.sort();
    assert_eq!(at_end, [output.clone(), value.clone()]);
    // Nobody has waited for the run, and everything can be read.
    assert_eq!((read(&mut client, &output), read(&mut client, &value)), ("one\ntwo".into(), "42".into()));
    let rest = client.call("wait", json!({ "runId": id }));
    assert_eq!(rest["structuredContent"]["value"], 42, "{rest}");
    // What has ended does not change.
    assert_eq!(subscribe(&mut client, &value)["result"], json!({}));
    client.end();
}

#[test]
fn a_run_that_has_ended_makes_room_for_another_resource() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let mut uris = Vec::new();
    for number in 0..32 {
        save_script(directory.path(), &format!("s{number}.ts"), "return 1");
        uris.extend(["script.ts", "SKILL.md"].map(|file| format!("skill://cx/s{number}/{file}")));
    }
    let start = Start::new().within(directory).arguments(&["--yield-after", "0s"]);
    let mut client = start.spawn().shaken();
    let code = "while (!(await state.get('end'))) await new Promise((done) => setTimeout(done, 20))";
    let arguments = json!({ "code": code, "yieldAfterMs": 100, "timeoutMs": 120_000 });
    let first = client.call("executeTypescript", arguments);
    let id = first["structuredContent"]["runId"].as_str().unwrap().to_owned();
    let value = format!("cx://runs/{id}/value");
    for uri in uris[1..].iter().chain([&value]) {
        assert_eq!(subscribe(&mut client, uri)["result"], json!({}), "{uri}");
    }
    let refused = subscribe(&mut client, &uris[0]);
    assert!(message(&refused).contains("64 resources at once"), "{refused}");
    client.run("await state.set('end', true)");
    let start = Instant::now();
    while subscribe(&mut client, &uris[0])["result"] != json!({}) {
        assert!(start.elapsed() < WATCHDOG, "the run has ended, and nothing changes any more");
        std::thread::sleep(Duration::from_millis(50));
    }
    client.end();
}

/// Threat 667.
#[test]
fn v_667_nobody_subscribes_to_what_another_client_runs() {
    let start = Start::new().server("well", &["well"]).arguments(&["--yield-after", "0s"]);
    let server = Server::start(start);
    let (session, other) = (server.session(), server.session());
    session.run("return await tools.well.echo({})");
    let code = "console.log('secret'); await tools.well.slow({ ms: 20000 })";
    let call = json!({ "name": "executeTypescript", "arguments": { "code": code, "yieldAfterMs": 100 } });
    let begun = session.begin(1, "tools/call", call).result();
    let uri = format!("cx://runs/{}/output", begun["structuredContent"]["runId"].as_str().unwrap());
    let subscribe = |session: &Session<'_>, uri: &str| {
        session.begin(2, "resources/subscribe", json!({ "uri": uri })).message()
    };
    assert_eq!(subscribe(&session, &uri)["result"], json!({}));
    for uri in [uri.as_str(), "cx://runs/unknown/output"] {
        let refused = subscribe(&other, uri);
        assert!(message(&refused).contains("no record of this run is kept"), "{refused}");
    }
    // A client without a session cannot name a run at all.
    let filter = json!({ "notifications": { "resourceSubscriptions": [uri] } });
    let mut listening = server.stateless("subscriptions/listen", filter);
    let acknowledged = listening.next().unwrap();
    assert_eq!(acknowledged["params"]["notifications"], json!({}), "{acknowledged}");
    assert_eq!(session.delete(), 202);
}

/// Threat 668.
#[test]
fn v_668_subscriptions_and_their_addresses_are_bounded() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let mut uris = Vec::new();
    for number in 0..33 {
        save_script(directory.path(), &format!("s{number}.ts"), "return 1");
        uris.extend(["script.ts", "SKILL.md"].map(|file| format!("skill://cx/s{number}/{file}")));
    }
    let mut client = Start::new().within(Arc::clone(&directory)).spawn().shaken();
    for uri in &uris[..64] {
        assert_eq!(subscribe(&mut client, uri)["result"], json!({}), "{uri}");
    }
    let refused = subscribe(&mut client, &uris[64]);
    assert!(message(&refused).contains("64 resources at once"), "{refused}");
    // The same one again takes nothing, and one that ends makes room.
    assert_eq!(subscribe(&mut client, &uris[0])["result"], json!({}));
    let ended = client.request("resources/unsubscribe", json!({ "uri": uris[0] }));
    assert_eq!(ended["result"], json!({}));
    let refused = subscribe(&mut client, &format!("cx://runs/{}/output", "x".repeat(100_000)));
    assert!(message(&refused).contains("100017 bytes"), "{}", &message(&refused)[..100]);
    let refused = subscribe(&mut client, "test://none");
    assert!(message(&refused).contains("expected `cx://guide`"), "{refused}");
    assert_eq!(subscribe(&mut client, "cx://guide")["result"], json!({}));
    let taken = subscribe(&mut client, &uris[64]);
    assert_eq!(taken["result"], json!({}), "what is refused, and what never changes, takes nothing");
    client.end();
    // The same for a client that listens.
    let mut client = Start::new().within(directory).spawn();
    let filter = json!({ "resourceSubscriptions": uris[..65] });
    let params = json!({ "notifications": filter, "_meta": meta(json!({})) });
    let id = client.begin("subscriptions/listen", params);
    let refused = client.answer(&id);
    assert!(message(&refused).contains("64 resources at once"), "{refused}");
    client.end();
}

#[test]
fn a_saved_script_that_changes_is_told_of() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let save = |text: &str| {
        let source = format!("\"\"\"{text}\"\"\"\nsum(inputs['numbers'])\n");
        save_script(directory.path(), "sum.py", &source);
    };
    save("Adds numbers.");
    let mut client = Start::new().within(Arc::clone(&directory)).spawn().shaken();
    for uri in [CODE, DESCRIPTION, "cx://guide"] {
        assert_eq!(subscribe(&mut client, uri)["result"], json!({}), "{uri}");
    }
    let unknown = subscribe(&mut client, "skill://cx/other/script.py");
    assert!(message(&unknown).contains("no skill has this file"), "{unknown}");
    // Not subscribed to any longer; once more changes nothing.
    for _ in 0..2 {
        let ended = client.request("resources/unsubscribe", json!({ "uri": DESCRIPTION }));
        assert_eq!(ended["result"], json!({}));
    }
    let mut told = Told::default();
    save("Adds many numbers.");
    assert_eq!(told.next(&mut client), CODE);
    assert!(read(&mut client, CODE).contains("Adds many numbers."));
    std::fs::remove_file(directory.path().join("cx/scripts/sum.py")).unwrap();
    assert_eq!(told.next(&mut client), CODE);
    client.ping();
    client.take_seen().iter().for_each(|said| told.add(said));
    assert!(!told.waiting.iter().any(|uri| uri == DESCRIPTION), "{:?}", told.waiting);
    client.end();
}

#[test]
fn a_client_without_a_handshake_is_told_if_it_listens() {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let save = |number: u32| {
        save_script(directory.path(), "sum.py", &format!("sum(inputs['numbers']) + {number}\n"));
    };
    save(0);
    let mut client = Start::new().within(Arc::clone(&directory)).spawn();
    let wanted = [CODE, "skill://cx/none/script.py", "cx://guide", CODE];
    let params = json!({ "notifications": { "resourceSubscriptions": wanted }, "_meta": meta(json!({})) });
    let id = client.begin("subscriptions/listen", params);
    let acknowledged = client.receive();
    // The guide does not change.
    assert_eq!(
        acknowledged["params"]["notifications"],
        json!({ "resourceSubscriptions": [CODE, CODE] }),
        "{acknowledged}"
    );
    // Following begins after the acknowledgment.
    let start = Instant::now();
    let told = (1..)
        .find_map(|number| {
            assert!(start.elapsed() < WATCHDOG);
            save(number);
            client.receive_within(Duration::from_secs(5))
        })
        .unwrap();
    assert_eq!(told["method"], "notifications/resources/updated", "{told}");
    assert_eq!(told["params"]["uri"], CODE);
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], id);
    client.end();
}

/// A client that shows user interfaces, after it has seen the tools of the server.
fn with_interfaces(start: Start) -> Client {
    let mut client = start.spawn();
    let settings = json!({ "mimeTypes": ["text/html;profile=mcp-app"] });
    let capabilities = json!({ "extensions": { "io.modelcontextprotocol/ui": settings } });
    client.initialize_with("2025-11-25", capabilities);
    let start = Instant::now();
    while !client.request("tools/list", json!({})).to_string().contains("apps__tick") {
        assert!(start.elapsed() < WATCHDOG);
        std::thread::sleep(Duration::from_millis(50));
    }
    client
}

fn wait_for_note(client: &Client, note: &str) {
    let start = Instant::now();
    while !client.notes("apps").contains(note) {
        assert!(start.elapsed() < WATCHDOG, "{}", client.notes("apps"));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn changes_that_a_server_announces_are_passed_on() {
    for (revision, begun, ended) in [
        ("handshake", "resources/subscribe \"ui://clock/view\"", "resources/unsubscribe \"ui://clock/view\""),
        ("modern", "listening {\"resourceSubscriptions\":[\"ui://clock/view\"]}", "cancelled "),
    ] {
        let mut client = with_interfaces(Start::new().server("apps", &["apps", revision]));
        assert_eq!(subscribe(&mut client, APP)["result"], json!({}), "{revision}");
        wait_for_note(&client, begun);
        let unknown = subscribe(&mut client, "ui://other");
        assert!(message(&unknown).contains("no tool that is shown names"), "{unknown}");
        let mut told = Told::default();
        let tick = || json!({ "name": "apps__tick", "arguments": {} });
        client.request("tools/call", tick());
        assert_eq!(told.next(&mut client), APP);
        // If its process dies, the server is started again, and has perhaps another interface.
        let process = client.noted_processes("apps", "started").pop().unwrap();
        assert!(Command::new("kill").args(["-9", &process]).status().unwrap().success());
        let start = Instant::now();
        while client.notes("apps").matches(begun).count() < 2 {
            assert!(start.elapsed() < WATCHDOG, "{}", client.notes("apps"));
            std::thread::sleep(Duration::from_millis(20));
        }
        client.request("tools/call", tick());
        assert_eq!(told.next(&mut client), APP);
        let answer = client.request("resources/unsubscribe", json!({ "uri": APP }));
        assert_eq!(answer["result"], json!({}));
        wait_for_note(&client, ended);
        client.end();
    }
}

/// Threat 712. Clients that subscribe do not open the circuit of the server for calls.
#[test]
fn v_712_a_server_that_answers_no_subscription_is_called_all_the_same() {
    for (variant, part) in
        [("silent", "has not answered a subscription"), ("nonsense", "an answer that cannot be read")]
    {
        let mut client = with_interfaces(Start::new().server("apps", &["apps", variant]));
        let begun: Vec<Value> =
            (0..8).map(|_| client.begin("resources/subscribe", json!({ "uri": APP }))).collect();
        for id in &begun {
            let refused = client.answer(id);
            assert!(message(&refused).contains(part), "{variant}: {refused}");
        }
        let called = client.request("tools/call", json!({ "name": "apps__tick", "arguments": {} }));
        assert_eq!(called["result"]["content"][0]["text"], "odd", "{variant}: {called}");
        client.end();
    }
}

#[test]
fn a_server_that_announces_nothing_and_one_that_may_not_be_read_are_refused() {
    for (variant, config, part) in [
        ("mute", json!([]), "does not announce changes"),
        ("one", json!(["apps.resources/read"]), "may not call"),
        ("one", json!(["apps.resources/subscribe"]), "may not call"),
    ] {
        let start = Start::new().server("apps", &["apps", variant]).config("deny", config);
        let mut client = with_interfaces(start);
        let refused = subscribe(&mut client, APP);
        assert!(message(&refused).contains(part), "{refused}");
        assert!(!client.notes("apps").contains("resources/subscribe"), "{}", client.notes("apps"));
        client.end();
    }
}

#[test]
fn a_method_that_a_revision_does_not_have_is_an_error_that_says_what_it_has() {
    let mut client = Client::plain();
    let refused = client.request("subscriptions/listen", json!({ "notifications": {} }));
    assert_eq!(refused["error"]["code"], -32601);
    assert!(message(&refused).contains("use `resources/subscribe`"), "{refused}");
    let refused = client.request("tasks/result", json!({ "taskId": "x" }));
    assert_eq!(refused["error"]["code"], -32601);
    assert!(message(&refused).contains("`tasks/get`"), "{refused}");
    // One that it has.
    let refused = client.request("resources/subscribe", json!({ "uri": 1 }));
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    client.end();
    let mut client = Start::new().spawn();
    let params = json!({ "uri": "cx://guide", "_meta": meta(json!({})) });
    let refused = client.request("resources/subscribe", params);
    assert_eq!(refused["error"]["code"], -32601);
    assert!(message(&refused).contains("`resourceSubscriptions`"), "{refused}");
    client.end();
    // Over HTTP in a session.
    let server = Server::plain();
    let session = server.session();
    let refused = session.begin(1, "subscriptions/listen", json!({ "notifications": {} })).message();
    assert!(message(&refused).contains("use `resources/subscribe`"), "{refused}");
}
