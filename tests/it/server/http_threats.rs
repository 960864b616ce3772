//! Attacks on `cx serve --http`: from pages, from processes without the token, and from clients that break rules.

/// Bodies and heads that are large, or do not end.
mod bodies;
/// Connections and sessions without number, and clients that do not read.
mod connections;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::serve::Start;
use crate::support::serve_http::{Reply, Server, TOKEN, WATCHDOG, wait_for, wait_within};

/// Shorter than the run's own time limit, at which its calls are cancelled anyway.
const SOON: Duration = Duration::from_secs(15);

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;

const JSON: [(&str, &str); 2] =
    [("Accept", "application/json, text/event-stream"), ("Content-Type", "application/json")];

/// The server still works.
fn is_well(server: &Server) {
    assert_eq!(server.session().run("return 1")["value"], 1);
}

#[test]
fn pages_of_other_origins_may_not_ask() {
    let allowed = "https://app.example.com";
    let server = Server::start(Start::new().arguments(&["--allow-origin", allowed, "--metrics"]));
    for (origin, is_allowed) in [
        (allowed, true),
        ("https://app.example.com:443", true),
        ("http://localhost:3000", true),
        ("http://127.0.0.1", true),
        ("http://[::1]:8080", true),
        ("https://localhost", true),
        ("http://app.example.com", false),
        ("https://app.example.com:8443", false),
        ("https://app.example.com.evil.example", false),
        ("https://evil.example", false),
        ("http://localhost.evil.example", false),
        ("http://127.0.0.1.evil.example", false),
        ("http://128.0.0.1", false),
        ("http://0.0.0.0", false),
        ("null", false),
        ("file://", false),
        ("localhost", false),
        ("", false),
        ("\u{e9}", false),
    ] {
        let header = ("Origin", origin);
        for path in ["/mcp", "/healthz", "/metrics", "/else"] {
            let status = server.get(path, &[header]).status;
            assert_eq!(status != 403, is_allowed, "{origin}: {path}: {status}");
        }
        let reply = server.initialize(&[header], "2025-11-25", &json!({}));
        assert_eq!(reply.status, if is_allowed { 200 } else { 403 }, "{origin}");
        let told = is_allowed.then_some(origin);
        assert_eq!(reply.header("access-control-allow-origin"), told, "{origin}");
        let asks = [header, ("Access-Control-Request-Method", "POST")];
        let preflight = server.send("OPTIONS", "/mcp", &asks, "");
        assert_eq!(preflight.status, if is_allowed { 204 } else { 403 }, "{origin}");
        assert_eq!(preflight.header("access-control-allow-origin"), told);
        assert_eq!(preflight.header("access-control-allow-methods").is_some(), is_allowed);
    }
    // A page may send what the protocol asks of it: the headers of arguments have the names that tools give them.
    let asks = [
        ("Origin", allowed),
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "mcp-method,mcp-param-region, Mcp-Param-N ,traceparent,x-odd"),
    ];
    let preflight = server.send("OPTIONS", "/mcp", &asks, "");
    let may_send = preflight.header("access-control-allow-headers").unwrap().to_ascii_lowercase();
    let may_send: Vec<&str> = may_send.split(", ").collect();
    for (name, is_allowed) in [
        ("mcp-method", true),
        ("mcp-param-region", true),
        ("mcp-param-n", true),
        ("traceparent", true),
        ("x-odd", false),
    ] {
        assert_eq!(may_send.contains(&name), is_allowed, "{name}: {may_send:?}");
    }
    // Two `Origin` headers are refused, even if one of them is allowed.
    assert_eq!(
        server.get("/healthz", &[("Origin", allowed), ("Origin", "https://evil.example")]).status,
        403
    );
}

#[test]
fn a_foreign_host_name_does_not_lead_here() {
    let server = Server::plain();
    for (host, is_ours) in [
        ("localhost", true),
        ("LOCALHOST:1", true),
        ("127.0.0.1:80", true),
        ("[::1]:80", true),
        ("evil.example", false),
        ("evil.example:80", false),
        ("127.0.0.1.evil.example", false),
        ("localhost.evil.example", false),
        ("127.0.0.1@evil.example", false),
        ("evil.example/127.0.0.1", false),
        ("", false),
    ] {
        for path in ["/mcp", "/healthz"] {
            let status = server.get(path, &[("Host", host)]).status;
            assert_eq!(status != 403, is_ours, "{host}: {path}: {status}");
        }
    }
    assert_eq!(server.get("/healthz", &[("Host", "localhost"), ("Host", "evil.example")]).status, 403);
    is_well(&server);
}

