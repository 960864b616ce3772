//! Third-party servers behind an address: streamable HTTP, its predecessor, and FastMCP with and without
//! authentication.

use std::io::{BufRead as _, BufReader, Read};
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use cx::auth::{self, AuthStatus};
use cx::{CallProgress, CancellationToken, ErrorCode, Executor, HttpKind, McpServer, McpTransport, Script};
use parking_lot::Mutex;
use serde_json::{Value, json};
use url::Url;

use crate::support::interop::{call, executor, node, python, script, value};

/// The maximum time of a start on a busy machine.
const START_TIME: Duration = Duration::from_secs(120);

/// A server that listens. Dropping this ends it with all of its processes.
struct Listening {
    process: Child,
    url: String,
}

impl Listening {
    /// `server-everything` at a port that was free a moment ago.
    fn everything(mode: &str, path: &str) -> Self {
        // Another program may take the port meanwhile.
        for _ in 0..5 {
            let free = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = free.local_addr().unwrap().port();
            drop(free);
            let mut command = Command::new("node");
            command.args([node("server-everything"), mode.to_owned()]).env("PORT", port.to_string());
            let url = format!("http://127.0.0.1:{port}/{path}");
            let mut process = spawn(command.stderr(Stdio::piped()));
            let output = process.stderr.take().unwrap();
            let started = Self { process, url };
            if first_line(output, move |line| line.ends_with(&format!("on port {port}")).then_some(()))
                .is_some()
            {
                return started;
            }
        }
        panic!("it does not listen");
    }

    fn fastmcp(authorization: &str) -> Self {
        let mut command = Command::new(python("python"));
        command.args([&*script("fastmcp_server.py"), "http", authorization]);
        let mut process = spawn(command.stdout(Stdio::piped()).stderr(Stdio::null()));
        let output = process.stdout.take().unwrap();
        let url = first_line(output, |line| line.strip_prefix("listening ").map(str::to_owned));
        let url = url.expect("it listens");
        Self { process, url }
    }

    fn server(&self, kind: HttpKind) -> McpServer {
        let mut server = McpServer::http("remote", self.url.parse().unwrap());
        let McpTransport::Http(http) = &mut server.transport else { unreachable!("it has an address") };
        http.kind = kind;
        server
    }

    fn executor(&self) -> Executor {
        executor(self.server(HttpKind::Detect))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let group = rustix::process::Pid::from_child(&self.process);
        let _gone = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _reaped = self.process.wait();
    }
}

fn spawn(command: &mut Command) -> Child {
    if command.get_program() == "node" {
        command.stdout(Stdio::null());
    }
    command.stdin(Stdio::null()).process_group(0).spawn().unwrap()
}

/// Returns what `find` finds in the first line that has it, if there is one in time. The other lines are read too, so
/// that the server never blocks.
fn first_line<T: Send + 'static>(
    output: impl Read + Send + 'static,
    find: impl Fn(&str) -> Option<T> + Send + 'static,
) -> Option<T> {
    let (sender, found) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Some(found) = find(&line) {
                let _only_the_first_is_read = sender.send(found);
            }
        }
    });
    found.recv_timeout(START_TIME).ok()
}

/// Keeps the progress that a run reports.
fn listening(source: &str) -> (Script, Arc<Mutex<Vec<CallProgress>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&heard);
    (Script::typescript(source).on_progress(move |progress| keep.lock().push(progress.clone())), heard)
}

/// The revision of the protocol that the executor's only server speaks.
fn revision(executor: &Executor) -> String {
    executor.server_stats()[0].protocol_version.clone().expect("there is a connection")
}

/// Lists, calls, hears of progress and cancels.
async fn check_everything(listening_at: &Listening, kind: HttpKind) {
    let executor = executor(listening_at.server(kind));
    assert_eq!(executor.connect_servers().await, [("remote".to_owned(), Ok(()))]);
    let names =
        value(&executor, "return (await discoverMCPTools({})).map((tool) => tool.name)", Value::Null).await;
    assert_eq!(names.as_array().unwrap().len(), 15, "{names}");
    assert_eq!(call(&executor, "remote", "echo", json!({ "message": "hi" })).await["result"], "Echo: hi");
    assert_eq!(revision(&executor), "2025-11-25");

    let (script, heard) =
        listening("return tools.remote.triggerLongRunningOperation({ duration: 1.5, steps: 3 })");
    let result = executor.run(script).await.unwrap();
    let text = result.value().unwrap_or_else(|| panic!("{}", result.to_json())).to_string();
    assert!(text.contains("completed. Duration: 1.5 seconds, Steps: 3."), "{text}");
    let heard: Vec<_> =
        heard.lock().iter().map(|heard| (heard.progress.progress, heard.progress.total)).collect();
    assert_eq!(heard, [(1.0, Some(3.0)), (2.0, Some(3.0)), (3.0, Some(3.0))]);

    // Cancels a call of a minute as soon as it has reported its start.
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let source = "return tools.remote.triggerLongRunningOperation({ duration: 60, steps: 600 })";
    let script = Script::typescript(source).cancel_with(cancel).on_progress(move |_progress| stop.cancel());
    let result = executor.run(script).await.unwrap();
    assert_eq!(result.error().unwrap().code, ErrorCode::Cancelled, "{}", result.to_json());
    // The connection works as before.
    assert_eq!(call(&executor, "remote", "echo", json!({ "message": "on" })).await["result"], "Echo: on");
    executor.close().await;
}

