//! `cx serve --http` as its clients see it: with requests written by hand, and with rmcp's client.

/// Questions to the user during a call.
mod questions;
/// Calls that go on without their connection.
mod resumption;
/// Sessions, and clients without one.
mod sessions;

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use rmcp::model::{CallToolRequestParams, ProtocolVersion};
use rmcp::service::ClientLifecycleMode;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};

use crate::support::WEDGE;
use crate::support::serve::{END, Start, meta};
use crate::support::serve_http::{Reply, Server, Session, TOKEN, WATCHDOG, wait_for};

const LONG_OUTPUT: &str = "console.log('x'.repeat(60_000)); return 1";

/// Calls a chaos tool that does not answer.
const HANGS: &str = "return await tools.slow.target({})";

fn with_hanging_upstream() -> Server {
    Server::start(Start::new().server("slow", &["hang-call"]))
}

fn run_params(source: &str) -> Value {
    json!({ "name": "executeTypescript", "arguments": { "code": source } })
}

/// The address of a run's whole output.
fn kept_address(result: &Value) -> String {
    format!("cx://runs/{}/output", result["structuredContent"]["runId"].as_str().unwrap())
}

#[test]
fn every_revision_with_a_handshake() {
    let server = Server::plain();
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let reply = server.initialize(&[], version, &json!({}));
        let id = reply.header("mcp-session-id").unwrap().to_owned();
        assert_eq!(reply.message()["result"]["protocolVersion"], version);
        let headers = [("Mcp-Session-Id", id.as_str()), ("Mcp-Protocol-Version", version)];
        let call =
            json!({ "jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": run_params("return 1") });
        let answer = server.post(&headers, &call).message();
        assert_eq!(
            (&answer["id"], &answer["result"]["structuredContent"]["value"]),
            (&json!("x"), &json!(1))
        );
    }
}

#[tokio::test]
async fn a_client_of_the_sdk_in_both_kinds_of_revisions() {
    // A process has one crypto provider; other tests may have installed it.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let start = Start::new().variable("CX_HTTP_TOKEN", TOKEN);
    let server = tokio::task::spawn_blocking(|| Server::start(start)).await.unwrap();
    let newest = ProtocolVersion::V_2026_07_28;
    let discover = ClientLifecycleMode::Discover { preferred_versions: vec![newest] };
    for lifecycle in [ClientLifecycleMode::Initialize, discover] {
        let config = StreamableHttpClientTransportConfig::with_uri(format!("http://{}/mcp", server.address))
            .auth_header(TOKEN);
        let http = reqwest::Client::builder().build().unwrap();
        let transport = StreamableHttpClientTransport::with_client(http, config);
        let serving = rmcp::service::serve_client_with_lifecycle((), transport, lifecycle.clone());
        let client = tokio::time::timeout(WATCHDOG, serving).await.unwrap().unwrap();
        assert_eq!(client.list_all_tools().await.unwrap().len(), 3);
        for value in 0..3 {
            let arguments = json!({ "code": format!("return {value}") });
            let params = CallToolRequestParams::new("executeTypescript")
                .with_arguments(arguments.as_object().unwrap().clone());
            let result = client.call_tool(params).await.unwrap();
            assert_eq!(result.structured_content.unwrap()["value"], value, "{lifecycle:?}");
        }
        client.cancel().await.unwrap();
    }
}

#[test]
fn many_clients_at_once() {
    let server = Server::plain();
    std::thread::scope(|scope| {
        for client in 0..20 {
            let server = &server;
            scope.spawn(move || {
                let session = server.session();
                for number in 0..5 {
                    let source = format!("console.log('{client}'); return {client} * 1000 + {number}");
                    let result = session.run(&source);
                    assert_eq!(result["value"], client * 1000 + number, "{result}");
                    assert_eq!(result["output"], client.to_string());
                }
            });
        }
    });
}