#[test]
fn nothing_is_done_without_the_token() {
    let start = || Start::new().variable("CX_HTTP_TOKEN", TOKEN).arguments(&["--metrics"]);
    for address in ["127.0.0.1:0", "0.0.0.0:0"] {
        let server = Server::start_at(address, start());
        let almost = format!("Bearer {}g", &TOKEN[..31]);
        let prefix = format!("Bearer {}", &TOKEN[..31]);
        let longer = format!("Bearer {TOKEN}0");
        let basic = format!("Basic {TOKEN}");
        let right = format!("bearer {TOKEN}");
        for wrong in ["", "Bearer", "Bearer ", &almost, &prefix, &longer, &basic, TOKEN, "Bearer \u{e9}"] {
            let header = [("Authorization", wrong)];
            for path in ["/mcp", "/metrics", "/else"] {
                let reply = server.get(path, &header);
                assert_eq!(reply.status, 401, "{path}: {wrong}");
                assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
            }
            let reply = server.initialize(&header, "2025-11-25", &json!({}));
            assert_eq!((reply.status, reply.header("mcp-session-id")), (401, None), "{wrong}");
        }
        let twice = [("Authorization", right.as_str()), ("Authorization", right.as_str())];
        assert_eq!(server.get("/metrics", &twice).status, 401);
        let header = [("Authorization", right.as_str())];
        assert_eq!(server.get("/metrics", &header).status, 200);
        assert_eq!(server.initialize(&header, "2025-11-25", &json!({})).status, 200);
        // Every peer may see whether the server is healthy. Only this machine sees the details.
        let health = server.health();
        assert_eq!(health["healthy"], true);
        assert_eq!(health.as_object().unwrap().len() > 1, address.starts_with("127."), "{health}");
        let reply = server.get("/healthz", &header);
        assert!(reply.body().contains("connectionPool"));
        // The id of another client's session gives no access without the token.
        let id = server.initialize(&header, "2025-11-25", &json!({}));
        let id = id.header("mcp-session-id").unwrap();
        assert_eq!(server.send("DELETE", "/mcp", &[("Mcp-Session-Id", id)], "").status, 401);
    }
}

