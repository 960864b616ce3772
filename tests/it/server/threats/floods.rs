//! Floods of messages.

use super::*;

/// The maximum growth of the process, in bytes, compared with its memory before.
const FLOOD_BYTES: u64 = 100_000_000;

fn ping(id: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)
}

/// Takes the answers to all requests with ids below `count`, in any order, one for each.
fn take_answers(client: &mut Client, count: usize) {
    let mut is_answered = vec![false; count];
    for _ in 0..count {
        let answer = client.receive();
        let id = usize::try_from(answer["id"].as_u64().unwrap()).unwrap();
        assert!(!std::mem::replace(&mut is_answered[id], true), "twice: {answer}");
    }
}

/// A client that writes without reading is blocked, and loses nothing once it reads.
#[test]
fn v_325_a_flood_of_pings() {
    const PINGS: usize = 400_000;
    let mut client = Start::new().without_reading().spawn();
    client.read_when_asked();
    client.initialize("2025-11-25");
    // Tasks that start by themselves have started.
    client.run("return 1");
    client.call("executePython", json!({ "code": "1" }));
    let before = client.resident_bytes();
    let flood = client.flood((0..PINGS).map(ping));
    let taken = flood.stalled(Duration::from_secs(2));
    assert!(taken < PINGS / 2, "{taken} pings were accepted whose answers are not read");
    assert!(client.resident_bytes() < before + FLOOD_BYTES, "{before}: {}", client.resident_bytes());
    take_answers(&mut client, PINGS);
    flood.join(&mut client);
    assert!(client.resident_bytes() < before + FLOOD_BYTES, "{before}: {}", client.resident_bytes());
    assert_eq!(client.run("return 2")["value"], 2);
    client.end();
}

/// The same where runs are slower than requests come.
#[test]
fn v_325_answers_leave_while_requests_come() {
    const RUNS: usize = 3_000;
    let mut client = Client::plain();
    client.run("return 1");
    let run = |id: usize| {
        let params = json!({ "name": "executeTypescript", "arguments": { "code": "return 1" } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
    };
    let flood = client.flood((0..RUNS).map(run));
    let mut before_the_end = 0;
    let mut is_answered = vec![false; RUNS];
    for _ in 0..RUNS {
        let answer = client.receive();
        let id = usize::try_from(answer["id"].as_u64().unwrap()).unwrap();
        assert!(!std::mem::replace(&mut is_answered[id], true), "twice: {answer}");
        before_the_end += usize::from(flood.written() < RUNS);
    }
    flood.join(&mut client);
    // All requests except those that may be in flight, as many in the look-ahead, and those in the pipe and the buffer.
    assert!(before_the_end > 500, "{before_the_end} answers came while requests were taken");
    client.end();
}

/// A message for which requests in flight wait may come after more requests than are handled.
#[test]
fn v_326_cancellations_and_answers_pass_requests_in_flight() {
    let start = Start::new().server("notes", &["well"]);
    let start = start.arguments(&["--ask", "notes.*", "--max-runs", "1", "--max-queued", "2000"]);
    let start = start.arguments(&["--queue-timeout", "300s"]);
    let mut client = start.spawn().shaken_with(json!({ "elicitation": { "form": {} } }));
    let asking = "return (await tools.notes.echo({ n: 1 })).n";
    let call = client.begin_call("executeTypescript", json!({ "code": asking }));
    let question = client.receive();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let waiting: Vec<Value> =
        (0..600).map(|_| client.begin_call("executeTypescript", json!({ "code": FOREVER }))).collect();
    let answer = json!({ "action": "accept", "content": { "approve": true } });
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer }));
    let answered = client.answer(&call);
    assert_eq!(answered["result"]["structuredContent"]["value"], 1, "{answered}");
    // The last one first: so far only the transport has seen it.
    for id in waiting.iter().rev() {
        let params = json!({ "requestId": id });
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
    }
    client.ping();
    client.wait_for_health(|health| health["connectionPool"]["active"] == 0);
    assert!(client.take_seen().is_empty(), "nothing comes for what was cancelled");
    assert_eq!(client.run("return 2")["value"], 2);
    client.end();
}
