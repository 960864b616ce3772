//! Attacks of docs/threats.md, group MP on `cx serve`, by number, and faults of its clients. After each the server
//! still answers, or the process has ended in good order.

/// Cancellation of calls.
mod cancellation;
/// Floods of messages.
mod floods;

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::serve::{Client, END, Start, WATCHDOG, drain, text};
use crate::support::serve_http::wait_for;
use crate::support::stopwatch::Stopwatch;
use crate::support::{WEDGE, chaos};

const FOREVER: &str = "await new Promise((done) => setTimeout(done, 25000))";

/// An upstream server whose calls hang.
fn with_hanging_upstream() -> Client {
    Start::new().server("hangs", &["hang-call"]).spawn().shaken()
}

#[test]
fn mp_190_stdout_is_the_protocol_and_nothing_else() {
    // The client panics at a line that is not JSON-RPC.
    let start = Start::new()
        .server("noisy", &["garbage"])
        .server("loud", &["stderr-flood"])
        .variable("CX_LOG", "trace");
    let mut client = start.variable("RUST_BACKTRACE", "1").spawn().shaken();
    for source in [
        "console.log('{\"jsonrpc\":'); console.error('x')",
        "throw new Error('x')",
        "Deno.core.print('out of the sandbox')",
        "return await call_tool('noisy', 'echo', {})",
        "return await call_tool('loud', 'echo', {})",
        "const x: = 1",
        "emit('x'); process.stdout.write('x')",
    ] {
        client.run(source);
        client.call(
            "executePython",
            json!({ "code": "import sys, os\nprint('x')\nsys.stdout.write('y')\nos.write(1, b'z')" }),
        );
    }
    client.send_line(b"garbage");
    client.ping();
    client.end();
}

