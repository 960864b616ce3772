//! Real processes that misbehave: `tests/servers/fault.py`. Numbers are cases of the threat list.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::{McpServer, McpServers, McpTransport, ServerState};
use crate::tools::ToolErrorCode::{
    self, Cancelled, InvalidArguments, ResultTooLarge, ToolNotFound, ToolTimeout, UpstreamProtocol,
    UpstreamUnavailable,
};
use crate::tools::{RequestContext, ServerRequest, ToolDispatcher, ToolError, ToolRequest, ToolResult};

mod circuit;
mod messages;

/// What fails a test that would hang.
const WATCHDOG: Duration = Duration::from_secs(120);

/// One server in one mode, and the file in which it records its events.
struct Upstream {
    servers: Arc<McpServers>,
    directory: TempDir,
}

impl Upstream {
    fn new(mode: &str) -> Self {
        Self::with(mode, |server| server)
    }

    fn with(mode: &str, change: impl FnOnce(McpServer) -> McpServer) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let server = change(fault(mode, directory.path()));
        Self { servers: Arc::new(McpServers::new(vec![server], None, &Handle::current())), directory }
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<ToolResult, ToolError> {
        self.servers.call(request("fault", tool, arguments)).await
    }

    async fn text(&self, tool: &str, arguments: Value) -> Result<String, ToolError> {
        let result = self.call(tool, arguments).await?;
        Ok(result.content.unwrap()[0]["text"].as_str().unwrap().to_owned())
    }

    async fn failure(&self, tool: &str) -> ToolError {
        self.call(tool, json!({})).await.unwrap_err()
    }

    async fn tool_names(&self) -> Result<Vec<String>, ToolError> {
        let tools = self.servers.tools("fault", Instant::now() + Duration::from_secs(30)).await?;
        Ok(tools.tools.iter().map(|tool| tool.name.clone()).collect())
    }

    fn notes(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("notes")).unwrap_or_default()
    }

    /// Waits for a line with this prefix and returns the rest of the line.
    async fn noted(&self, beginning: &str) -> String {
        eventually(beginning, || {
            self.notes().lines().find_map(|line| line.strip_prefix(beginning).map(str::to_owned))
        })
        .await
    }

    async fn process(&self) -> i32 {
        let result = self.call("environment", json!({})).await.unwrap();
        i32::try_from(result.structured.unwrap()["pid"].as_i64().unwrap()).unwrap()
    }
}

fn fault(mode: &str, directory: &Path) -> McpServer {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/fault.py");
    let notes = if directory.is_dir() { directory.join("notes") } else { directory.to_owned() };
    McpServer::stdio("fault", "python3").args([script, mode, notes.to_str().unwrap()])
}

fn request(server: &str, tool: &str, arguments: Value) -> ToolRequest {
    let arguments = arguments.as_object().cloned().unwrap_or_else(Map::new);
    ToolRequest {
        server: server.into(),
        tool: tool.into(),
        arguments,
        exact_numbers: Vec::new(),
        deadline: Instant::now() + Duration::from_secs(30),
        cancel: CancellationToken::new(),
        on_progress: None,
        on_elicitation: None,
        trace: None,
        sent: None,
        caller: None,
    }
}

async fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + WATCHDOG;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "did not happen: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn watched<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(WATCHDOG, work).await.expect("it ends")
}