#[test]
fn what_is_no_message_is_told_so() {
    let server = Server::plain();
    let session = server.session();
    let post = |body: &str| {
        let mut headers = JSON.to_vec();
        headers.push(("Mcp-Session-Id", &session.id));
        server.send("POST", "/mcp", &headers, body)
    };
    for (body, code) in [
        ("{bad", -32700),
        ("", -32700),
        ("\u{0}\u{1}", -32700),
        ("5", -32600),
        ("{}", -32600),
        ("null", -32600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        (&format!("{}{}", "[".repeat(200_000), "]".repeat(200_000)), -32600),
        (&"{\"a\":".repeat(200_000), -32700),
    ] {
        let reply = post(body);
        let shown = &body[..body.len().min(60)];
        assert_eq!(reply.status, 400, "{shown}");
        let answer = reply.message();
        assert_eq!(answer["error"]["code"], code, "{shown}: {answer}");
    }
    let with_id = post(r#"{"jsonrpc":"2.0","id":"mine","params":{}}"#).message();
    assert_eq!(with_id["id"], "mine", "{with_id}");
    // A known method with wrong parameters, and an unknown one.
    let wrong = post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}"#).message();
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    assert_eq!(post(r#"{"jsonrpc":"2.0","id":1,"method":"else"}"#).message()["error"]["code"], -32601);
    for (headers, status) in [
        (vec![JSON[0], ("Content-Type", "text/plain")], 415),
        (vec![JSON[0]], 415),
        (vec![JSON[0], JSON[1], ("Content-Encoding", "gzip")], 415),
        (vec![JSON[1], ("Accept", "application/json")], 406),
        (vec![JSON[1]], 406),
    ] {
        assert_eq!(server.send("POST", "/mcp", &headers, INITIALIZE).status, status, "{headers:?}");
    }
    assert_eq!(server.send("PUT", "/mcp", &JSON, INITIALIZE).status, 405);
    assert_eq!(session.run("return 1")["value"], 1);
}

#[test]
fn sessions_that_are_not_there() {
    let server = Server::plain();
    let stream = ("Accept", "text/event-stream");
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    assert_eq!(server.get("/mcp", &[stream]).status, 400);
    assert_eq!(server.post(&[], &call).status, 400);
    assert_eq!(server.send("DELETE", "/mcp", &[], "").status, 400);
    let session = server.session();
    let mut guess = session.id.clone();
    let last = if guess.pop() == Some('0') { '1' } else { '0' };
    guess.push(last);
    for id in ["absent", &guess, "", "../../etc", "a b", "\u{e9}", &"x".repeat(10_000)] {
        let header = ("Mcp-Session-Id", id);
        for status in [
            server.get("/mcp", &[stream, header]).status,
            server.post(&[header], &call).status,
            server.send("DELETE", "/mcp", &[header], "").status,
        ] {
            // A header's value cannot have characters beyond ASCII.
            assert_eq!(status, if id.is_ascii() { 404 } else { 400 }, "{id}");
        }
    }
    // The rest of the line is a separate header, and not a part of the id.
    let split = format!("absent\r\nMcp-Session-Id: {}", session.id);
    assert_eq!(server.post(&[("Mcp-Session-Id", &split)], &call).status, 404);
    // As many bytes as the server reads, written at once: if it closes with bytes unread, a reset may reach the client
    // before the answer does.
    let start = "GET /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: ";
    let long = format!("{start}{}", "x".repeat((64 << 10) - start.len()));
    let headers: String = (0..200).map(|number| format!("X-{number}: a\r\n")).collect();
    let many = format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
    for head in [long, many] {
        let mut stream = server.connect();
        stream.write_all(head.as_bytes()).unwrap();
        assert_eq!(Reply::read(stream).status, 431);
    }
    let megabyte = "x".repeat(1 << 20);
    let _refused = write!(server.connect(), "{start}{megabyte}\r\n\r\n");
    assert_eq!(session.run("return 1")["value"], 1);
}

/// Begins a request and sends this much of its body.
fn begin_body(server: &Server, bytes: usize) -> TcpStream {
    let mut stream = server.connect();
    let length = 34 << 20;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: {}\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n",
        JSON[0].1
    );
    // The server may have answered and closed the connection before it has read anything.
    let _refused = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&vec![b' '; bytes]));
    stream
}

