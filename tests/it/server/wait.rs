//! Runs that go on after their call was answered, and the progress that scripts report.

use serde_json::{Value, json};

use crate::support::serve::{Client, Start, WATCHDOG, meta};
use crate::support::serve_http::Server;

/// Prints, calls the server `well`, waits for another run, prints again, and returns.
const LONG: &str = "console.log('one'); await tools.well.slow({ ms: 1 });
    while (!(await state.get('go'))) await new Promise((done) => setTimeout(done, 20));
    console.log('two'); return 42";

fn start() -> Start {
    Start::new().server("well", &["well"]).arguments(&["--yield-after", "0s"])
}

fn begin(client: &mut Client, code: &str, yield_after: u64) -> Value {
    client.call("executeTypescript", json!({ "code": code, "yieldAfterMs": yield_after }))
}

fn wait(client: &mut Client, id: &Value, timeout: u64) -> Value {
    client.call("wait", json!({ "runId": id, "timeoutMs": timeout }))
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[test]
fn a_long_run_answers_and_goes_on() {
    let mut client = start().spawn().shaken();
    client.run("return await tools.well.echo({})");
    let first = begin(&mut client, LONG, 3_000);
    let answer = &first["structuredContent"];
    let id = answer["runId"].clone();
    assert_eq!(*answer, json!({ "running": true, "runId": id, "output": "one" }));
    assert!(text(&first).starts_with("one\n[running] wait({\"runId\": "), "{first}");
    // What it has printed so far can be read, and its value is not there yet.
    let uri = format!("cx://runs/{}/output", id.as_str().unwrap());
    let early = client.request("resources/read", json!({ "uri": uri }));
    assert_eq!(early["result"]["contents"][0]["text"], "one", "{early}");
    let early = client.request("resources/read", json!({ "uri": uri.replace("output", "value") }));
    assert!(early["error"]["message"].as_str().unwrap().contains("the run goes on"), "{early}");
    // A wait that is too short, one that is cancelled, and the rest.
    let short = wait(&mut client, &id, 1);
    assert_eq!(short["structuredContent"], json!({ "running": true, "runId": id }));
    let cancelled = client.begin_call("wait", json!({ "runId": id, "timeoutMs": 60_000 }));
    client.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": cancelled } }),
    );
    client.ping();
    client.run("await state.set('go', true)");
    let rest = wait(&mut client, &id, 60_000);
    let answer = &rest["structuredContent"];
    assert_eq!(
        (&answer["value"], &answer["output"], &answer["runId"]),
        (&json!(42), &json!("two"), &id),
        "{rest}"
    );
    assert_eq!(client.notes("well").matches("executed slow").count(), 1);
    // The record has everything, and the run can be waited for once.
    let read = client.request("resources/read", json!({ "uri": uri }));
    assert_eq!(read["result"]["contents"][0]["text"], "one\ntwo");
    let code = format!("return (await mcp.run({id})).value");
    assert_eq!(client.run(&code)["value"], 42);
    let again = wait(&mut client, &id, 1);
    assert_eq!(again["structuredContent"]["error"]["code"], "RUN_NOT_FOUND", "{again}");
    client.end();
}

#[test]
fn a_short_run_does_not_yield_and_nothing_does_where_it_is_off() {
    let mut client = start().spawn().shaken();
    assert_eq!(begin(&mut client, "return 1", 5_000)["structuredContent"]["value"], 1);
    let never = begin(&mut client, "await tools.well.slow({ ms: 500 }); return 2", 0);
    assert_eq!(never["structuredContent"]["value"], 2);
    for arguments in
        [json!({}), json!({ "runId": 1 }), json!({ "runId": "x", "timeoutMs": -1 }), json!({ "id": "x" })]
    {
        let refused = client.call("wait", arguments);
        assert_eq!(refused["structuredContent"]["error"]["code"], "INVALID_ARGUMENTS", "{refused}");
    }
    client.end();
    let mut off = Client::plain();
    let list = off.request("tools/list", json!({})).to_string();
    assert!(!list.contains("\"wait\"") && !list.contains("yieldAfterMs"), "{list}");
    let refused = begin(&mut off, "return 1", 100);
    assert_eq!(refused["structuredContent"]["error"]["code"], "INVALID_ARGUMENTS");
    let unknown = off.request("tools/call", json!({ "name": "wait", "arguments": { "runId": "x" } }));
    assert!(unknown["error"].is_object(), "{unknown}");
    off.end();
}

/// Waits twice for one run. Returns the number of the call that is told so, after the other one has got the value.
fn replaced_of_two(server: &Server) -> usize {
    let session = server.session();
    let source =
        "while (!(await state.get('go'))) await new Promise((done) => setTimeout(done, 20)); return 42";
    let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let begun =
        call("executeTypescript", json!({ "code": source, "yieldAfterMs": 50, "timeoutMs": 100_000 }));
    let id = session.begin(0, "tools/call", begun).result()["structuredContent"]["runId"].clone();
    let wait = call("wait", json!({ "runId": id, "timeoutMs": 100_000 }));
    let (sender, ended) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        for number in [1, 2] {
            let (reply, sender) = (session.begin(number, "tools/call", wait.clone()), sender.clone());
            let send = move || sender.send((number, reply.result()["structuredContent"].clone())).unwrap();
            scope.spawn(send);
        }
        let (replaced, error) = ended.recv_timeout(WATCHDOG).unwrap();
        assert_eq!(error["error"]["code"], "RUN_NOT_FOUND", "{error}");
        assert!(error["error"]["message"].as_str().unwrap().contains("another call waits"), "{error}");
        assert_eq!(session.run("await state.set('go', true); return 1")["value"], 1);
        assert_eq!(ended.recv_timeout(WATCHDOG).unwrap().1["value"], 42);
        replaced
    })
}

