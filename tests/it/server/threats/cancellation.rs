//! Cancellation of calls.

use super::*;

/// Less than what is cancelled here takes without it, which is 25 seconds. The promise is half a second.
const SOON: Duration = Duration::from_secs(10);

/// Begins a call, cancels it when `started`, and expects that its slot is free soon and that no answer comes.
fn cancel(client: &mut Client, tool: &str, code: &str, started: impl Fn(&mut Client)) {
    let id = client.begin_call(tool, json!({ "code": code }));
    client.wait_for_health(|health| health["connectionPool"]["active"] == 1);
    started(client);
    let stopwatch = Stopwatch::start();
    let params = json!({ "requestId": id, "reason": "test" });
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
    client.wait_for_health(|health| health["connectionPool"]["active"] == 0);
    stopwatch.promise(SOON, format_args!("cancellation of {code}"));
    client.ping();
    let seen = client.take_seen();
    assert!(seen.iter().all(|message| message["id"] != id), "{code}: {seen:?}");
}

#[test]
fn mp_196_cancellation_in_every_phase() {
    let start = Start::new().server("hangs", &["hang-call"]).server("silent", &["silent"]);
    let mut client = start.arguments(&["--max-runs", "1"]).spawn().shaken();
    client.call("executePython", json!({ "code": "1" }));
    cancel(&mut client, "executeTypescript", "for (;;) {}", |_| ());
    cancel(&mut client, "executeTypescript", FOREVER, |_| ());
    // A search waits for two seconds, and one after it does not wait again.
    cancel(&mut client, "executeTypescript", "for (;;) await searchTools('anything')", |_| ());
    cancel(&mut client, "executePython", "while True: pass", |_| ());
    cancel(&mut client, "executePython", "import time\ntime.sleep(25)", |_| ());
    cancel(&mut client, "executePython", "import asyncio\nawait asyncio.sleep(25)", |_| ());
    let mut calls = 0;
    for (tool, code) in [
        ("executeTypescript", "await tools.hangs.target({})"),
        ("executeTypescript", "call_tool('hangs', 'target', {})"),
        ("executePython", "await tools.hangs.target()"),
        ("executePython", "call_tool('hangs', 'target', {})"),
    ] {
        calls += 1;
        cancel(&mut client, tool, code, |client| wait_for_targets(client, calls));
        // The cancellation reaches the upstream server.
        let start = Instant::now();
        while client.notes("hangs").matches("cancelled ").count() < calls {
            assert!(start.elapsed() < WATCHDOG, "{code}: {}", client.notes("hangs"));
            client.ping();
        }
    }
    // In the queue.
    let running = client.begin_call("executeTypescript", json!({ "code": FOREVER }));
    client.wait_for_health(|health| health["connectionPool"]["active"] == 1);
    let waiting = client.begin_call("executeTypescript", json!({ "code": "return 1" }));
    client.wait_for_health(|health| health["connectionPool"]["waiting"] == 1);
    let stopwatch = Stopwatch::start();
    client.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": waiting } }),
    );
    client.wait_for_health(|health| health["connectionPool"]["waiting"] == 0);
    stopwatch.promise(SOON, "cancellation of a run that waits");
    client.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": running } }),
    );
    assert_eq!(client.run("return 1")["value"], 1);
    client.end();
}

#[test]
fn mp_197_cancel_races() {
    let mut client = Client::plain();
    let cancelled = |id: Value| {
        let params = json!({ "requestId": id });
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })
    };
    client.send(&cancelled(json!("absent")));
    client.send(&cancelled(json!(4711)));
    for params in
        [json!({}), json!(null), json!([]), json!({ "requestId": null }), json!({ "requestId": {} })]
    {
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
    }
    // After completion, twice, and at once.
    let id = client.begin_call("executeTypescript", json!({ "code": "return 1" }));
    assert_eq!(client.answer(&id)["result"]["structuredContent"]["value"], 1);
    client.send(&cancelled(id.clone()));
    client.send(&cancelled(id));
    for _ in 0..50 {
        let id = client.begin_call("executeTypescript", json!({ "code": "return 1" }));
        client.send(&cancelled(id));
    }
    // Before it starts. The id may be used again.
    client.send(&cancelled(json!("later")));
    client.send(&json!({ "jsonrpc": "2.0", "id": "later", "method": "ping" }));
    assert_eq!(client.answer(&json!("later"))["result"], json!({}));
    client.wait_for_health(|health| health["connectionPool"]["active"] == 0);
    assert_eq!(client.run("return 2")["value"], 2);
    client.end();
}