#[test]
fn no_secret_is_logged() {
    let (mut command, _directory) =
        Start::new().arguments(&["--http", "127.0.0.1:0"]).variable("CX_LOG", "trace").command();
    command
        .env("CX_HTTP_TOKEN", TOKEN)
        .stdin(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let log = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let reading = std::thread::spawn({
        let log = std::sync::Arc::clone(&log);
        move || {
            let mut bytes = [0; 65_536];
            while let Ok(count @ 1..) = stderr.read(&mut bytes) {
                log.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        }
    });
    let address = wait_for(|| {
        let log = log.lock().unwrap();
        let rest = log.split("listening on http://").nth(1)?;
        Some(rest.split_once("/mcp")?.0.to_owned())
    });
    for token in [TOKEN, "fedcba9876543210fedcba9876543210"] {
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\
             Accept: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{INITIALIZE}",
            JSON[0].1,
            INITIALIZE.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(!answer.contains(token));
    }
    // A server that is asked to end writes what it still has to log; one that is killed does not.
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    child.wait().unwrap();
    reading.join().unwrap();
    let log = log.lock().unwrap();
    assert!(log.contains("rmcp::service"), "requests are logged: {log}");
    assert!(!log.contains(&TOKEN[4..]), "the token is in the log");
}

/// The request for a run of a client without a session, with these additional headers.
fn stateless_run(source: &str, more: &str, body_of: impl Fn(&str) -> String) -> String {
    let mut params = json!({ "name": "executeTypescript", "arguments": { "code": source } });
    params["_meta"] = crate::support::serve::meta(json!({}));
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let headers: String = JSON.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\n{headers}Mcp-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: executeTypescript\r\n{more}\r\n{}",
        body_of(&message)
    )
    .replace("LENGTH", &message.len().to_string())
}

/// Threat 390. A client that has closed its sending direction still gets its answer.
#[test]
fn v_390_a_client_that_has_only_finished_writing_gets_its_answer() {
    let server = Server::plain();
    let length = "Content-Length: LENGTH\r\n";
    for (source, value) in [
        ("return 6 * 7", "\"value\":42"),
        ("await new Promise((done) => setTimeout(done, 500)); return 6 * 7", "\"value\":42"),
        // Longer than the time until the interim response, which does not change the answer.
        ("await new Promise((done) => setTimeout(done, 6_000)); return 6 * 7", "\"value\":42"),
        ("for (let i = 0; i < 9; i++) console.log('x'.repeat(20_000)); return 6 * 7", "\"value\":42"),
    ] {
        let mut stream = server.connect();
        stream.write_all(stateless_run(source, length, str::to_owned).as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        // Of the others only a slow machine lets the client wait as long.
        let is_short = !source.contains("6_000");
        assert!(is_short || answer.starts_with("HTTP/1.1 100"), "{source}: {answer}");
        assert!(answer.contains("HTTP/1.1 200") && answer.contains(value), "{source}: {answer}");
    }
    let mut stream = server.connect();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("\"healthy\":true"), "{answer}");
    // In a session the answer is a stream of events.
    let session = server.session();
    let source = "console.log(1); await new Promise((done) => setTimeout(done, 4_000)); return 6 * 7";
    let params = json!({ "name": "executeTypescript", "arguments": { "code": source } });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let mut stream = server.connect();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n\
         Content-Type: application/json\r\nMcp-Session-Id: {}\r\nContent-Length: {}\r\n\r\n{message}",
        session.id(),
        message.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"value\":42"), "{answer}");
    // A body that is cut off is not a request.
    let mut stream = server.connect();
    stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    let _reset = stream.read_to_string(&mut answer);
    assert!(!answer.contains("200 OK"), "{answer}");
    is_well(&server);
}

/// Threat 391. A proxy and this server could read different bodies of a request with two lengths.
#[test]
fn v_391_requests_of_two_lengths_are_refused() {
    let server = Server::plain();
    let chunked = |message: &str| format!("{:x}\r\n{message}\r\n0\r\n\r\n", message.len());
    for (more, is_refused) in [
        ("Content-Length: LENGTH\r\nTransfer-Encoding: chunked\r\n", true),
        ("Transfer-Encoding: chunked\r\nContent-Length: LENGTH\r\n", true),
        ("transfer-encoding: chunked\r\nX: y\r\ncontent-length: 0\r\n", true),
        ("Transfer-Encoding: chunked\r\n", false),
    ] {
        // The bytes that follow on the connection are not read as another request.
        let request = stateless_run("return 6 * 7", more, chunked);
        let smuggled = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
        for before in ["", smuggled] {
            let mut stream = server.connect();
            stream.write_all(format!("{before}{request}{smuggled}").as_bytes()).unwrap();
            let mut answer = String::new();
            let _reset = stream.read_to_string(&mut answer);
            let bad = usize::from(is_refused);
            assert_eq!(answer.matches("HTTP/1.1 400").count(), bad, "{more}: {answer}");
            let well = 1 - bad + usize::from(!before.is_empty());
            assert_eq!(answer.matches("HTTP/1.1 200").count(), well, "{more}: {answer}");
            assert_eq!(answer.contains("\"value\":42"), !is_refused, "{more}: {answer}");
        }
    }
    is_well(&server);
}

/// Threat 392.
#[test]
fn v_392_requests_for_other_hosts_are_refused() {
    let start = || Start::new().variable("CX_HTTP_TOKEN", TOKEN);
    for server in [Server::plain(), Server::start_at("0.0.0.0:0", start())] {
        for (target, host, status) in [
            ("http://other.example/healthz", "localhost", 403),
            ("http://other.example/healthz", "127.0.0.1", 403),
            ("http://localhost/healthz", "other.example", 403),
            ("http://localhost/healthz", "localhost", 200),
            ("/healthz", "localhost", 200),
        ] {
            let mut stream = server.connect();
            write!(stream, "GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
            assert_eq!(crate::support::serve_http::Reply::read(stream).status, status, "{target}: {host}");
        }
    }
}
