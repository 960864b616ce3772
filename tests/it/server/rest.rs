//! `POST /v1/runs` and related paths, as callers that speak no MCP use them, and as hostile ones do.

/// Requests that are refused.
mod requests;

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::interop::{schemas_python, script};
use crate::support::serve::{END, Start};
use crate::support::serve_http::{Reply, Server, TOKEN, wait_for, wait_within};

const JSON: (&str, &str) = ("Content-Type", "application/json");
const EVENTS: (&str, &str) = ("Accept", "text/event-stream");

/// Calls a chaos tool that does not answer.
const HANGS: &str = "return await tools.slow.target({})";

fn with_hanging_upstream() -> Server {
    Server::start(Start::new().server("slow", &["hang-call"]))
}

fn create(server: &Server, headers: &[(&str, &str)], body: &Value) -> Reply {
    let mut all = vec![JSON];
    all.extend(headers);
    server.send("POST", "/v1/runs", &all, &body.to_string())
}

fn typescript(code: &str) -> Value {
    json!({ "language": "typescript", "code": code })
}

/// The result of a script, which must have run.
fn run(server: &Server, body: &Value) -> Value {
    let reply = create(server, &[], body);
    assert_eq!(reply.status, 200);
    reply.message()
}

/// Problem details with this status and code.
#[track_caller]
fn problem(reply: Reply, status: u16, code: &str) -> Value {
    assert_eq!(reply.header("content-type"), Some("application/problem+json"), "{}", reply.status);
    let found = reply.status;
    let body: Value = serde_json::from_str(&reply.body()).unwrap();
    assert_eq!((found, &body["status"]), (status, &json!(status)), "{body}");
    assert_eq!(body["code"].as_str().unwrap_or_default(), code, "{body}");
    assert!(!body["detail"].as_str().unwrap().is_empty(), "{body}");
    body
}

/// All events of a stream: their names and data.
fn events(reply: Reply) -> Vec<(String, Value)> {
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/event-stream")));
    // Neither kept nor held back by proxies.
    let of_proxies = (reply.header("cache-control"), reply.header("x-accel-buffering"));
    assert_eq!(of_proxies, (Some("no-store"), Some("no")));
    let body = reply.body();
    let events = body.split("\n\n").filter(|event| event.starts_with("event: "));
    let parsed = events.map(|event| {
        let (name, data) = event.strip_prefix("event: ").unwrap().split_once("\ndata: ").unwrap();
        (name.to_owned(), serde_json::from_str(data).unwrap())
    });
    parsed.collect()
}

fn wait_for_no_run(server: &Server) {
    wait_within(Duration::from_secs(15), || server.notes("slow").contains("cancelled").then_some(()));
    server.wait_for_health(|health| health["connectionPool"]["active"] == 0);
}

#[test]
fn a_run_is_one_request() {
    let server = Server::start(Start::new().server("well", &["well"]));
    let result =
        run(&server, &typescript("console.log('hello'); return await tools.well.echo({ text: 'a' })"));
    assert_eq!((&result["success"], &result["output"]), (&json!(true), &json!("hello")), "{result}");
    assert_eq!(result["toolCallsMade"], 1);
    let python = json!({ "language": "python", "code": "inputs['a'] * 7", "input": { "a": 6 } });
    assert_eq!(run(&server, &python)["value"], 42);
    // The same as the tool's result, except for times.
    let timeless = |mut result: Value| {
        result.as_object_mut().unwrap().shift_remove("executionTimeMs");
        result
    };
    for code in ["return { a: [1, null] }", "throw new Error('no')", "return (", "return 1 + nothing"] {
        let arguments = json!({ "name": "executeTypescript", "arguments": { "code": code } });
        let called = server.stateless("tools/call", arguments).result()["structuredContent"].clone();
        let mut over_rest = timeless(run(&server, &typescript(code)));
        let mut called = timeless(called);
        for of in [&mut over_rest, &mut called] {
            // Stacks have the same frames; a record has its own id.
            of.as_object_mut().unwrap().shift_remove("runId");
        }
        assert_eq!(over_rest, called, "{code}");
    }
    let emitted = run(&server, &typescript("emit({ type: 'text', text: 'block' }); return 1"));
    assert_eq!(emitted["content"], json!([{ "type": "text", "text": "block" }]), "{emitted}");
}

