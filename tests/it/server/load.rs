//! Many runs at once: some are served, some are refused, and no slot is lost.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::serve::{Client, Start};
use crate::support::serve_http::{Server, Session, wait_for, wait_within};

const FOREVER: &str = "await new Promise((done) => setTimeout(done, 25000))";

fn cancel(client: &mut Client, id: &Value) {
    let params = json!({ "requestId": id });
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
}

fn begin(client: &mut Client, code: &str) -> Value {
    client.begin_call("executeTypescript", json!({ "code": code }))
}

/// How many threads of a process run isolates.
fn isolates(process: u32) -> usize {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let names = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with("cx-js-")).count()
}

/// Threat 238: as many runs as may execute, as many as may wait, and one more.
#[test]
fn ld_238_one_run_too_many_is_refused_at_once() {
    let mut client = Start::new().arguments(&["--max-runs", "4", "--max-queued", "5"]).spawn().shaken();
    let ids: Vec<Value> = (0..10).map(|_| begin(&mut client, FOREVER)).collect();
    // The others run longer than the test.
    let refused = client.receive();
    let error = &refused["result"]["structuredContent"]["error"];
    assert_eq!(error["code"], "QUEUE_FULL", "{refused}");
    assert!(error["retryAfterMs"].as_f64().unwrap() >= 100.0, "{error}");
    let health = client.wait_for_health(|health| health["connectionPool"]["waiting"] == 5);
    assert_eq!(health["connectionPool"], json!({ "active": 4, "waiting": 5, "max": 4 }));
    assert!(client.take_seen().is_empty(), "only one was too many");
    for id in &ids {
        cancel(&mut client, id);
    }
    client
        .wait_for_health(|health| health["connectionPool"] == json!({ "active": 0, "waiting": 0, "max": 4 }));
    assert_eq!(client.run("return 1")["value"], 1);
    client.end();
}

/// Threat 239: first in, first out; a cancelled run leaves the queue. `library::admission_is_bounded` tests that waits
/// end, because they can be short there.
#[test]
fn ld_239_the_queue_is_first_in_first_out() {
    let mut client = Start::new().arguments(&["--max-runs", "1", "--max-queued", "10"]).spawn().shaken();
    let first = begin(&mut client, FOREVER);
    client.wait_for_health(|health| health["connectionPool"]["active"] == 1);
    let mut waiting = Vec::new();
    for number in 0..8 {
        // An answer may overtake the previous one: a slot is free as soon as its script has ended.
        let code = format!("await state.update('served', (served) => [...served, {number}], [])");
        waiting.push(begin(&mut client, &code));
        // Sent one after the other, so that they are queued in this order.
        client.wait_for_health(|health| health["connectionPool"]["waiting"] == number + 1);
    }
    for number in [1, 4, 7] {
        cancel(&mut client, &waiting[number]);
    }
    client.wait_for_health(|health| health["connectionPool"]["waiting"] == 5);
    cancel(&mut client, &first);
    for _ in 0..5 {
        client.receive();
    }
    let served = client.run("return await state.get('served')");
    assert_eq!(served["value"], json!([0, 2, 3, 5, 6]), "{served}");
    client
        .wait_for_health(|health| health["connectionPool"] == json!({ "active": 0, "waiting": 0, "max": 1 }));
    client.end();
}