#[test]
fn mp_191_garbage_in() {
    let mut client = Client::plain();
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}{}}}"#,
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    for (line, id, code) in [
        (&b"not json"[..], Value::Null, -32700),
        (b"{}", Value::Null, -32600),
        (b"[]", Value::Null, -32600),
        (b"[1]", Value::Null, -32600),
        (br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, Value::Null, -32600),
        (b"null", Value::Null, -32700),
        (b"7", Value::Null, -32700),
        (br#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"#, json!(7), -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"\xff\"}", json!("a"), -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"pi\0ng\"}", json!(8), -32700),
        (br#"{"jsonrpc":"2.0","id":9}"#, json!(9), -32600),
        (br#"{"jsonrpc":"2.0","id":9,"method":7}"#, json!(9), -32700),
        (deep.as_bytes(), json!(7), -32602),
        (
            br#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"health","arguments":"x"}}"#,
            json!(5),
            -32602,
        ),
        (br#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":[1]}"#, json!(5), -32602),
        (br#"{"jsonrpc":"2.0","id":5,"method":"tools/call"}"#, json!(5), -32602),
    ] {
        client.send_line(line);
        let answer = client.answer(&id);
        assert_eq!(answer["error"]["code"], code, "{}: {answer}", String::from_utf8_lossy(line));
        client.ping();
    }
    // Valid messages in unusual forms.
    for line in [
        &b"{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"ping\"}\r"[..],
        b"\xEF\xBB\xBF{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"ping\"}",
        b"  {\"method\":\"ping\",\"id\":77,\"jsonrpc\":\"2.0\"}  ",
    ] {
        client.send_line(line);
        assert_eq!(client.answer(&json!(77))["result"], json!({}));
    }
    // Answers without a request, and empty lines.
    for line in [
        &br#"{"jsonrpc":"2.0","id":1,"result":{}}"#[..],
        br#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#,
        b"",
        b"   ",
        br#"{"jsonrpc":"2.0","method":"notifications/unknown"}"#,
    ] {
        client.send_line(line);
    }
    client.ping();
    assert!(client.take_seen().is_empty());
    client.end();
}

#[test]
fn mp_192_oversized_line() {
    let mut client = Client::plain();
    client.run("return 1");
    let before = client.peak_bytes();
    for (head, id) in [
        (r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":""#, json!(5)),
        (r#"{"jsonrpc":"2.0","method":"x","params":""#, Value::Null),
    ] {
        client.send_bytes(head.as_bytes());
        for _ in 0..60 {
            client.send_bytes(&vec![b'x'; 1 << 20]);
        }
        client.send_bytes(b"\"}\n");
        let answer = client.answer(&id);
        assert_eq!(answer["error"]["code"], -32600, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("longer than 34 MB"), "{answer}");
        client.ping();
    }
    assert!(client.peak_bytes() < before + 200_000_000, "{} {before}", client.peak_bytes());
    assert!(client.take_seen().is_empty(), "one answer for each");
    client.end();
}

#[test]
fn mp_193_never_ending_line() {
    let mut client = Client::plain();
    let before = client.peak_bytes();
    client.send_bytes(br#"{"jsonrpc":"2.0","id":5,"method":""#);
    let block = vec![b'x'; 1 << 20];
    for _ in 0..200 {
        client.send_bytes(&block);
    }
    assert!(client.peak_bytes() < before + 200_000_000, "{} {before}", client.peak_bytes());
    for _ in 0..400 {
        client.send_bytes(&block);
    }
    assert_eq!(client.answer(&json!(5))["error"]["code"], -32600);
    // A line of this length is not a message any more.
    assert_eq!(client.wait(WATCHDOG).code(), Some(0));
}

#[test]
fn mp_194_order_violations() {
    let mut client = Start::new().spawn();
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    client.send(&json!({ "jsonrpc": "2.0", "id": 99, "result": {} }));
    // Before the handshake, and without one. A person may type such a line, so it is answered.
    let answer = client
        .request("tools/call", json!({ "name": "executeTypescript", "arguments": { "code": "return 1" } }));
    assert_eq!(answer["result"]["structuredContent"]["value"], 1, "{answer}");
    client.ping();
    assert_eq!(client.initialize("2025-06-18")["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(client.initialize("2024-11-05")["result"]["protocolVersion"], "2024-11-05");
    assert_eq!(client.request("initialize", json!({ "protocolVersion": 7 }))["error"]["code"], -32602);
    let unknown = json!({ "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2099-01-01",
        "io.modelcontextprotocol/clientCapabilities": {},
    } });
    let refused = client.request("tools/list", unknown);
    assert!(refused["error"]["message"].is_string(), "{refused}");
    assert_eq!(client.request("no/such", json!({}))["error"]["code"], -32601);
    // A notification with an id is a request for a method that does not exist.
    let id = client.begin("notifications/initialized", json!({}));
    assert_eq!(client.answer(&id)["error"]["code"], -32601);
    assert_eq!(client.request("tools/call", json!({ "name": "executeTypeScript" }))["error"]["code"], -32602);
    assert_eq!(client.run("return 2")["value"], 2);
    client.end();
}

#[test]
fn mp_195_ids() {
    let mut client = Client::plain();
    let call = |id: Value, code: &str| {
        let params = json!({ "name": "executeTypescript", "arguments": { "code": code } });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    // Two requests at once with one id: each gets its own answer.
    client.send(&call(json!("same"), "await new Promise((done) => setTimeout(done, 300)); return 'slow'"));
    client.send(&call(json!("same"), "return 'fast'"));
    let mut values: Vec<_> = (0..2)
        .map(|_| client.answer(&json!("same"))["result"]["structuredContent"]["value"].to_string())
        .collect();
    values.sort();
    assert_eq!(values, ["\"fast\"", "\"slow\""]);
    for id in [json!(""), json!(0), json!(-1), json!(9_223_372_036_854_775_808_u64), json!("ünï\n")] {
        client.send(&call(id.clone(), "return 1"));
        assert_eq!(client.answer(&id)["result"]["structuredContent"]["value"], 1, "{id}");
    }
    for id in ["null", "1.5", "true", "{}", "[1]", "1e3"] {
        client.send_line(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).as_bytes());
        // An id of `null` counts as no id, and so the message as an unknown notification.
        if id != "null" {
            assert_eq!(client.answer(&Value::Null)["error"]["code"], -32600, "{id}");
        }
    }
    client
        .send_line(format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#, "x".repeat(1_000)).as_bytes());
    assert_eq!(client.answer(&Value::Null)["error"]["code"], -32600);
    client.ping();
    client.end();
}

/// Waits until the server `hangs` has got this many calls of `target`.
fn wait_for_targets(client: &mut Client, calls: usize) {
    let start = Instant::now();
    while client.notes("hangs").matches("executed target").count() < calls {
        assert!(start.elapsed() < WATCHDOG, "{}", client.notes("hangs"));
        client.ping();
    }
}

#[test]
fn mp_198_end_of_stdin() {
    // While idle: before the first message, and after the handshake.
    Start::new().spawn().end();
    Client::plain().end();
    // With runs in flight, one of them at an upstream server that hangs.
    let mut client = with_hanging_upstream();
    for code in ["for (;;) {}", FOREVER, "await tools.hangs.target({})", "call_tool('hangs', 'target', {})"] {
        client.begin_call("executeTypescript", json!({ "code": code }));
    }
    client.begin_call("executePython", json!({ "code": "while True: pass" }));
    client.wait_for_health(|health| health["connectionPool"]["active"] == 5);
    wait_for_targets(&mut client, 2);
    let children = client.noted_processes("hangs", "started ");
    client.close_stdin();
    assert_eq!(client.wait(END).code(), Some(0));
    assert!(!children.is_empty());
    wait_for(|| (!children.iter().any(|process| chaos::runs(process))).then_some(()));
    // With a thread that cannot be stopped.
    let mut client = Client::plain();
    hang(&mut client, 1);
    client.end();
}

/// Hangs this many workers. A script that is stopped while it is prepared hangs none.
fn hang(client: &mut Client, count: u64) {
    let start = Instant::now();
    while client.health()["engines"]["typescript"]["hung"] != count {
        assert!(start.elapsed() < WATCHDOG, "nothing hangs");
        let result = client.call("executeTypescript", json!({ "code": WEDGE, "timeoutMs": 2_000 }));
        assert_eq!(result["structuredContent"]["error"]["code"], "TIMEOUT", "{result}");
    }
}

#[test]
fn mp_199_half_a_line_at_the_end() {
    let mut client = Client::plain();
    client.send_bytes(br#"{"jsonrpc":"2.0","id":1,"method":"tools/ca"#);
    client.end();
}

#[test]
fn mp_200_a_client_that_does_not_read() {
    // Stdout is closed: the server notices when it writes an answer.
    let mut client = Start::new().without_reading().spawn();
    client.close_stdout();
    client.begin("ping", json!({}));
    assert_eq!(client.wait(END).code(), Some(0));
    // Stdout is never read: waiting messages are bounded, and beyond that the client counts as gone. Runs keep their
    // deadlines meanwhile.
    let mut client = Start::new().without_reading().spawn();
    let image = "emit({ type: 'image', mimeType: 'image/png', data: 'A'.repeat(12 << 20) })";
    for _ in 0..8 {
        client.begin_call("executeTypescript", json!({ "code": image }));
    }
    assert_eq!(client.wait(WATCHDOG).code(), Some(0));
    // A full pipe does not delay the end.
    let mut client = Start::new().without_reading().spawn();
    client.begin_call("executeTypescript", json!({ "code": image }));
    client.begin_call("executeTypescript", json!({ "code": FOREVER, "timeoutMs": 500 }));
    // Only waiting shows that the pipe is full.
    std::thread::sleep(Duration::from_secs(2));
    client.close_stdin();
    assert_eq!(client.wait(END).code(), Some(0));
    assert!(drain(&mut client) > 0);
}

#[test]
fn mp_201_signals() {
    for signal in ["TERM", "INT", "KILL"] {
        let start = Start::new()
            .server("well", &["well"])
            .server("stubborn", &["ignores-sigterm"])
            .server("parent", &["grandchild"]);
        let mut client = start.spawn().shaken();
        let started =
            client.run("for (const server of await mcp.servers()) await call_tool(server, 'echo', {})");
        assert_eq!(started["success"], true, "{started:#}");
        client.begin_call("executeTypescript", json!({ "code": FOREVER }));
        client.wait_for_health(|health| health["connectionPool"]["active"] == 1);
        let mut processes = client.noted_processes("parent", "grandchild ");
        for server in ["well", "stubborn", "parent"] {
            processes.extend(client.noted_processes(server, "started "));
        }
        assert!(processes.len() >= 4, "{processes:?}");
        client.signal(signal);
        let status = client.wait(END);
        assert_eq!(status.code(), (signal != "KILL").then_some(0), "{signal}");
        let start = Instant::now();
        while let Some(process) = processes.iter().find(|process| chaos::runs(process)) {
            assert!(start.elapsed() < WATCHDOG, "{signal}: {process} is left of {processes:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn mp_202_ping_while_all_is_busy() {
    let mut client = Start::new().arguments(&["--max-runs", "4"]).spawn().shaken();
    for _ in 0..8 {
        client.begin_call("executeTypescript", json!({ "code": "for (;;) {}", "timeoutMs": 20_000 }));
    }
    client.wait_for_health(|health| health["connectionPool"]["active"] == 4);
    // A server that does nothing else shows what the machine takes.
    let mut idle = Client::plain();
    let stopwatch = Stopwatch::start();
    let (mut times, mut of_idle): (Vec<_>, Vec<_>) = (0..21).map(|_| (client.ping(), idle.ping())).unzip();
    times.sort();
    of_idle.sort();
    stopwatch.promise_of(times[10], Duration::from_millis(100) + 4 * of_idle[10], "the median of pings");
    client.end();
}

#[test]
fn mp_203_invalid_arguments() {
    let mut client = Client::plain();
    for (arguments, parts) in [
        (json!({}), &["`code` is missing", "a string"][..]),
        (json!({ "code": 7 }), &["`code`: expected a string: 7"]),
        (json!({ "code": null }), &["`code`: expected a string: null"]),
        (json!({ "code": ["a"] }), &["`code`: expected a string: an array"]),
        (json!({ "code": "1", "timeoutMs": -5 }), &["`timeoutMs`", "from 1 to 600000: -5"]),
        (json!({ "code": "1", "timeoutMs": 1e18 }), &["`timeoutMs`", "from 1 to 600000"]),
        (json!({ "code": "1", "timeoutMs": 600_001 }), &["from 1 to 600000: 600001"]),
        (json!({ "code": "1", "timeoutMs": "x" }), &["`timeoutMs`", ": \"x\""]),
        (json!({ "code": "1", "timeoutMs": 1.5 }), &["`timeoutMs`", ": 1.5"]),
        (json!({ "code": "1", "maxToolCalls": -1 }), &["`maxToolCalls`: expected a whole number from 0"]),
        (
            json!({ "code": "1", "allowedTools": "fs.*" }),
            &["`allowedTools`: expected an array of strings", "\"fs.*\""],
        ),
        (json!({ "code": "1", "allowedTools": [1] }), &["`allowedTools`"]),
        (json!({ "code": "1", "language": "ruby" }), &["unknown parameter `language`"]),
        (
            json!({ "code": "1", "allowed_tools": [] }),
            &["unknown parameter `allowed_tools`", "did you mean `allowedTools`?"],
        ),
        (json!({ "code": "1", "timeout": 5 }), &["did you mean `timeoutMs`"]),
        (json!({ "kode": "1", "input": 1, "timeoutMs": true }), &["`kode`", "`code`", "`timeoutMs`"]),
        (
            json!({ "code": "1", "permissions": { "net": ["*"] } }),
            &["`permissions`: `net`: `*` is not granted"],
        ),
    ] {
        for tool in ["executeTypescript", "executePython"] {
            let result = client.call(tool, arguments.clone());
            assert_eq!(result["isError"], true, "{arguments}");
            let error = &result["structuredContent"]["error"];
            assert_eq!(error["code"], "INVALID_ARGUMENTS", "{arguments}: {error}");
            let message = error["message"].as_str().unwrap();
            assert!(parts.iter().all(|part| message.contains(part)), "{arguments}: {message}");
            assert!(text(&result).contains(message));
        }
    }
    let fine = client.call(
        "executeTypescript",
        json!({ "code": "return input", "timeoutMs": 3e4, "maxToolCalls": null, "input": null }),
    );
    assert_eq!(fine["structuredContent"]["value"], Value::Null);
    // A source longer than a script may be, and one longer than a message may be.
    let long = client.call("executeTypescript", json!({ "code": " ".repeat(3 << 20) }));
    assert_eq!(long["isError"], true);
    assert!(text(&long).contains("more than the limit of 1048576"), "{}", text(&long));
    let id = client.begin_call("executePython", json!({ "code": " ".repeat(50 << 20) }));
    let answer = client.answer(&id);
    assert!(answer["error"]["message"].as_str().unwrap().contains("longer than 34 MB"), "{answer}");
    client.ping();
    client.end();
}

#[test]
fn mp_205_no_unrequested_notifications() {
    let mut client = Start::new().server("well", &["well"]).spawn().shaken();
    client.run("console.log('x'); console.error('y'); await tools.well.echo({})");
    client.run("await tools.well.progress({ steps: 3 })");
    client.run("await new Promise((done) => setTimeout(done, 5500))");
    client.ping();
    let seen = client.take_seen();
    assert!(seen.is_empty(), "{seen:?}");
    client.end();
}

/// The process ends so that its client starts it again, after runs in flight could end.
#[test]
fn too_many_hung_workers_end_the_server() {
    let mut client = Client::plain();
    client.call("executePython", json!({ "code": "1" }));
    let last = client.begin_call(
        "executePython",
        json!({ "code": "import asyncio\nawait asyncio.sleep(15)\n'last output'" }),
    );
    hang(&mut client, 3);
    let refused = client.call("executeTypescript", json!({ "code": "return 1" }));
    assert_eq!(refused["structuredContent"]["error"]["code"], "ENGINE_UNAVAILABLE");
    assert_eq!(client.health()["healthy"], false);
    assert_eq!(client.answer(&last)["result"]["structuredContent"]["value"], "last output");
    assert_eq!(client.wait(WATCHDOG).code(), Some(3));
}

#[test]
fn hung_workers_do_not_hold_up_the_end() {
    let mut client = Client::plain();
    client.call("executePython", json!({ "code": "1" }));
    client.begin_call("executePython", json!({ "code": "import asyncio\nawait asyncio.sleep(25)" }));
    hang(&mut client, 3);
    client.run("return 1");
    client.close_stdin();
    // The client goes away before the server ends because of its hung workers.
    assert_eq!(client.wait(END).code(), Some(0));
}