#[tokio::test]
async fn server_everything_over_streamable_http() {
    let server = Listening::everything("streamableHttp", "mcp");
    check_everything(&server, HttpKind::Detect).await;
    check_everything(&server, HttpKind::Streamable).await;
}

#[tokio::test]
async fn server_everything_over_server_sent_events() {
    let server = Listening::everything("sse", "sse");
    check_everything(&server, HttpKind::Detect).await;
    check_everything(&server, HttpKind::Sse).await;
}

#[tokio::test]
async fn fastmcp_over_http() {
    let server = Listening::fastmcp("open");
    let executor = server.executor();
    assert_eq!(executor.connect_servers().await, [("remote".to_owned(), Ok(()))]);
    assert_eq!(revision(&executor), "2026-07-28");
    crate::interop::python::check_fastmcp(&executor, "remote").await;
    executor.close().await;
}

#[tokio::test]
async fn fastmcp_with_a_bearer_token() {
    let server = Listening::fastmcp("token");
    for header in [None, Some("Bearer wrong")] {
        let mut refused = server.server(HttpKind::Detect);
        if let Some(header) = header {
            refused = refused.header("Authorization", header);
        }
        let executor = executor(refused);
        let answer = call(&executor, "remote", "add", json!({ "a": 1, "b": 2 })).await;
        assert_eq!(answer["error"]["code"], "UPSTREAM_UNAVAILABLE", "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("401 Unauthorized"), "{message}");
        assert!(!message.contains("wrong"), "the token stays here: {message}");
        executor.close().await;
    }
    let executor = executor(server.server(HttpKind::Detect).header("Authorization", "Bearer interop-token"));
    assert_eq!(call(&executor, "remote", "add", json!({ "a": 1, "b": 2 })).await["result"], 3);
    executor.close().await;
}

/// The whole sign-in: refusal, discovery, registration, the user's approval (which this server gives itself), tokens, a
/// call, and signing out.
#[tokio::test]
async fn fastmcp_with_oauth() {
    let listening_at = Listening::fastmcp("oauth");
    let server = listening_at.server(HttpKind::Detect);
    let directory = tempfile::tempdir().unwrap();
    let executor =
        || Executor::builder().state_directory(directory.path()).mcp_server(server.clone()).build().unwrap();
    let add = json!({ "a": 1, "b": 2 });

    let signed_out = executor();
    let answer = call(&signed_out, "remote", "add", add.clone()).await;
    assert_eq!(answer["error"]["code"], "UPSTREAM_UNAVAILABLE", "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("cx auth login remote"), "{message}");
    signed_out.close().await;
    assert_eq!(auth::status(&server, directory.path()).await.unwrap(), AuthStatus::SignedOut);

    // Acts as the browser: opens the address and follows redirects.
    let mut browser = None;
    let open = |address: &Url| {
        let code = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=100).read()";
        browser = Some(Command::new(python("python")).args(["-c", code, address.as_str()]).spawn().unwrap());
    };
    let login = auth::login(&server, directory.path(), open);
    tokio::time::timeout(START_TIME, login).await.expect("in time").unwrap();
    assert!(browser.expect("the address is shown").wait().unwrap().success(), "the last page is there");
    let status = auth::status(&server, directory.path()).await.unwrap();
    assert!(matches!(status, AuthStatus::SignedIn { renews: true, .. }), "{status:?}");

    let signed_in = executor();
    assert_eq!(call(&signed_in, "remote", "add", add.clone()).await["result"], 3);
    signed_in.close().await;
    auth::logout(&server, directory.path()).await.unwrap();
    assert_eq!(auth::status(&server, directory.path()).await.unwrap(), AuthStatus::SignedOut);
}