/// Threat 240: a thousand runs that end in every possible way. A panic has its own test (`mp_204`).
#[test]
fn ld_240_no_slot_is_lost() {
    let server = Server::start(Start::new().server("slow", &["hang-call"]).arguments(&[
        "--max-runs",
        "8",
        "--max-queued",
        "50",
        "--memory",
        "32MiB",
    ]));
    let ways = [
        ("return 1", "ok"),
        ("return 2", "ok"),
        ("throw new Error('x')", "RUNTIME_ERROR"),
        ("const a: = 1", "SYNTAX_ERROR"),
        ("return await tools.slow.echo({})", "ok"),
        ("for (;;) {}", "TIMEOUT"),
        ("const all = []; for (;;) all.push(new Array(1e5).fill(1))", "MEMORY_LIMIT"),
        ("await tools.slow.target({})", "gone"),
        ("await tools.slow.target({})", "cancelled"),
        ("await new Promise(() => {})", "RUNTIME_ERROR"),
    ];
    std::thread::scope(|scope| {
        for client in 0..10 {
            let (server, ways) = (&server, &ways);
            scope.spawn(move || {
                let session = server.session_without_resumption();
                for number in 0..100 {
                    // Each client begins with another way, so that all ways happen at once.
                    let (code, way) = ways[(client + number) % ways.len()];
                    let timeout = if way == "TIMEOUT" { 100 } else { 120_000 };
                    let arguments = json!({ "code": code, "timeoutMs": timeout });
                    let params = json!({ "name": "executeTypescript", "arguments": arguments });
                    let reply = session.begin(number, "tools/call", params);
                    match way {
                        "gone" => drop(reply),
                        "cancelled" => {
                            let params = json!({ "requestId": number });
                            let method = "notifications/cancelled";
                            session.post(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
                        }
                        _ => {
                            let result = reply.result()["structuredContent"].clone();
                            let code = result["error"]["code"].as_str().unwrap_or("ok");
                            assert_eq!(code, way, "{result}");
                        }
                    }
                }
                assert_eq!(session.delete(), 202);
            });
        }
    });
    let none = json!({ "active": 0, "waiting": 0, "max": 8 });
    // On a busy machine a worker may count as lost until its script is stopped.
    server.wait_for_health(|health| {
        health["connectionPool"] == none && health["engines"]["typescript"]["hung"] == 0
    });
    // All eight slots are free.
    let sessions: Vec<_> = (0..8).map(|_| server.session_without_resumption()).collect();
    let held: Vec<_> = sessions.iter().map(|session| session.begin_run(1, FOREVER)).collect();
    server.wait_for_health(|health| health["connectionPool"]["active"] == 8);
    drop(held);
    server.wait_for_health(|health| health["connectionPool"]["active"] == 0);
    // The server saw cancelled calls as cancelled too.
    wait_for(|| {
        let notes = server.notes("slow");
        (notes.matches("cancelled").count() == notes.matches("executed target").count()).then_some(())
    });
}

/// Threat 413: V8 keeps the pages of dropped isolates for later ones. Those of a large run are released after it, also
/// if V8 has just released others.
#[test]
fn v_413_pages_of_a_large_run_are_released() {
    const LEFT_OVER: u64 = 50 << 20;
    let mut client = Start::new().spawn().shaken();
    assert_eq!(client.run("return 1")["value"], 1);
    let before = client.resident_bytes();
    for source in [
        "const k = []; for (;;) k.push(BigInt(1) << BigInt(1e6 + k.length))",
        "const k = []; for (let i = 0; ; i++) k.push(Symbol.for('x'.repeat(1000) + i))",
        "const k = []; for (;;) k.push({ a: {} })",
    ] {
        let answer = client.call("executeTypescript", json!({ "code": source, "timeoutMs": 120_000 }));
        let answer = &answer["structuredContent"];
        assert_eq!(answer["error"]["code"], "MEMORY_LIMIT", "{source}: {answer}");
        // It takes two seconds. The rest is for a busy machine: only an engine that is idle for half a minute releases
        // them by itself.
        wait_within(Duration::from_secs(20), || {
            (client.resident_bytes() <= before + LEFT_OVER).then_some(())
        });
    }
    client.end();
}

/// Promise 48 of docs/promises.md: 100 KB for a client, 50 MB for a sandbox. `benches/README.md` has the measured
/// figures, which are lower.
#[test]
fn a_client_and_a_sandbox_take_little_memory() {
    const CLIENTS: usize = 200;
    const OF_A_CLIENT: u64 = 100 << 10;
    const SANDBOXES: usize = 4;
    const OF_A_SANDBOX: u64 = 50 << 20;
    let server = Server::start(Start::new().arguments(&["--max-runs", "8"]));
    let begin_python = |client: &Session<'_>, source: &str| {
        let params = json!({ "name": "executePython", "arguments": { "code": source } });
        client.begin(1, "tools/call", params)
    };
    // Everything that they share exists: engines, warm instances, and whatever the first client needs.
    let first = server.session();
    assert_eq!(first.run("return 1")["value"], 1);
    assert_eq!(begin_python(&first, "1").result()["structuredContent"]["value"], 1);
    // An executor keeps two instances of each engine or more. One more of Python takes as much as all the clients may.
    server.wait_for_health(|health| {
        let ready = |engine: &str| health["engines"][engine]["ready"].as_u64();
        ready("typescript") >= Some(2) && ready("python") >= Some(2)
    });
    let before = server.settled_bytes();
    let clients: Vec<_> = (0..CLIENTS).map(|_| server.session_without_resumption()).collect();
    let taken = server.settled_bytes().saturating_sub(before);
    assert!(taken < CLIENTS as u64 * OF_A_CLIENT, "{CLIENTS} clients take {taken} bytes");
    let before = server.settled_bytes();
    let (typescript, python) = clients[..2 * SANDBOXES].split_at(SANDBOXES);
    let mut held: Vec<_> = typescript.iter().map(|client| client.begin_run(1, FOREVER)).collect();
    held.extend(python.iter().map(|client| begin_python(client, "import asyncio\nawait asyncio.sleep(25)")));
    server.wait_for_health(|health| health["connectionPool"]["active"] == held.len());
    let taken = server.resident_bytes().saturating_sub(before);
    assert!(taken < held.len() as u64 * OF_A_SANDBOX, "{} sandboxes take {taken} bytes", held.len());
    drop(held);
    server.wait_for_health(|health| health["connectionPool"]["active"] == 0);
}

/// Threat 242: two hundred runs before anything is warm.
#[test]
fn ld_242_many_runs_at_a_cold_start() {
    // Longer than a busy machine takes for the first half of them.
    let mut client = Start::new().arguments(&["--queue-timeout", "300s"]).spawn();
    client.initialize("2025-11-25");
    let mut most = 0;
    let ids: Vec<Value> = (0..200).map(|number| begin(&mut client, &format!("return {number}"))).collect();
    for (number, id) in ids.iter().enumerate() {
        let answer = client.answer(id);
        assert_eq!(answer["result"]["structuredContent"]["value"], number, "{answer}");
        most = most.max(isolates(client.process()));
    }
    // Two are being kept ready. A run that has ended makes room for another one before its own isolate is gone, which
    // takes some time on a busy machine.
    assert!(most <= 100 + 2 + 20, "{most} isolates");
    client.end();
}
