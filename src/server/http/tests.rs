//! Behavior that only a test inside the process can provoke.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::HttpOptions;
use super::connections::MADE;
use super::listener::has_http_date;
use crate::error::Error;
use crate::executor::Executor;
use crate::run::history::HistoryLimits;
use crate::server::{HttpToken, Server, ServerOptions, ShutdownReason};

/// Fails a test that would otherwise hang.
const WATCHDOG: Duration = Duration::from_secs(120);

struct Running {
    executor: Executor,
    address: SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<Result<ShutdownReason, Error>>,
}

async fn serve(options: HttpOptions) -> Running {
    let executor = Executor::builder().keep_runs(HistoryLimits::default()).build().unwrap();
    let server = Server::new(executor.clone(), ServerOptions::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let serving = tokio::spawn({
        let stop = stop.clone();
        async move { server.serve_http(listener, options, &stop).await }
    });
    Running { executor, address, stop, serving }
}

impl Running {
    /// Sends a request and returns the head and the body of the answer.
    async fn post(&self, headers: &str, message: &Value) -> (String, String) {
        self.post_to("/mcp", headers, message).await
    }

    async fn post_to(&self, path: &str, headers: &str, message: &Value) -> (String, String) {
        self.send("POST", path, headers, &message.to_string()).await
    }

    async fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> (String, String) {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Content-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n{headers}\r\n{body}",
            body.len()
        );
        let exchange = async {
            let mut stream = TcpStream::connect(self.address).await.unwrap();
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            (head.to_lowercase(), body.to_owned())
        };
        timeout(WATCHDOG, exchange).await.expect("the server answers")
    }

    /// Starts a session and returns its header.
    async fn session(&self) -> String {
        let info = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
        let message = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let (head, _) = self.post("", &message).await;
        let id = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
        format!("Mcp-Session-Id: {id}\r\n")
    }
}

fn run(source: &str) -> Value {
    let params = json!({ "name": "executeTypescript", "arguments": { "code": source } });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
}

/// Threat 204, over HTTP.
#[tokio::test]
async fn mp_204_a_panic_is_an_error_of_its_request() {
    let server = serve(HttpOptions::default()).await;
    let session = server.session().await;
    let mut panics = json!({ "jsonrpc": "2.0", "id": 1, "method": "test/panic", "params": {} });
    for _ in 0..3 {
        let (_, body) = server.post(&session, &panics).await;
        assert!(body.contains("-32603") && body.contains("failed to handle this request"), "{body}");
    }
    panics["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let headers = "Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: test/panic\r\n";
    let (_, body) = server.post(headers, &panics).await;
    assert!(body.contains("-32603"), "{body}");
    let (_, body) = server.post(&session, &run("return 6 * 7")).await;
    assert!(body.contains("\"value\":42"), "{body}");
}

/// Threat 824. All tasks of the server are on this thread.
#[tokio::test]
async fn v_824_a_connection_is_told_how_large_the_answer_to_a_call_is() {
    let server = serve(HttpOptions::default()).await;
    let session = server.session().await;
    let source = "return 'x'.repeat(20_000)";
    let rest = json!({ "language": "typescript", "code": source, "stream": true });
    for (path, headers, message) in [("/mcp", &*session, &run(source)), ("/v1/runs", "", &rest)] {
        MADE.set(0);
        let (_, body) = server.post_to(path, headers, message).await;
        let made = MADE.get();
        assert!(made > 20_000 && made <= body.len(), "{path}: {made}, {} bytes were sent", body.len());
    }
}

/// Threat 863. So is one that resumes a stream, also with a request that has a body, which nobody reads.
#[tokio::test]
async fn v_863_a_request_with_a_body_resumes_a_stream_as_any_other() {
    let server = serve(HttpOptions::default()).await;
    let session = server.session().await;
    let (_, body) = server.post(&session, &run("return 'x'.repeat(20_000)")).await;
    let event = body.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
    MADE.set(0);
    let headers = format!("{session}Last-Event-ID: {event}\r\n");
    let (head, body) = server.send("GET", "/mcp", &headers, "x").await;
    assert!(head.starts_with("http/1.1 200") && body.contains("xxxx"), "{head}");
    assert!(MADE.get() > 20_000, "{}", MADE.get());
}

#[tokio::test]
async fn a_session_that_is_not_used_is_over() {
    // Longer than a busy machine takes between two requests.
    let options = HttpOptions { session_idle: Duration::from_secs(5), ..HttpOptions::default() };
    let server = serve(options).await;
    let session = server.session().await;
    // A session does not expire while a run is in flight.
    let long = "await new Promise((done) => setTimeout(done, 7000)); return 'x'.repeat(30000)";
    let (_, body) = server.post(&session, &run(long)).await;
    assert!(body.contains("valueTruncated"), "{body}");
    let history = server.executor.history().unwrap();
    let kept = || (0..9).map(|number| history.list(&format!("client {number}")).len()).sum::<usize>();
    assert_eq!(kept(), 1);
    let is_over = async {
        // The session's run records are dropped with it.
        while kept() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(WATCHDOG, is_over).await.expect("it ends");
    let (head, _) = server.post(&session, &run("return 1")).await;
    assert!(head.starts_with("http/1.1 404"), "{head}");
}

#[tokio::test]
async fn dropping_the_server_ends_its_runs() {
    let server = serve(HttpOptions::default()).await;
    let session = server.session().await;
    // Neither the script nor its time ends before the watchdog.
    let mut hangs = run("await new Promise((done) => setTimeout(done, 600_000))");
    hangs["params"]["arguments"]["timeoutMs"] = 600_000.into();
    let ends = async {
        while server.executor.run_stats().running == 0 {
            tokio::task::yield_now().await;
        }
        server.serving.abort();
        while server.executor.run_stats().running > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let request = async {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let body = hangs.to_string();
        let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
                    Accept: application/json, text/event-stream\r\n";
        let request = format!("{head}Content-Length: {}\r\n{session}\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).await.unwrap();
        let _broken = stream.read_to_end(&mut Vec::new()).await;
    };
    let both = async { tokio::join!(ends, request) };
    timeout(WATCHDOG, both).await.expect("both end");
    drop(server.stop);
}

#[test]
fn a_token_is_not_shown() {
    let token = HttpToken::new("a-secret-that-must-not-be-shown").unwrap();
    let options = HttpOptions { token: Some(token), ..HttpOptions::default() };
    assert!(!format!("{options:?}").contains("secret"), "{options:?}");
    assert!(options.validate([127, 0, 0, 1].into()).is_ok());
    // A token of 31 characters is too short where other machines can connect.
    assert!(options.validate([10, 0, 0, 1].into()).is_err());
    let mapped: std::net::IpAddr = "::ffff:10.0.0.1".parse().unwrap();
    assert!(options.validate(mapped).is_err());
    let mapped: std::net::IpAddr = "::ffff:127.0.0.1".parse().unwrap();
    assert!(HttpOptions::default().validate(mapped).is_ok());
}

#[test]
fn a_time_that_http_cannot_say_is_recognized() {
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    for (now, is_said) in
        [(0, true), (4_000_000_000, true), (253_402_300_799, true), (253_402_300_800, false)]
    {
        assert_eq!(has_http_date(at(now)), is_said, "{now}");
    }
    assert!(!has_http_date(SystemTime::UNIX_EPOCH - Duration::from_nanos(1)));
}
