//! Faults of servers. Each test has a server with exactly one fault.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use parking_lot::Mutex;
use rmcp::model::{CallToolRequestParams, ClientConfig, ErrorData, ProtocolVersion};
use rmcp::service::RunningService;
use rmcp::{RoleClient, ServiceError};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};
use url::Url;

use super::transport::PostTransport;
use super::*;
use crate::mcp::answers::call_tool;
use crate::mcp::errors::{OVERSIZED_ANSWER, UNREADABLE_ANSWER, tool_error};
use crate::mcp::notifications::Notifications;
use crate::mcp::settings::{HttpKind, McpServer, McpTransport};
use crate::tools::{ToolError, ToolErrorCode};

mod bodies;
mod certificates;
mod changes;
mod revisions;
mod sessions;
mod statuses;

/// One request as it was received.
#[derive(Clone, Debug)]
struct Asked {
    method: String,
    path: String,
    head: String,
    body: Value,
}

impl Asked {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

type Respond = Arc<dyn Fn(Asked, TcpStream) -> BoxFuture<'static, ()> + Send + Sync>;

struct Fake {
    url: Url,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Fake {
    /// Starts a server that reads each request and passes it to `respond`.
    async fn start<F: Future<Output = ()> + Send + 'static>(
        respond: impl Fn(Asked, TcpStream) -> F + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}/mcp", listener.local_addr().unwrap())).unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let respond: Respond = Arc::new(move |asked, stream| Box::pin(respond(asked, stream)));
        let log = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (respond, log) = (Arc::clone(&respond), Arc::clone(&log));
                tokio::spawn(async move {
                    if let Some((asked, stream)) = read_request(stream).await {
                        log.lock().push(asked.clone());
                        respond(asked, stream).await;
                    }
                });
            }
        });
        Self { url, asked }
    }

    /// Starts a server with the handshake of revision 2025-06-18 that answers `tools/call` by
    /// `call`.
    async fn with_call<F: Future<Output = ()> + Send + 'static>(
        call: impl Fn(Asked, TcpStream) -> F + Send + Sync + 'static,
    ) -> Self {
        let call = Arc::new(call);
        Self::start(move |asked, mut stream| {
            let call = Arc::clone(&call);
            async move {
                match asked.body["method"].as_str() {
                    Some("initialize") => {
                        let result = initialized(&asked);
                        respond(
                            &mut stream,
                            "200 OK",
                            "Content-Type: application/json\r\nMcp-Session-Id: s-1\r\n",
                            &result,
                        )
                        .await;
                    }
                    Some("notifications/initialized") => respond(&mut stream, "202 Accepted", "", "").await,
                    Some("tools/call") => call(asked, stream).await,
                    _ => respond(&mut stream, "405 Method Not Allowed", "", "").await,
                }
            }
        })
        .await
    }

    /// Waits until it was asked for this, this many times.
    async fn until_asked(&self, method: &str, count: usize) {
        timeout(WATCHDOG, async {
            while self.methods().iter().filter(|asked| *asked == method).count() < count {
                sleep(Duration::from_millis(10)).await;
            }
        })
        .await
        .unwrap();
    }

    fn methods(&self) -> Vec<String> {
        let asked = self.asked.lock();
        asked.iter().map(|asked| asked.body["method"].as_str().unwrap_or(&asked.method).to_owned()).collect()
    }
}

fn initialized(asked: &Asked) -> String {
    json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": {
        "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
        "serverInfo": { "name": "fake", "version": "1" },
    } })
    .to_string()
}

fn result(asked: &Asked, text: &str) -> String {
    let content = json!([{ "type": "text", "text": text }]);
    json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": { "content": content } }).to_string()
}

async fn read_request(mut stream: TcpStream) -> Option<(Asked, TcpStream)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let end = loop {
        let count = stream.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&buffer[..count]);
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut words = head.split(' ');
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut asked = Asked { method, path, head, body: Value::Null };
    let length: usize = asked.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    while bytes.len() < end + length {
        let count = stream.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
        bytes.extend_from_slice(&buffer[..count]);
    }
    asked.body = serde_json::from_slice(&bytes[end..]).unwrap_or_default();
    Some((asked, stream))
}

async fn respond(stream: &mut TcpStream, status: &str, headers: &str, body: &str) {
    let length = body.len();
    let text =
        format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    let _gone = stream.write_all(text.as_bytes()).await;
    let _gone = stream.shutdown().await;
}

async fn json_body(stream: &mut TcpStream, body: &str) {
    respond(stream, "200 OK", "Content-Type: application/json\r\n", body).await;
}

async fn begin_events(stream: &mut TcpStream) {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    let _gone = stream.write_all(head.as_bytes()).await;
}