#[test]
fn the_parameters_are_those_of_the_tools() {
    let server = Server::start(Start::new().server("well", &["well"]));
    let call = "return await tools.well.echo({ text: 'a' })";
    let with = |more: Value| {
        let mut body = typescript(call);
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        run(&server, &body)
    };
    let denied = &with(json!({ "allowedTools": [] }))["error"];
    assert_eq!(denied["toolCode"], "TOOL_DENIED");
    assert!(denied["hint"].as_str().unwrap().starts_with("`allowedTools` of the run"), "{denied}");
    assert_eq!(with(json!({ "allowedTools": ["well.*"] }))["success"], true);
    assert_eq!(with(json!({ "dryRun": true }))["plannedCalls"][0]["tool"], "mcp__well__echo");
    let endless = json!({ "language": "typescript", "code": "for (;;);", "timeoutMs": 100 });
    assert_eq!(run(&server, &endless)["error"]["code"], "TIMEOUT");
    let kept = |code: &str| json!({ "language": "typescript", "code": code, "session": "trip" });
    run(&server, &kept("await state.set('k', 7)"));
    assert_eq!(run(&server, &kept("return await state.get('k')"))["value"], 7);
}

#[test]
fn a_stream_has_what_happens_and_then_the_result() {
    let server = Server::start(Start::new().server("well", &["well"]));
    let code = "console.log('one'); console.error('two\\nlines'); progress(1, 2, 'half'); \
                await tools.well.echo({ text: 'a' }); return 3";
    let mut asked = typescript(code);
    for headers in [&[EVENTS][..], &[]] {
        asked["stream"] = headers.is_empty().into();
        let events = events(create(&server, headers, &asked));
        let of = |wanted: &str| {
            let found = events.iter().find(|(name, _)| name == wanted);
            found.unwrap_or_else(|| panic!("no {wanted}: {events:?}")).1.clone()
        };
        assert_eq!(events[0].0, "run", "{events:?}");
        assert_eq!(of("output"), json!({ "level": "info", "text": "one" }));
        assert!(events.iter().any(|(_, data)| *data == json!({ "level": "error", "text": "two\nlines" })));
        assert_eq!(of("progress"), json!({ "progress": 1.0, "total": 2.0, "message": "half" }));
        assert_eq!((&of("call")["tool"], &of("call")["status"]), (&json!("mcp__well__echo"), &json!("ok")));
        let (last, result) = events.last().unwrap();
        assert_eq!((last.as_str(), &result["value"]), ("result", &json!(3)), "{events:?}");
        assert_eq!(result["runId"], of("run")["runId"]);
        // The result can be read again, and the whole record.
        let path = format!("/v1/runs/{}", result["runId"].as_str().unwrap());
        assert_eq!(server.get(&path, &[]).message(), *result);
        assert_eq!(server.get(&format!("{path}/output"), &[]).body(), "one\ntwo\nlines");
    }
}

/// Events that a client does not read are dropped and counted, and do not slow down the script.
#[test]
fn a_flood_of_lines_is_bounded() {
    let server = Server::start(Start::new().config("limits", json!({ "maxOutputBytes": 32 << 20 })));
    // More than the buffers of a connection hold.
    let code = "for (let i = 0; i < 16_000; i++) console.log('x'.repeat(1_000)); return 1";
    let mut reply = create(&server, &[EVENTS], &typescript(code));
    let run = reply.next().unwrap();
    let path = format!("/v1/runs/{}?waitMs=60000", run["runId"].as_str().unwrap());
    // The script ends although nothing more is read.
    assert_eq!(server.get(&path, &[]).message()["value"], 1);
    let events = events(reply);
    assert_eq!(events.last().unwrap().1["value"], 1);
    let lines = events.iter().filter(|(name, _)| name == "output").count();
    let dropped: Vec<u64> = events
        .iter()
        .filter(|(name, _)| name == "dropped")
        .map(|(_, data)| data["events"].as_u64().unwrap())
        .collect();
    assert_eq!(dropped.len(), 1, "{lines} lines were sent");
    assert_eq!(lines as u64 + dropped[0], 16_000);
}