#[test]
fn two_requests_with_one_id_are_two_requests() {
    let server = with_hanging_upstream();
    let session = server.session_without_resumption();
    let first = session.begin_run(1, HANGS);
    wait_for(|| server.notes("slow").contains("executed target").then_some(()));
    assert_eq!(session.run("return 1")["value"], 1);
    assert_eq!(session.begin_run(1, "return 2").result()["structuredContent"]["value"], 2);
    drop(first);
    server.wait_for_health(|health| health["connectionPool"]["active"] == 0);
}

#[test]
fn progress_and_printed_lines_come_with_their_request() {
    let server = Server::start(Start::new().server("well", &["well"]));
    let session = server.session();
    assert!(
        session.begin(1, "logging/setLevel", json!({ "level": "info" })).message().get("result").is_some()
    );
    let mut params = run_params("console.info('hello'); return await tools.well.echo({ text: 'a' })");
    params["_meta"] = json!({ "progressToken": "p" });
    let mut reply = session.begin(2, "tools/call", params);
    let messages: Vec<Value> = std::iter::from_fn(|| reply.next()).collect();
    let find = |method: &str| messages.iter().find(|message| message["method"] == method);
    let progress = find("notifications/progress").unwrap_or_else(|| panic!("{messages:#?}"));
    assert_eq!(progress["params"]["progressToken"], "p");
    let line = find("notifications/message").unwrap_or_else(|| panic!("{messages:#?}"));
    assert_eq!(line["params"]["data"], "hello");
    let last = messages.last().unwrap();
    assert_eq!((&last["id"], &last["result"]["structuredContent"]["success"]), (&json!(2), &json!(true)));
    // The same without a session.
    let mut params = run_params("return await tools.well.echo({ text: 'a' })");
    params["_meta"] = meta(json!({ "progressToken": "q" }));
    let mut reply = server.stateless("tools/call", params);
    assert_eq!(reply.next().unwrap()["params"]["progressToken"], "q");
}

#[test]
fn a_call_is_cancelled_by_another_request() {
    let server = with_hanging_upstream();
    let session = server.session();
    let mut reply = session.begin_run("long", HANGS);
    wait_for(|| server.notes("slow").contains("executed target").then_some(()));
    let params = json!({ "requestId": "long", "reason": "enough" });
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
    // A request with that id in another session is another request.
    assert_eq!(server.session().post(&cancel).status, 202);
    assert_eq!(server.health()["connectionPool"]["active"], 1);
    assert_eq!(session.post(&cancel).status, 202);
    assert_eq!(reply.next(), None, "there is no answer");
    wait_for(|| server.notes("slow").contains("cancelled").then_some(()));
    server.wait_for_health(|health| health["connectionPool"]["active"] == 0);
}

#[test]
fn long_scripts_are_tasks_in_both_kinds_of_revisions() {
    let tasks = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let server = Server::plain();
    let session = server.session_with(&tasks);
    let capable = json!({ "_meta": meta(json!({ "io.modelcontextprotocol/clientCapabilities": tasks })) });
    let with_meta = |mut params: Value| {
        params["_meta"] = capable["_meta"].clone();
        params
    };
    let long = run_params("await new Promise((resolve) => setTimeout(resolve, 4_000)); return 5");
    let in_session = |method: &str, params: Value| session.begin(1, method, params).result();
    let stateless = |method: &str, params: Value| server.stateless(method, with_meta(params)).result();
    for is_stateless in [false, true] {
        let ask = |method: &str, params: Value| {
            if is_stateless { stateless(method, params) } else { in_session(method, params) }
        };
        let begun = ask("tools/call", long.clone());
        assert_eq!((&begun["resultType"], &begun["status"]), (&json!("task"), &json!("working")), "{begun}");
        let id = begun["taskId"].as_str().unwrap();
        let done = wait_for(|| {
            Some(ask("tasks/get", json!({ "taskId": id }))).filter(|task| task["status"] != "working")
        });
        assert_eq!(done["result"]["structuredContent"]["value"], 5, "{done}");
    }
    // Another client, which does not have this task, gets an error that says so.
    let other = server.session_with(&tasks);
    let begun = in_session("tools/call", long);
    assert!(
        other.begin(1, "tasks/get", json!({ "taskId": begun["taskId"] })).message().get("error").is_some()
    );
}