/// What fails a test that would hang.
const WATCHDOG: Duration = Duration::from_secs(120);

/// Of what is answered, also on a busy machine.
const DEADLINES: Deadlines = Deadlines { connect: Duration::from_secs(60), request: Duration::from_secs(60) };

fn transport(server: &McpServer, deadlines: Deadlines) -> Result<(PostTransport, Arc<HttpState>), ToolError> {
    let McpTransport::Http(http) = &server.transport else { unreachable!() };
    connect_transport(Arc::from("s"), http, None, Arc::default(), Notifications::default(), deadlines)
}

type Running = RunningService<RoleClient, ClientConfig>;

async fn connect(server: &McpServer, deadlines: Deadlines) -> (Result<Running, ToolError>, Arc<HttpState>) {
    let (wire, state) = transport(server, deadlines).unwrap();
    let running = rmcp::serve_client(ClientConfig::default(), wire).await;
    let running = running.map_err(|error| {
        state
            .failure()
            .cloned()
            .unwrap_or_else(|| ToolError::new(ToolErrorCode::UpstreamProtocol, error.to_string()))
    });
    (running, state)
}

async fn connected(url: &Url) -> (Running, Arc<HttpState>) {
    connected_within(url, DEADLINES).await
}

async fn connected_within(url: &Url, deadlines: Deadlines) -> (Running, Arc<HttpState>) {
    let (running, state) = connect(&McpServer::http("s", url.clone()), deadlines).await;
    (running.unwrap(), state)
}

/// Waits until the server has announced a change of its tools.
async fn wait_for_change(state: &HttpState) {
    timeout(WATCHDOG, async {
        while state.notifications.tool_changes() == 0 {
            sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .unwrap();
}

async fn start_error(url: &Url) -> ToolError {
    connect(&McpServer::http("s", url.clone()), DEADLINES).await.0.err().unwrap()
}

async fn call(running: &Running) -> Result<Value, ErrorData> {
    let answered = call_tool(running, CallToolRequestParams::new("t"));
    match timeout(WATCHDOG, answered).await.expect("an answer") {
        Ok(result) => Ok(result),
        Err(ServiceError::McpError(error)) => Err(error),
        Err(error) => panic!("{error}"),
    }
}

/// The error of a call to which the server answers with this status and these headers.
async fn failure_of(status: &'static str, headers: &'static str) -> ToolError {
    let fake = Fake::with_call(move |_, mut stream| async move {
        respond(&mut stream, status, headers, "<html>no</html>").await;
    })
    .await;
    let (running, _state) = connected(&fake.url).await;
    tool_error(&call(&running).await.unwrap_err()).unwrap_or_else(|| panic!("{status}"))
}

#[tokio::test]
async fn a_call_is_answered_in_json_and_in_events() {
    let fake = Fake::with_call(|asked, mut stream| async move {
        if asked.body["params"]["arguments"]["events"] == true {
            begin_events(&mut stream).await;
            let text = format!("id: 1\nevent: message\ndata: {}\n\n", result(&asked, "streamed"));
            let _gone = stream.write_all(text.as_bytes()).await;
            sleep(Duration::from_secs(5)).await;
        } else {
            json_body(&mut stream, &result(&asked, "plain")).await;
        }
    })
    .await;
    let (running, state) = connected(&fake.url).await;
    assert_eq!(call(&running).await.unwrap()["content"][0]["text"], "plain");
    let arguments = json!({ "events": true }).as_object().cloned().unwrap();
    let streamed =
        call_tool(&running, CallToolRequestParams::new("t").with_arguments(arguments)).await.unwrap();
    assert_eq!(serde_json::to_value(streamed).unwrap()["content"][0]["text"], "streamed");
    // What the handshake negotiated is sent with every later request, and with no earlier one.
    let asked = fake.asked.lock().clone();
    assert_eq!(asked[0].header("mcp-session-id"), None);
    assert_eq!(asked[0].header("accept-encoding"), None);
    for asked in &asked[1..] {
        assert_eq!(asked.header("mcp-session-id"), Some("s-1"), "{asked:?}");
        assert_eq!(asked.header("mcp-protocol-version"), Some("2025-06-18"), "{asked:?}");
    }
    running.cancel().await.unwrap();
    assert_eq!(state.end_reason(), Some("was closed"));
    assert!(fake.methods().contains(&"DELETE".to_owned()));
}

#[tokio::test]
async fn up_224_no_listener_and_no_answer_end_within_the_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = |address| Url::parse(&format!("http://{address}/mcp")).unwrap();
    let server = McpServer::http("s", url(listener.local_addr().unwrap()));
    let short = Duration::from_millis(1500);
    let deadlines = Deadlines { connect: short, request: short };
    let error = connect(&server, deadlines).await.0.err().unwrap();
    assert!(error.message.contains("did not answer within 1500 ms"), "{}", error.message);
    // Nobody else gets its port, and nobody listens on it.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = url(socket.local_addr().unwrap());
    let error = start_error(&url).await;
    assert_eq!(error.code, ToolErrorCode::UpstreamUnavailable);
    assert!(error.message.contains("cannot be reached"), "{}", error.message);
    // No name has so long a label, so that no name server is asked for it.
    let url = Url::parse(&format!("http://{}.invalid/mcp", "x".repeat(64))).unwrap();
    let error = start_error(&url).await;
    assert!(error.message.contains("cannot be reached"), "{}", error.message);
}

#[tokio::test]
async fn up_224_what_is_not_tls_is_not_spoken_to_in_clear() {
    // The server answers in plain text. If it only waited, two equal deadlines would race.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("https://{}/mcp", listener.local_addr().unwrap())).unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&heard);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = [0; 4096];
            let count = stream.read(&mut buffer).await.unwrap_or(0);
            log.lock().extend_from_slice(&buffer[..count]);
            respond(&mut stream, "200 OK", "", "").await;
        }
    });
    let error = start_error(&url).await;
    assert_eq!(error.code, ToolErrorCode::UpstreamUnavailable);
    assert!(error.message.contains("cannot be reached"), "{}", error.message);
    let heard = heard.lock();
    // 22: a TLS handshake record.
    assert_eq!(heard.first(), Some(&22));
    assert!(!heard.windows(5).any(|window| window == b"POST "), "{heard:?}");
}