#[test]
fn a_run_in_the_background_is_read_later() {
    let server = Server::plain();
    let mut body = typescript(
        "console.log('begun'); await new Promise((done) => setTimeout(done, 12_000)); \
         console.log('x'.repeat(30_000)); return 'end'",
    );
    body["background"] = true.into();
    let reply = create(&server, &[], &body);
    assert_eq!(reply.status, 202);
    let path = reply.header("location").unwrap().to_owned();
    let accepted = reply.message();
    assert_eq!(path, format!("/v1/runs/{}", accepted["runId"].as_str().unwrap()));
    assert_eq!(accepted["running"], true);
    let now = wait_for(|| {
        let now = server.get(&path, &[]).message();
        (now.get("output").is_some() || now.get("success").is_some()).then_some(now)
    });
    assert_eq!((&now["running"], &now["output"]), (&json!(true), &json!("begun")), "{now}");
    let end = server.get(&format!("{path}?waitMs=60000"), &[]).message();
    assert_eq!((&end["value"], &end["success"]), (&json!("end"), &json!(true)), "{end}");
    assert!(end["outputOmitted"].as_u64().unwrap() > 0, "{end}");
    assert_eq!(server.get(&path, &[]).message(), end, "it can be read again");
    assert_eq!(server.get(&format!("{path}/output"), &[]).body().len(), "begun\n".len() + 30_000);
    assert_eq!(server.get(&format!("{path}/value"), &[]).message(), "end");
    assert_eq!(server.get(&format!("{path}/calls"), &[]).message(), json!([]));
    problem(server.get(&format!("{path}/odd"), &[]), 404, "RUN_NOT_FOUND");
    problem(server.get(&format!("{path}?wait=1"), &[]), 400, "INVALID_ARGUMENTS");
    problem(server.get(&format!("{path}?waitMs=60001"), &[]), 400, "INVALID_ARGUMENTS");
}

/// A short answer names no record; one that leaves something out does, and can be read again.
#[test]
fn what_a_result_leaves_out_can_be_read() {
    let server = Server::plain();
    assert!(run(&server, &typescript("return 1")).get("runId").is_none());
    let result = run(&server, &typescript("return 'x'.repeat(60_000)"));
    let id = result["runId"].as_str().unwrap();
    assert_eq!(server.get(&format!("/v1/runs/{id}"), &[]).message(), result);
    assert_eq!(server.get(&format!("/v1/runs/{id}/value"), &[]).body().len(), 60_002);
    // A script of any client without a session finds it too.
    let again = run(&server, &typescript(&format!("return (await mcp.run('{id}')).value.length")));
    assert_eq!(again["value"], 60_000, "{again}");
}

#[test]
fn a_run_is_cancelled_by_its_id() {
    let server = with_hanging_upstream();
    let mut body = typescript(HANGS);
    body["background"] = true.into();
    let path = create(&server, &[], &body).header("location").unwrap().to_owned();
    wait_for(|| server.notes("slow").contains("executed target").then_some(()));
    assert_eq!(server.send("DELETE", &path, &[], "").status, 204);
    let end = server.get(&format!("{path}?waitMs=20000"), &[]).message();
    assert_eq!(end["error"]["code"], "CANCELLED", "{end}");
    wait_for_no_run(&server);
    assert_eq!(server.send("DELETE", &path, &[], "").status, 204, "it can be cancelled again");
    problem(server.send("DELETE", "/v1/runs/aaaaaaaaaaaaaaaa", &[], ""), 404, "RUN_NOT_FOUND");
}