/// By default each session, and each peer without one, may run 30 scripts a minute.
#[test]
fn a_client_has_a_rate_and_all_clients_have_one() {
    let run = run_params("return 1");
    let server = Server::start_with(&["--http", "127.0.0.1:0"], Start::new());
    let [session, other] = [server.session(), server.session()];
    let refused = |result: &Value| {
        let error = &result["structuredContent"]["error"];
        assert_eq!((&result["isError"], &error["code"]), (&json!(true), &json!("RATE_LIMITED")), "{result}");
        assert!(error["retryAfterMs"].as_f64().is_some_and(|ms| ms > 0.0 && ms <= 2_000.0), "{result}");
    };
    let runs = |ask: &dyn Fn() -> Value| {
        let started = Instant::now();
        let mut made = 0;
        let refusal = loop {
            let result = ask();
            if result["structuredContent"]["value"] != 1 {
                break result;
            }
            made += 1;
        };
        refused(&refusal);
        // Every two seconds one more may run.
        let most = 31 + started.elapsed().as_secs() / 2;
        assert!((30..=most).contains(&made), "{made}");
    };
    runs(&|| session.begin(1, "tools/call", run.clone()).result());
    // Wrong arguments start no run, and other requests are not limited.
    let wrong = json!({ "name": "executeTypescript", "arguments": {} });
    let wrong = session.begin(2, "tools/call", wrong).result();
    assert_eq!(wrong["structuredContent"]["error"]["code"], "INVALID_ARGUMENTS", "{wrong}");
    assert!(session.begin(3, "tools/list", json!({})).result()["tools"].is_array());
    assert_eq!(other.begin(1, "tools/call", run.clone()).result()["structuredContent"]["value"], 1);
    runs(&|| server.stateless("tools/call", run.clone()).result());
    // The configuration has a rate too; the command line has precedence.
    let configured = || Start::new().config("clientRate", json!({ "calls": 2, "perMs": 3_600_000 }));
    let server = Server::start_with(&["--http", "127.0.0.1:0"], configured());
    let session = server.session();
    for expected in [None, None, Some("RATE_LIMITED")] {
        let result = session.begin(1, "tools/call", run.clone()).result();
        assert_eq!(result["structuredContent"]["error"]["code"].as_str(), expected, "{result}");
    }
    let server = Server::start_with(&["--http", "127.0.0.1:0", "--client-rate", "0"], configured());
    let session = server.session();
    for _ in 0..4 {
        let result = session.begin(1, "tools/call", run.clone()).result();
        assert_eq!(result["structuredContent"]["value"], 1, "{result}");
    }
    let all = ["--http", "127.0.0.1:0", "--client-rate", "3", "--run-rate", "4"];
    let server = Server::start_with(&all, Start::new());
    let [first, second] = [server.session(), server.session()];
    for session in [&first, &first, &first, &second] {
        let result = session.begin(1, "tools/call", run.clone()).result();
        assert_eq!(result["structuredContent"]["value"], 1, "{result}");
    }
    for session in [&first, &second] {
        let error = &session.begin(1, "tools/call", run.clone()).result()["structuredContent"]["error"];
        assert_eq!(error["code"], "RATE_LIMITED", "{error}");
    }
}