/// Whether the process exists and is not a zombie.
fn runs(process: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    status.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

async fn gone(process: i32) {
    eventually("the process is gone and reaped", || {
        (!Path::new(&format!("/proc/{process}")).exists()).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_process_serves_all_calls() {
    let upstream = Upstream::new("well");
    assert_eq!(upstream.servers.servers(), [Arc::from("fault")]);
    assert_eq!(upstream.notes(), "", "nothing starts before it is needed");
    let calls = (0..50).map(|number| upstream.call("echo", json!({ "number": number })));
    let results = futures::future::join_all(calls).await;
    for (number, result) in results.into_iter().enumerate() {
        assert_eq!(result.unwrap().structured, Some(json!({ "number": number }).into()));
    }
    assert!(upstream.tool_names().await.unwrap().starts_with(&["echo".to_owned()]));
    assert_eq!(upstream.notes().matches("started").count(), 1);
    let declared = r#"capabilities {"elicitation": {"form": {}, "url": {}}}"#;
    assert!(upstream.notes().contains(declared), "{}", upstream.notes());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_switched_off_is_not_declared() {
    let upstream = Upstream::with("well", |server| server.elicitation(false));
    upstream.tool_names().await.unwrap();
    assert!(upstream.notes().contains("capabilities {}"), "{}", upstream.notes());
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_overlap() {
    let upstream = Upstream::new("well");
    upstream.tool_names().await.unwrap();
    let slow = upstream.call("slow", json!({ "seconds": 20 }));
    let quick = watched(upstream.call("echo", json!({})));
    tokio::select! {
        _ = slow => panic!("the slow call must not hold up the quick one"),
        result = quick => assert!(result.is_ok()),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn times_may_be_without_end() {
    let upstream = Upstream::with("well", |server| McpServer {
        queue_timeout: Duration::MAX,
        ..server.connect_timeout(Duration::MAX).call_timeout(Duration::MAX).idle_timeout(Duration::MAX)
    });
    assert!(watched(upstream.call("echo", json!({}))).await.is_ok());
}

/// The futures are polled on threads without a tokio runtime.
#[test]
fn calls_work_from_any_thread() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let upstream = {
        let _entered = runtime.enter();
        Upstream::new("well")
    };
    let result = futures::executor::block_on(upstream.call("echo", json!({ "a": 1 }))).unwrap();
    assert_eq!(result.structured, Some(json!({ "a": 1 }).into()));
    assert!(futures::executor::block_on(upstream.tool_names()).unwrap().len() > 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_is_the_same_until_it_changes() {
    let upstream = Upstream::new("well");
    let deadline = Instant::now() + Duration::from_secs(30);
    let first = upstream.servers.tools("fault", deadline).await.unwrap();
    let second = upstream.servers.tools("fault", deadline).await.unwrap();
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!(upstream.text("change_tools", json!({})).await.unwrap(), "changed");
    let third = upstream.servers.tools("fault", deadline).await.unwrap();
    assert_eq!(third.tools.len(), first.tools.len() + 1);
    assert_eq!(third.tools.last().unwrap().name, "extra_0");
    upstream.failure("crash").await;
    let fourth = upstream.servers.tools("fault", deadline).await.unwrap();
    assert_eq!(*fourth, *first, "the restarted server has forgotten its extra tool");
}

/// Case 206.
#[tokio::test(flavor = "multi_thread")]
async fn servers_that_do_not_start_say_why() {
    let check = async |server: McpServer, expected: &[&str]| {
        let servers = McpServers::new(vec![server], None, &Handle::current());
        let error = watched(servers.call(request("fault", "echo", json!({})))).await.unwrap_err();
        assert_eq!(error.code, UpstreamUnavailable, "{error}");
        for part in expected {
            assert!(error.message.contains(part), "{error}");
        }
        assert!(!error.message.contains('\u{1b}'));
    };
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    check(McpServer::stdio("fault", "no-such-program"), &["`no-such-program`", "is it installed"]).await;
    check(McpServer::stdio("fault", "no/such/program"), &["`no/such/program`", "paths are seen from"]).await;
    check(McpServer::stdio("fault", "/etc/passwd"), &["`/etc/passwd`", "is it executable"]).await;
    check(McpServer::stdio("fault", "sh").cwd("/no/such/place"), &["/no/such/place"]).await;
    let elsewhere = McpServer::stdio("fault", "no/such/program").cwd("/usr");
    check(elsewhere, &["`no/such/program`", "seen from its `cwd`, `/usr`"]).await;
    check(fault("exit_at_once", here), &["exit status 0", "handshake"]).await;
    check(fault("dies_in_handshake", here), &["exit status 3", "no such database"]).await;
    check(fault("refuse", here), &["refused the handshake", "not today"]).await;
    check(McpServer::stdio("fault", "cat"), &["handshake"]).await;
}

/// Case 207. Other servers are not delayed by it.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_abandoned() {
    let directory = tempfile::tempdir().unwrap();
    let hung = fault("hang_in_handshake", directory.path());
    let mut well = fault("well", Path::new("/dev/null"));
    well.name = "well".to_owned();
    let servers = Arc::new(McpServers::new(vec![hung, well], None, &Handle::current()));
    let started = Instant::now();
    let hung = tokio::spawn({
        let servers = Arc::clone(&servers);
        async move { servers.call(request("fault", "echo", json!({}))).await }
    });
    watched(servers.call(request("well", "echo", json!({})))).await.unwrap();
    assert!(!hung.is_finished(), "the other server is not held up by it");
    let error = hung.await.unwrap().unwrap_err();
    assert_eq!(error.code, UpstreamUnavailable);
    assert!(error.message.contains("within 10 s"), "{error}");
    assert!(started.elapsed() >= Duration::from_secs(10));
    let notes = std::fs::read_to_string(directory.path().join("notes")).unwrap();
    let started = notes.lines().next().and_then(|line| line.strip_prefix("started ")).unwrap();
    gone(started.parse().unwrap()).await;
}

/// A caller with less time than the handshake does not wait for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_ends_in_the_middle_of_a_start() {
    let upstream = Upstream::new("hang_in_handshake");
    let mut short = request("fault", "echo", json!({}));
    short.deadline = Instant::now() + Duration::from_millis(300);
    let error = watched(upstream.servers.call(short)).await.unwrap_err();
    assert_eq!(error.code, ToolTimeout);
    let soon = Instant::now() + Duration::from_millis(300);
    assert_eq!(watched(upstream.servers.tools("fault", soon)).await.unwrap_err().code, ToolTimeout);
    let cancelled = request("fault", "echo", json!({}));
    cancelled.cancel.cancel();
    assert_eq!(watched(upstream.servers.call(cancelled)).await.unwrap_err().code, Cancelled);
}

/// Case 208.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_does_not_come_times_out_and_calls_go_on() {
    let upstream = Upstream::new("hang_in_list");
    assert_eq!(upstream.tool_names().await.unwrap_err().code, ToolTimeout);
    assert!(upstream.call("echo", json!({})).await.is_ok());
    assert_eq!(upstream.notes().matches("started").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_takes_too_long_is_cancelled() {
    let upstream = Upstream::with("well", |server| server.call_timeout(Duration::from_secs(3)));
    let error = watched(upstream.failure("never")).await;
    assert_eq!(error.code, ToolTimeout);
    assert!(error.message.contains("3000 ms"), "{error}");
    upstream.noted("cancelled ").await;
    assert!(upstream.call("echo", json!({})).await.is_ok());
    assert_eq!(upstream.notes().matches("started").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_run_reaches_the_server() {
    let upstream = Upstream::new("well");
    upstream.tool_names().await.unwrap();
    let request = request("fault", "never", json!({}));
    let cancel = request.cancel.clone();
    let call = upstream.servers.call(request);
    let (result, ()) = tokio::join!(call, async {
        upstream.noted("called never").await;
        cancel.cancel();
    });
    assert_eq!(result.unwrap_err().code, Cancelled);
    upstream.noted("cancelled ").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_call_reaches_the_server() {
    let upstream = Upstream::new("well");
    tokio::select! {
        _ = upstream.call("never", json!({})) => panic!("it never answers"),
        _ = upstream.noted("called never") => {}
    }
    upstream.noted("cancelled ").await;
}

/// Old servers that exit when they are probed for the newest revision, or never answer the probe.
#[tokio::test(flavor = "multi_thread")]
async fn servers_of_an_older_revision_are_understood() {
    for (mode, starts) in [("dies_of_the_probe", 2), ("ignores_the_probe", 1), ("well", 1)] {
        let upstream = Upstream::new(mode);
        assert!(watched(upstream.call("echo", json!({}))).await.is_ok(), "{mode}");
        assert_eq!(upstream.notes().matches("started").count(), starts, "{mode}");
        let stats = upstream.servers.stats().remove(0);
        assert_eq!(stats.protocol_version.as_deref(), Some("2025-11-25"), "{mode}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_takes_no_more_input_is_started_again() {
    let upstream = Upstream::new("well");
    assert_eq!(upstream.text("close_input", json!({})).await.unwrap(), "deaf");
    // The first call discovers that the server no longer reads its stdin. Whether the call was
    // received is unknown, so it fails.
    let found_out = watched(upstream.failure("echo")).await;
    assert_eq!(found_out.code, UpstreamUnavailable, "{found_out}");
    assert!(watched(upstream.call("echo", json!({}))).await.is_ok());
    assert_eq!(upstream.notes().matches("started").count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_server_is_stopped_and_started_again() {
    let idle = Duration::from_secs(4);
    let upstream = Upstream::with("well", |server| server.idle_timeout(idle));
    for start in 1..=2 {
        assert!(upstream.call("echo", json!({})).await.is_ok());
        let process = upstream.process().await;
        let busy = Instant::now();
        while busy.elapsed() < idle + Duration::from_secs(1) {
            assert!(upstream.call("echo", json!({})).await.is_ok());
        }
        assert!(runs(process), "stopped while it was used");
        gone(process).await;
        assert_eq!(upstream.notes().matches("started").count(), start);
        assert_eq!(upstream.servers.stats()[0].state, ServerState::Stopped);
    }
}

/// Case 219.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_survives_the_end() {
    let check = async |mode: &str, graceful: bool| {
        let upstream = Upstream::new(mode);
        let process = upstream.process().await;
        let grandchild = upstream.text("grandchild", json!({})).await.unwrap().parse().unwrap();
        assert!(runs(process) && runs(grandchild));
        if graceful {
            watched(upstream.servers.shutdown()).await;
        } else {
            upstream.servers.close();
        }
        gone(process).await;
        eventually("the grandchild is dead", || (!runs(grandchild)).then_some(())).await;
        assert_eq!(upstream.failure("echo").await.code, UpstreamUnavailable);
        assert_eq!(upstream.notes().matches("started").count(), 1);
        upstream.servers.close();
        upstream.notes()
    };
    assert!(check("well", true).await.contains("stdin ended"));
    check("ignore_signals", true).await;
    check("well", false).await;
    check("ignore_signals", false).await;
}

/// There is no runtime left for the cleanup, so dropping has to do it.
#[test]
fn nothing_survives_the_runtime() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let (upstream, process) = runtime.block_on(async {
        let upstream = Upstream::new("ignore_signals");
        let process = upstream.process().await;
        (upstream, process)
    });
    runtime.shutdown_background();
    drop(upstream);
    assert!(!Path::new(&format!("/proc/{process}")).exists(), "killed and reaped before drop returns");
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_ends_a_server_that_is_still_starting() {
    let upstream = Upstream::new("hang_in_handshake");
    let call = upstream.call("echo", json!({}));
    let (result, process) = tokio::join!(watched(call), async {
        let process: i32 = upstream.noted("started ").await.parse().unwrap();
        upstream.servers.close();
        process
    });
    let error = result.unwrap_err();
    assert_eq!(error.code, UpstreamUnavailable);
    assert!(!error.message.contains("within 10 s"), "its start is not waited for: {error}");
    gone(process).await;
}

/// Cases 161 and 162.
#[tokio::test(flavor = "multi_thread")]
async fn lists_are_bounded() {
    assert_eq!(Upstream::new("endless_list").tool_names().await.unwrap().len(), 100);
    let upstream = Upstream::new("repeated_cursor");
    watched(upstream.tool_names()).await.unwrap();
    assert_eq!(upstream.notes().matches("asked for a page").count(), 2);
    let upstream = Upstream::new("odd_tools");
    let tools = upstream.servers.tools("fault", Instant::now() + WATCHDOG).await.unwrap();
    let normal = Upstream::new("well").tool_names().await.unwrap();
    assert_eq!(tools.tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>(), normal);
    let description = tools.tools[0].description.as_ref().unwrap();
    assert!(description.len() < 70_000 && description.ends_with("more bytes]"));
    assert_eq!(tools.tools[1].input_schema.to_value(), json!({ "type": "object" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_the_code_that_says_who_must_act() {
    let upstream = Upstream::new("well");
    for (tool, code) in [
        ("bad_arguments", InvalidArguments),
        ("unknown", ToolNotFound),
        ("no_such_tool", ToolNotFound),
        ("internal", ToolErrorCode::ToolError),
    ] {
        assert_eq!(upstream.failure(tool).await.code, code, "{tool}");
    }
    let failed = upstream.call("fail", json!({})).await.unwrap();
    assert!(failed.is_error && failed.content.unwrap()[0]["text"] == "it did not work");
    let absent = upstream.servers.call(request("absent", "echo", json!({}))).await.unwrap_err();
    assert_eq!(absent.code, ToolNotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_content_keeps_its_keys() {
    let result = Upstream::new("well").call("image", json!({})).await.unwrap();
    assert_eq!(
        *result.content.unwrap().value().unwrap(),
        json!([
            { "type": "text", "text": "a picture", "annotations": { "audience": ["user"] } },
            { "type": "image", "data": "AAEC", "mimeType": "image/png" },
            { "type": "audio", "data": "AAEC", "mimeType": "audio/wav" },
            { "type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain" },
            { "type": "resource", "resource": { "uri": "file:///b", "mimeType": "text/plain", "text": "b" } },
        ])
    );
}

/// Cases 182 and 183.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_gets_the_listed_environment_and_no_shell() {
    let upstream = Upstream::with("well", |server| {
        server.cwd("/").env("TOKEN", "$(touch /tmp/x); `id`").args(["; rm -rf /", "$HOME", "a\nb"])
    });
    let seen = upstream.call("environment", json!({})).await.unwrap().structured.unwrap();
    assert_eq!(seen["cwd"], "/");
    assert_eq!(seen["env"]["TOKEN"], "$(touch /tmp/x); `id`");
    assert!(seen["env"].get("PATH").is_some());
    // Cargo sets this variable for tests; it is an example of all that are not listed.
    assert!(std::env::vars_os().any(|(name, _)| name == "CARGO_MANIFEST_DIR"));
    assert!(seen["env"].get("CARGO_MANIFEST_DIR").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relative_program_is_looked_up_in_the_servers_directory() {
    let directory = tempfile::tempdir().unwrap();
    let server = directory.path().join("bin/server");
    std::fs::create_dir(directory.path().join("bin")).unwrap();
    std::fs::write(&server, "#!/bin/sh\nexec python3 \"$@\"\n").unwrap();
    std::fs::set_permissions(&server, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for program in ["./bin/server", "bin/server"] {
        let upstream = Upstream::with("well", |mut server| {
            if let McpTransport::Stdio(stdio) = &mut server.transport {
                program.clone_into(&mut stdio.command);
            }
            server.cwd(directory.path())
        });
        let seen = upstream.call("environment", json!({})).await.unwrap().structured.unwrap();
        assert_eq!(seen["cwd"], directory.path().canonicalize().unwrap().to_str().unwrap());
    }
}

#[test]
fn arguments_and_secrets_are_not_shown() {
    let server = McpServer::stdio("a", "b").args(["--token=geheim"]).env("TOKEN", "geheim");
    let shown = format!("{server:?}");
    assert!(!shown.contains("geheim") && shown.contains("TOKEN"), "{shown}");
    let shown = format!("{:?}", request("mail", "send", json!({ "password": "geheim" })));
    assert!(!shown.contains("geheim") && shown.contains("mail"), "{shown}");
}