/// A call whose client has lost its connection goes on for a while, so the client could not wait again.
#[test]
fn a_newer_call_takes_the_place_of_one_that_waits() {
    let server = Server::start(start());
    // On a busy machine the second may be handled before the first.
    assert!((0..3).any(|_| replaced_of_two(&server) == 1));
}

#[test]
fn runs_that_go_on_are_bounded_and_end_with_their_session() {
    let server = Server::start(start());
    let session = server.session();
    session.run("return await tools.well.echo({})");
    let hangs = "await tools.well.slow({ ms: 20000 }); return 1";
    let begin = |id: u64| {
        let arguments = json!({ "code": hangs, "yieldAfterMs": 50 });
        session.begin(id, "tools/call", json!({ "name": "executeTypescript", "arguments": arguments }))
    };
    let ids: Vec<Value> =
        (0..16).map(|number| begin(number).result()["structuredContent"]["runId"].clone()).collect();
    assert!(ids.iter().all(Value::is_string), "{ids:?}");
    // Another client does not find them.
    let other = server.session();
    let call = json!({ "name": "wait", "arguments": { "runId": ids[0] } });
    let refused = other.begin(1, "tools/call", call.clone()).result();
    assert_eq!(refused["structuredContent"]["error"]["code"], "RUN_NOT_FOUND", "{refused}");
    // A client without a session has no `wait`, and gets an error that says so.
    let mut stateless = call;
    stateless["_meta"] = meta(json!({}));
    let refused = server.stateless("tools/call", stateless).result();
    assert!(
        refused["structuredContent"]["error"]["message"].as_str().unwrap().contains("use tasks"),
        "{refused}"
    );
    let list = server.stateless("tools/list", json!({})).result().to_string();
    assert!(!list.contains("\"wait\""), "{list}");
    // One more call is answered only when its script ends.
    let mut last = begin(99);
    server.wait_for_health(|health| health["connectionPool"]["active"] == 17);
    assert_eq!(session.delete(), 202);
    server.wait_for_health(|health| health["connectionPool"]["active"] == 0);
    assert!(last.next().is_none_or(|message| message["result"]["structuredContent"]["running"].is_null()));
}

#[test]
fn what_a_script_reports_is_the_clients_progress() {
    let mut client = Start::new().server("well", &["well"]).spawn().shaken();
    let typescript = "
        await tools.well.echo({});
        progress(2, 10, 'two\\u202e');
        await new Promise((done) => setTimeout(done, 1_000));
        progress(1, 10, 'back');
        await tools.well.echo({});
        for (let n = 1; n <= 200; n++) progress(2 + n / 25, 10);
    ";
    let python = "
await tools.well.echo()
progress(2, 10, 'two\\u202e')
await asyncio.sleep(1)
progress(1, total=10, message='back')
await tools.well.echo()
for n in range(1, 201): progress(2 + n / 25, 10)
";
    for (tool, code) in [("executeTypescript", typescript), ("executePython", python)] {
        let parameters =
            json!({ "name": tool, "arguments": { "code": code }, "_meta": { "progressToken": "p" } });
        let answer = client.request("tools/call", parameters);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        let notes: Vec<Value> = client.take_seen().into_iter().map(|note| note["params"].clone()).collect();
        let amounts: Vec<f64> = notes.iter().map(|note| note["progress"].as_f64().unwrap()).collect();
        assert!(amounts.is_sorted_by(|a, b| a < b), "{tool}: {amounts:?}");
        let find = |message: &str| notes.iter().find(|note| note["message"] == *message);
        let two = find("two\\u{202e}").unwrap_or_else(|| panic!("{tool}: {notes:?}"));
        assert_eq!((&two["progress"], &two["total"]), (&json!(2.0), &json!(10.0)));
        // A value that would go back stays where it was.
        let back = find("back").unwrap_or_else(|| panic!("{tool}: {notes:?}"))["progress"].as_f64().unwrap();
        assert!((2.0..2.1).contains(&back), "{tool}: {back}");
        // Of many reports in a short time the last one is sent.
        let last = notes.last().unwrap();
        assert_eq!((&last["progress"], &last["total"]), (&json!(10.0), &json!(10.0)), "{tool}: {notes:?}");
        assert!(notes.len() < 50, "{tool}: {notes:?}");
    }
    client.end();
}

#[test]
fn a_yielded_run_is_forgotten_with_its_client() {
    let mut client = start().spawn().shaken();
    client.run("return await tools.well.echo({})");
    begin(&mut client, "await tools.well.slow({ ms: 60000 })", 50);
    client.end();
}