#[tokio::test]
async fn a_server_that_asks_too_much_is_cut_off_and_one_that_pings_is_answered() {
    for (count, is_cut_off) in [(3, false), (500, true)] {
        let pongs = Arc::new(AtomicUsize::new(0));
        let arrived = Arc::clone(&pongs);
        let fake = Fake::start(move |asked, mut stream| {
            let arrived = Arc::clone(&arrived);
            async move {
                match (asked.method.as_str(), asked.body["method"].as_str()) {
                    (_, Some("initialize")) => json_body(&mut stream, &initialized(&asked)).await,
                    (_, Some("tools/call")) => {
                        begin_events(&mut stream).await;
                        for id in 0..count {
                            let ping = json!({ "jsonrpc": "2.0", "id": format!("p{id}"), "method": "ping" });
                            let _gone = stream.write_all(format!("data: {ping}\n\n").as_bytes()).await;
                        }
                        while arrived.load(Ordering::Relaxed) < count {
                            sleep(Duration::from_millis(10)).await;
                        }
                        let event = format!("data: {}\n\n", result(&asked, "done"));
                        let _gone = stream.write_all(event.as_bytes()).await;
                    }
                    ("GET", _) => respond(&mut stream, "405 Method Not Allowed", "", "").await,
                    // The server accepts answers slowly.
                    _ if !asked.body["result"].is_null() => {
                        arrived.fetch_add(1, Ordering::Relaxed);
                        sleep(Duration::from_millis(300)).await;
                        respond(&mut stream, "202 Accepted", "", "").await;
                    }
                    _ => respond(&mut stream, "202 Accepted", "", "").await,
                }
            }
        })
        .await;
        let (running, state) = connected(&fake.url).await;
        let answered = call_tool(&running, CallToolRequestParams::new("t"));
        let answered = timeout(WATCHDOG, answered).await.unwrap();
        assert_eq!(answered.is_err(), is_cut_off, "{answered:?}");
        assert_eq!(state.end_reason(), is_cut_off.then_some("asked too much at once"));
        if !is_cut_off {
            assert_eq!(pongs.load(Ordering::Relaxed), count);
        }
    }
}