#[test]
fn a_run_ends_with_its_connection() {
    for headers in [&[EVENTS][..], &[]] {
        let server = with_hanging_upstream();
        let body = typescript(HANGS).to_string();
        let mut stream = server.connect();
        let mut request = format!("POST /v1/runs HTTP/1.1\r\nHost: {}\r\n", server.address);
        for (name, value) in headers.iter().chain([&JSON]) {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        stream.write_all(request.as_bytes()).unwrap();
        wait_for(|| server.notes("slow").contains("executed target").then_some(()));
        drop(stream);
        wait_for_no_run(&server);
    }
}

#[test]
fn a_run_in_the_background_does_not_end_with_its_connection() {
    let server = Server::start(Start::new().server("well", &["well"]));
    let mut body = typescript(
        "await new Promise((done) => setTimeout(done, 300)); return await tools.well.echo({ text: 'a' })",
    );
    body["background"] = true.into();
    let path = create(&server, &[], &body).header("location").unwrap().to_owned();
    let end = server.get(&format!("{path}?waitMs=20000"), &[]).message();
    assert_eq!(end["success"], true, "{end}");
}

#[test]
fn one_key_is_one_run() {
    let server = Server::start(Start::new().server("well", &["well"]));
    let body = typescript("return [Math.random(), await tools.well.echo({ text: 'a' })]");
    let key = ("Idempotency-Key", "k-1");
    let results: Vec<(bool, Value)> = std::thread::scope(|scope| {
        let ask = || {
            let reply = create(&server, &[key], &body);
            assert_eq!(reply.status, 200);
            (reply.header("idempotency-replayed").is_some(), reply.message())
        };
        let asking: Vec<_> = (0..10).map(|_| scope.spawn(ask)).collect();
        asking.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(results.iter().all(|(_, result)| *result == results[0].1), "{results:?}");
    assert_eq!(results.iter().filter(|(is_replayed, _)| !is_replayed).count(), 1);
    assert_eq!(server.notes("well").matches("executed echo").count(), 1);
    problem(create(&server, &[key], &typescript("return 2")), 422, "INVALID_ARGUMENTS");
    // Another key is another run, and a request that was refused leaves its key free.
    let refused = json!({ "language": "typescript", "code": "return 1", "odd": 1 });
    let other = ("Idempotency-Key", "k-2");
    problem(create(&server, &[other], &refused), 400, "INVALID_ARGUMENTS");
    assert_eq!(create(&server, &[other], &typescript("return 2")).message()["value"], 2);
    for bad in ["", &"k".repeat(256)] {
        problem(create(&server, &[("Idempotency-Key", bad)], &body), 400, "INVALID_ARGUMENTS");
    }
}

#[test]
fn a_client_has_its_rate() {
    let server = Server::start_with(&["--http", "127.0.0.1:0", "--client-rate", "2"], Start::new());
    let body = typescript("return 1");
    for _ in 0..2 {
        assert_eq!(run(&server, &body)["value"], 1);
    }
    let reply = create(&server, &[], &body);
    assert!(reply.header("retry-after").unwrap().parse::<u64>().unwrap() > 0);
    let refused = problem(reply, 429, "RATE_LIMITED");
    assert!(refused["retryAfterMs"].as_f64().unwrap() > 0.0);
    // They count together with the same client's calls of tools.
    let call = json!({ "name": "executeTypescript", "arguments": { "code": "return 1" } });
    let called = server.stateless("tools/call", call).result();
    assert_eq!(called["structuredContent"]["error"]["code"], "RATE_LIMITED");
}

#[test]
fn a_full_queue_is_said_with_a_status() {
    let start = Start::new().server("slow", &["hang-call"]);
    let server = Server::start(start.arguments(&["--max-runs", "1", "--max-queued", "0"]));
    let mut body = typescript(HANGS);
    body["background"] = true.into();
    let path = create(&server, &[], &body).header("location").unwrap().to_owned();
    wait_for(|| server.notes("slow").contains("executed target").then_some(()));
    let refused = create(&server, &[], &typescript("return 1"));
    problem(refused, 503, "QUEUE_FULL");
    let streamed = events(create(&server, &[EVENTS], &typescript("return 1")));
    let (name, data) = streamed.last().unwrap();
    assert_eq!((name.as_str(), &data["code"]), ("problem", &json!("QUEUE_FULL")));
    assert_eq!(server.send("DELETE", &path, &[], "").status, 204);
}

#[test]
fn no_user_is_asked_over_rest() {
    let server = Server::start(Start::new().server("notes", &["well"]).arguments(&["--ask", "notes.*"]));
    let result = run(&server, &typescript("return await tools.notes.echo({ text: 'a' })"));
    let error = &result["error"];
    assert_eq!(error["toolCode"], "TOOL_DENIED", "{result}");
    assert!(error["message"].as_str().unwrap().contains("no user can be asked"), "{result}");
    assert!(!server.notes("notes").contains("executed echo"));
}

#[test]
fn runs_in_the_background_are_few_and_end_with_the_server() {
    let mut server = with_hanging_upstream();
    let mut body = typescript("await new Promise(() => setTimeout(() => {}, 60_000))");
    body["background"] = true.into();
    body["timeoutMs"] = 600_000.into();
    for _ in 0..64 {
        assert_eq!(create(&server, &[], &body).status, 202);
    }
    problem(create(&server, &[], &body), 429, "RATE_LIMITED");
    assert_eq!(run(&server, &typescript("return 1"))["value"], 1, "others are not affected");
    server.signal("TERM");
    assert!(server.wait(END).success());
}

/// The OpenAPI project's own checker, and the server's requests and answers against its schemas.
#[test]
fn the_openapi_document_is_valid_and_true() {
    let server = Server::start(Start::new().variable("CX_HTTP_TOKEN", TOKEN).server("well", &["well"]));
    let token = format!("Bearer {TOKEN}");
    let token = ("Authorization", token.as_str());
    let document = server.get("/openapi.json", &[token]).message();
    assert_eq!(document["security"], json!([{ "token": [] }]));
    let responses = &document["paths"]["/v1/runs"]["post"]["responses"];
    for (response, header) in [
        (&responses["200"], "Idempotency-Replayed"),
        (&responses["202"], "Idempotency-Replayed"),
        (&responses["202"], "Location"),
        (&document["components"]["responses"]["Problem429"], "Retry-After"),
    ] {
        assert!(response["headers"][header].is_object(), "{header}: {response}");
    }
    let mut lines = vec![document.clone()];
    let bodies = [
        (true, json!({ "language": "typescript", "code": "return { a: 1 }", "input": [1] })),
        (
            true,
            json!({ "language": "python", "code": "print('a')", "timeoutMs": 600_000, "maxToolCalls": 0 }),
        ),
        (true, json!({ "language": "typescript", "code": "throw 1", "dryRun": true, "session": "s" })),
        (
            true,
            typescript(
                "emit({ type: 'text', text: 'a' }); console.log('x'.repeat(60_000)); return 'y'.repeat(60_000)",
            ),
        ),
        (true, typescript("await tools.well.echo({ text: 'a' })")),
        (true, typescript("await tools.well.echo({ txt: 'a' }); missing()")),
        (
            true,
            json!({ "language": "python", "code": "await tools.well.echo(text='a')", "allowedTools": [] }),
        ),
        (false, json!({ "language": "ruby", "code": "1" })),
        (false, json!({ "language": "typescript", "code": "1", "odd": 1 })),
        (false, json!({ "language": "typescript", "code": "1", "timeoutMs": "1" })),
        (false, json!({ "language": "typescript", "code": "1", "timeoutMs": -1 })),
    ];
    for (is_valid, body) in bodies {
        let reply = create(&server, &[token], &body);
        assert_eq!(reply.status == 200, is_valid, "{body}");
        let answer: Value = serde_json::from_str(&reply.body()).unwrap();
        lines.push(json!(["RunRequest", is_valid, body]));
        lines.push(json!(["RunResult", is_valid, answer]));
        lines.push(json!(["Problem", !is_valid, answer]));
    }
    let everything = "console.log('a'); progress(1, 2, 'half'); await tools.well.echo({ text: 'a' })";
    let streamed = events(create(&server, &[token, EVENTS], &typescript(everything)));
    let names: BTreeSet<&str> = streamed.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, BTreeSet::from(["run", "output", "progress", "call", "result"]));
    for (name, data) in &streamed {
        lines.push(json!(["Events", true, { name.as_str(): data }]));
    }
    let mut body = typescript("return 1");
    body["background"] = true.into();
    lines.push(json!(["RunningRun", true, create(&server, &[token], &body).message()]));
    // A page of the book says the same.
    let page = std::fs::read_to_string(crate::tidy::root().join("docs/rest.md")).unwrap();
    let (_, errors) = page.split_once("| status | when |\n|---|---|\n").unwrap();
    let rows = errors.lines().map_while(|line| line.strip_prefix("| ")?.split_once(" |"));
    let said: BTreeSet<&str> = rows.flat_map(|(statuses, _)| statuses.split(", ")).collect();
    let responses = document["components"]["responses"].as_object().unwrap();
    let mut listed: BTreeSet<&str> =
        responses.keys().map(|name| name.trim_start_matches("Problem")).collect();
    // The document has every method of every path.
    listed.insert("405");
    assert_eq!(listed, said);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut checking = Command::new(schemas_python())
        .arg(script("schemas/check_openapi.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    checking.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let mut said = String::new();
    checking.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    let checked = checking.wait_with_output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    assert_eq!(said.trim(), (lines.len() - 1).to_string());
}