#[test]
fn one_stream_to_listen_to() {
    let server = Server::plain();
    let session = server.session();
    let mut listening = session.listen();
    assert_eq!((listening.status, listening.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(session.listen().status, 409);
    assert_eq!(session.delete(), 202);
    assert_eq!(listening.next(), None, "it ends with its session");
}

#[test]
fn a_signal_ends_runs_and_the_server() {
    for stateless in [false, true] {
        let mut server = with_hanging_upstream();
        let reply = if stateless {
            let mut params = run_params(HANGS);
            // With messages before the answer, the answer is a stream.
            params["_meta"] = meta(json!({ "progressToken": 1 }));
            let address = server.address;
            let running = std::thread::scope(|scope| {
                let asking = scope.spawn(|| server.stateless("tools/call", params));
                wait_for(|| server.notes("slow").contains("executed target").then_some(()));
                server.signal("TERM");
                asking.join().unwrap()
            });
            assert_eq!(running.status, 200, "{address}");
            running
        } else {
            let session = server.session();
            let _listening = session.listen();
            let reply = session.begin_run(1, HANGS);
            wait_for(|| server.notes("slow").contains("executed target").then_some(()));
            server.signal("TERM");
            reply
        };
        let result = reply.result();
        assert_eq!(result["structuredContent"]["error"]["code"], "CANCELLED", "{result}");
        assert_eq!(server.wait(END).code(), Some(0));
        assert!(TcpStream::connect(server.address).is_err());
    }
}

/// The process ends so that a supervisor starts it again, after runs in flight could end.
#[test]
fn too_many_hung_workers_end_the_server() {
    let mut server = Server::plain();
    let session = server.session();
    let python = |code: &str| json!({ "name": "executePython", "arguments": { "code": code } });
    session.begin(1, "tools/call", python("1")).result();
    let last = python("import asyncio\nawait asyncio.sleep(15)\n'last output'");
    let last = session.begin(1, "tools/call", last);
    // A script that is stopped while it is prepared hangs nothing.
    let start = Instant::now();
    while server.health()["engines"]["typescript"]["hung"] != 3 {
        assert!(start.elapsed() < WATCHDOG, "nothing hangs");
        let arguments = json!({ "code": WEDGE, "timeoutMs": 2_000 });
        let params = json!({ "name": "executeTypescript", "arguments": arguments });
        let result = session.begin(2, "tools/call", params).result();
        assert_eq!(result["structuredContent"]["error"]["code"], "TIMEOUT", "{result}");
    }
    assert_eq!(session.run("return 1")["error"]["code"], "ENGINE_UNAVAILABLE");
    let sick = server.get("/healthz", &[]);
    assert_eq!(sick.status, 503);
    assert!(sick.body().contains(r#""healthy":false"#));
    let last = last.result();
    assert_eq!(last["structuredContent"]["value"], "last output", "{last}");
    assert_eq!(server.wait(WATCHDOG).code(), Some(3));
}

#[test]
fn nothing_is_read_from_stdin_or_written_to_stdout() {
    let (mut command, _directory) = Start::new().arguments(&["--http", "127.0.0.1:0"]).command();
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let kill = Command::new("kill").arg(child.id().to_string()).status();
    assert!(kill.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout), (Some(0), Vec::new()));
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "", "one line is all");
}

/// The outcome of starting with these arguments. If a server starts nevertheless, it is killed.
fn fails(arguments: &[&str], token: Option<&str>) -> Output {
    let (mut command, _directory) = Start::new().arguments(arguments).command();
    if let Some(token) = token {
        command.env("CX_HTTP_TOKEN", token);
    }
    let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let process = child.id().to_string();
    let (done, is_done) = std::sync::mpsc::channel();
    let watchdog = std::thread::spawn(move || {
        if is_done.recv_timeout(WATCHDOG).is_err() {
            let _killed = Command::new("kill").args(["-KILL", &process]).status();
        }
    });
    let output = child.wait_with_output().unwrap();
    let _bitten = done.send(());
    watchdog.join().unwrap();
    output
}

#[test]
fn what_cannot_be_is_said_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    std::fs::write(&file, TOKEN).unwrap();
    let mode = |mode: u32| std::os::unix::fs::PermissionsExt::from_mode(mode);
    std::fs::set_permissions(&file, mode(0o644)).unwrap();
    let file = file.display().to_string();
    let everywhere = ["--http", "0.0.0.0:0"];
    for (arguments, token, part) in [
        (vec!["--http", "0.0.0.0:0"], None, "expected a token of at least 32 characters"),
        (vec!["--http", "[::]:0"], None, "expected a token of at least 32 characters"),
        (everywhere.to_vec(), Some("0123456789abcdef0123456789abcde"), "at least 32 characters"),
        (vec!["--http", "127.0.0.1:0"], Some(""), "is empty"),
        (vec!["--http", "127.0.0.1:0"], Some("a b"), "visible ASCII"),
        (vec!["--http", "127.0.0.1:0", "--token-file", &file], None, "chmod 600"),
        (vec!["--http", "127.0.0.1:0", "--token-file", "/none"], None, "No such file"),
        (vec!["--http", "127.0.0.1:0", "--allow-origin", "example.com"], None, "expected an origin"),
        (
            vec!["--http", "127.0.0.1:0", "--allow-origin", "https://example.com/a"],
            None,
            "expected an origin",
        ),
        (vec!["--http", "here"], None, "invalid value 'here'"),
        (vec!["--metrics"], None, "needs an address"),
    ] {
        let output = fails(&arguments, token);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(part), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("listening"), "{stderr}");
        // A shorter one may be in any sentence.
        let token = token.filter(|token| token.len() > 3);
        assert!(token.is_none_or(|token| !stderr.contains(token)), "{stderr}");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let output = fails(&["--http", &taken.local_addr().unwrap().to_string()], None);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("failed to listen"));
    // A file that only its owner can read is fine.
    std::fs::set_permissions(&file, mode(0o600)).unwrap();
    let server = Server::start(Start::new().arguments(&["--token-file", &file]));
    assert_eq!(server.initialize(&[], "2025-11-25", &json!({})).status, 401);
    let bearer = format!("Bearer {TOKEN}");
    assert_eq!(server.initialize(&[("Authorization", &bearer)], "2025-11-25", &json!({})).status, 200);
}