/// The calls of a run that has ended are cancelled at once, which the server is slow to accept. What it asks
/// during a call of another run is answered all the same.
#[tokio::test]
async fn v_578_cancellations_do_not_take_the_place_of_answers() {
    let is_answered = Arc::new(tokio::sync::Notify::new());
    let fake = Fake::start(move |asked, mut stream| {
        let is_answered = Arc::clone(&is_answered);
        async move {
            match (asked.method.as_str(), asked.body["method"].as_str()) {
                (_, Some("initialize")) => json_body(&mut stream, &initialized(&asked)).await,
                (_, Some("notifications/cancelled")) => std::future::pending::<()>().await,
                (_, Some("tools/call")) if asked.body["params"]["name"] == "hangs" => {
                    std::future::pending::<()>().await;
                }
                (_, Some("tools/call")) => {
                    begin_events(&mut stream).await;
                    let ping = b"data: {\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n\n";
                    let _gone = stream.write_all(ping).await;
                    is_answered.notified().await;
                    let event = format!("data: {}\n\n", result(&asked, "done"));
                    let _gone = stream.write_all(event.as_bytes()).await;
                }
                ("GET", _) => respond(&mut stream, "405 Method Not Allowed", "", "").await,
                _ => {
                    if asked.body["id"] == "p" {
                        is_answered.notify_one();
                    }
                    respond(&mut stream, "202 Accepted", "", "").await;
                }
            }
        }
    })
    .await;
    let (running, state) = connected(&fake.url).await;
    let hanging = (0..20).map(|_| running.call_tool_once(CallToolRequestParams::new("hangs")));
    tokio::select! {
        answers = join_all(hanging) => panic!("{answers:?}"),
        () = fake.until_asked("tools/call", 20) => {}
    }
    fake.until_asked("notifications/cancelled", 16).await;
    let cancellations =
        || fake.methods().iter().filter(|method| *method == "notifications/cancelled").count();
    assert_eq!(call(&running).await.unwrap()["content"][0]["text"], "done");
    assert_eq!((cancellations(), state.end_reason()), (16, None));
}

#[tokio::test]
async fn a_cancelled_call_is_told_and_its_exchange_is_closed() {
    let fake = Fake::with_call(|_, mut stream| async move {
        let mut byte = [0];
        let _closed = stream.read(&mut byte).await;
    })
    .await;
    let (running, _state) = connected(&fake.url).await;
    let answered = running.call_tool_once(CallToolRequestParams::new("t"));
    tokio::select! {
        answer = answered => panic!("{answer:?}"),
        () = fake.until_asked("tools/call", 1) => {}
    }
    fake.until_asked("notifications/cancelled", 1).await;
}

#[tokio::test]
async fn changes_that_the_server_announces_on_its_own_stream_are_counted() {
    let fake = Fake::start(|asked, mut stream| async move {
        match (asked.method.as_str(), asked.body["method"].as_str()) {
            (_, Some("initialize")) => json_body(&mut stream, &initialized(&asked)).await,
            ("GET", _) => {
                begin_events(&mut stream).await;
                let event =
                    b"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\r\n\r\n";
                let _gone = stream.write_all(event).await;
                sleep(Duration::from_secs(5)).await;
            }
            _ => respond(&mut stream, "202 Accepted", "", "").await,
        }
    })
    .await;
    let (_running, state) = connected(&fake.url).await;
    wait_for_change(&state).await;
}

#[tokio::test]
async fn headers_that_cannot_be_sent_are_named_without_their_values() {
    for (name, value, words) in [
        ("X-Token", "secret\r\nX: y", "has a value that cannot be sent"),
        ("bad name", "secret", "is not a header's name"),
        ("Mcp-Session-Id", "secret", "is set by the protocol"),
    ] {
        let server = McpServer::http("s", Url::parse("http://127.0.0.1:1/").unwrap()).header(name, value);
        let error = transport(&server, DEADLINES).err().unwrap();
        assert!(error.message.contains(words) && error.message.contains(name), "{}", error.message);
        assert!(!error.message.contains("secret"), "{}", error.message);
    }
}

#[tokio::test]
async fn a_server_cannot_forge_the_errors_of_this_transport() {
    let fake = Fake::with_call(|asked, mut stream| async move {
        let error = json!({ "code": i32::MIN + 2, "message": "x", "data": { "code": "CANCELLED" } });
        let body = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "error": error }).to_string();
        json_body(&mut stream, &body).await;
    })
    .await;
    let (running, _state) = connected(&fake.url).await;
    assert!(tool_error(&call(&running).await.unwrap_err()).is_none());
}

#[tokio::test]
async fn calls_at_once_do_not_wait_for_each_other() {
    let running_now = Arc::new(AtomicUsize::new(0));
    let all = Arc::new(tokio::sync::Barrier::new(20));
    let (count, barrier) = (Arc::clone(&running_now), Arc::clone(&all));
    let fake = Fake::with_call(move |asked, mut stream| {
        let (count, barrier) = (Arc::clone(&count), Arc::clone(&barrier));
        async move {
            count.fetch_add(1, Ordering::Relaxed);
            barrier.wait().await;
            json_body(&mut stream, &result(&asked, "x")).await;
        }
    })
    .await;
    let (running, _state) = connected(&fake.url).await;
    let calls = futures::future::join_all((0..20).map(|_| call(&running))).await;
    assert!(calls.iter().all(Result::is_ok));
    assert_eq!(running_now.load(Ordering::Relaxed), 20);
}