#[test]
fn metrics_are_those_of_the_document() {
    let servers = Start::new().server("well", &["well"]).server("gone", &["exits-0"]);
    let server = Server::start(servers.arguments(&["--metrics"]));
    let session = server.session();
    session.run("await tools.well.echo({ text: 'a' }); throw new Error('x')");
    for _ in 0..6 {
        session.run("return await tools.gone.anything({})");
    }
    session.run("return 1");
    let reply = server.get("/metrics", &[]);
    assert!(reply.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    let text = reply.body();
    let document = include_str!("../../../docs/observability.md");
    let documented = |kind: &str| -> Vec<(String, String)> {
        let rows = document.lines().filter_map(|line| line.strip_prefix("| `"));
        let rows = rows.filter_map(|row| row.split_once("` | "));
        let rows = rows.filter(|(_, rest)| rest.starts_with(kind));
        rows.map(|(name, rest)| (name.to_owned(), rest.to_owned())).collect()
    };
    for kind in ["counter", "gauge", "histogram"] {
        let names = documented(kind);
        assert!(!names.is_empty());
        for (name, row) in &names {
            // Metrics of events that have not happened are absent.
            let is_there = text.contains(&format!("# TYPE {name} {kind}"));
            assert!(is_there || row.starts_with(&format!("{kind} *")), "{name}: {text}");
        }
        for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
            let (name, its_kind) = line.split_once(' ').unwrap();
            let is_documented = names.iter().any(|(known, _)| known == name);
            assert!(its_kind != kind || is_documented, "{name} is not in docs/observability.md");
            assert!(text.contains(&format!("# HELP {name} ")), "{name} is not described");
        }
    }
    for line in [
        "cx_runs_total{language=\"typescript\",outcome=\"ok\"} 1",
        "cx_runs_total{language=\"typescript\",outcome=\"RUNTIME_ERROR\"} ",
        "cx_run_duration_seconds_count{language=\"typescript\"} 8",
        "cx_tool_calls_total{server=\"well\",outcome=\"ok\"} 1",
        "cx_tool_call_duration_seconds_count{server=\"well\"} 1",
        "cx_servers_configured 2",
        "cx_servers_connected 1",
        "cx_http_sessions 1",
        "circuit_breaker_state{server=\"well\"} 0",
        "cx_runs_limit 100",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let plain = Server::plain();
    assert_eq!(plain.get("/metrics", &[]).status, 404);
    let other = plain.get("/", &[]);
    assert_eq!(other.status, 404);
    let said = other.body();
    assert!(said.contains("MCP clients connect to /mcp"), "{said}");
}
