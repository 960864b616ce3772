//! Servers over stdio, seen from scripts: lazy, shared, misbehaving (`tests/servers/fault.py`).
//!
//! Tests that need no script are in `src/mcp`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use cx::{Error, ErrorCode, Executor, Limits, McpServer, Script, ToolCallStatus, ToolErrorCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::chaos::{program, runs};
use crate::support::{alone, wait_until};

/// An executor with the fault server in one mode, and the file with that server's notes.
struct Upstream {
    executor: Executor,
    directory: TempDir,
}

impl Upstream {
    fn new(mode: &str) -> Self {
        Self::with(mode, |server| server)
    }

    fn with(mode: &str, change: impl FnOnce(McpServer) -> McpServer) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let server = change(fault(mode, &directory.path().join("notes")));
        let executor = Executor::builder().mcp_server(server).build().unwrap();
        Self { executor, directory }
    }

    async fn value(&self, source: &str) -> Value {
        let result = self.executor.run_ts(source).await.unwrap();
        result.value().cloned().unwrap_or_else(|| panic!("{source}: {}", result.to_json()))
    }

    /// The code and the message of the error that the expression throws, as a script sees them.
    async fn caught(&self, expression: &str) -> (String, String) {
        let source = format!(
            "try {{ await {expression}; return 'it did not fail'; }}
             catch (error) {{ return [error instanceof McpToolError, error.code, error.message]; }}"
        );
        match self.value(&source).await.as_array().map(Vec::as_slice) {
            Some([Value::Bool(true), Value::String(code), Value::String(message)]) => {
                (code.clone(), message.clone())
            }
            other => panic!("{expression}: {other:?}"),
        }
    }

    fn notes(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("notes")).unwrap_or_default()
    }

    fn starts(&self) -> usize {
        self.notes().matches("started").count()
    }
}

fn script() -> String {
    format!("{}/tests/servers/fault.py", env!("CARGO_MANIFEST_DIR"))
}

fn fault(mode: &str, notes: &Path) -> McpServer {
    McpServer::stdio("fault", "python3").args([&*script(), mode, notes.to_str().unwrap()])
}

#[tokio::test]
async fn one_process_serves_all_runs() {
    let upstream = Upstream::new("well");
    assert_eq!(upstream.value("return 1").await, 1);
    assert_eq!(upstream.starts(), 0, "nothing starts before it is needed");
    let source = "return (await Promise.all([1, 2, 3].map((n) => tools.fault.echo({ n })))).map((x) => x.n)";
    let runs = (0..8).map(|_| upstream.value(source));
    for value in futures::future::join_all(runs).await {
        assert_eq!(value, json!([1, 2, 3]));
    }
    assert_eq!(upstream.starts(), 1);
}

#[tokio::test]
async fn every_way_to_name_a_tool_reaches_the_server() {
    let upstream = Upstream::new("well");
    let source = r#"
        import { echo } from "mcp:fault";
        export default [
            await echo({ n: 1 }),
            await fault.echo({ n: 2 }),
            await callMCPTool("mcp__fault__echo", { n: 3 }),
            call_tool("fault", "echo", { n: 4 }).result,
            await tools.fault.echo({ n: 5 }),
            await tools.mcp__fault__echo({ n: 6 }),
            await callMCPTool("fault.echo", { n: 7 }),
            await tools.fault.badArguments({}).catch((error) => error.code),
        ];
    "#;
    let expected = json!([
        { "n": 1 }, { "n": 2 }, { "n": 3 }, { "n": 4 }, { "n": 5 }, { "n": 6 }, { "n": 7 }, "INVALID_ARGUMENTS",
    ]);
    assert_eq!(upstream.value(source).await, expected);
}

/// Values that Python's `json` writes and JSON does not have. There are more answers than failures that open a circuit.
#[tokio::test]
async fn numbers_that_json_does_not_have_arrive() {
    let upstream = Upstream::new("odd_numbers");
    let source = "
        const seen = [];
        for (let i = 0; i < 4; i++) {
            seen.push((await tools.fault.odd_numbers({})).a, (await tools.fault.odd_numbers({ text: true })).a);
        }
        return seen";
    assert_eq!(upstream.value(source).await, json!(vec![[Value::Null, Value::Null, Value::Null]; 8]));
    let source = "
seen = []
for text in (False, True):
    answer = await tools.fault.odd_numbers(text=text)
    seen += [str(answer['a']), answer['big'] == 2 ** 70 + 1]
back = await tools.fault.echo(n=2 ** 70 + 1)
return [*seen, back['n'] == 2 ** 70 + 1]";
    let result = upstream.executor.run(cx::Script::python(source)).await.unwrap();
    let expected = json!(["[nan, inf, -inf]", true, "[nan, inf, -inf]", true, true]);
    assert_eq!(result.value(), Some(&expected), "{}", result.to_json());
    assert_eq!(upstream.starts(), 1);
}

#[tokio::test]
async fn a_schema_has_the_declaration_for_those_who_ask() {
    let upstream = Upstream::new("well");
    let source = "const tool = await getToolSchema('mcp__fault__echo');
                  return [tool.typescript, Object.keys(tool).includes('typescript'), tool.name]";
    let value = upstream.value(source).await;
    assert!(value[0].as_str().unwrap().starts_with("interface Tools {\n  echo(args?: {"), "{value}");
    assert_eq!((&value[1], &value[2]), (&json!(false), &json!("mcp__fault__echo")));
    let source =
        "tool = await get_tool_schema('mcp__fault__echo')\nreturn [tool['python'], list(tool), tool['name']]";
    let result = upstream.executor.run(cx::Script::python(source)).await.unwrap();
    let value = result.value().unwrap_or_else(|| panic!("{}", result.to_json()));
    assert!(value[0].as_str().unwrap().contains("    async def echo(self, "), "{value}");
    assert!(!value[1].as_array().unwrap().contains(&json!("python")), "{value}");
    assert_eq!(value[2], "mcp__fault__echo");
}

#[tokio::test]
async fn content_that_is_not_text_arrives_as_it_was_sent() {
    let value = Upstream::new("well").value("return await tools.fault.image()").await;
    assert_eq!(value[1], json!({ "type": "image", "data": "AAEC", "mimeType": "image/png" }));
    assert_eq!(value.as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn failures_have_codes_that_scripts_can_branch_on() {
    let upstream = Upstream::new("well");
    for (tool, code, part) in [
        ("fail", "TOOL_ERROR", "it did not work"),
        ("bad_arguments", "INVALID_ARGUMENTS", "file not found"),
        ("internal", "TOOL_ERROR", "out of cheese"),
        ("unknown", "TOOL_NOT_FOUND", "not found"),
        ("eccho", "TOOL_NOT_FOUND", "did you mean `echo`?"),
        ("lone_surrogate", "UPSTREAM_PROTOCOL", "cannot be read"),
        ("deep", "UPSTREAM_PROTOCOL", "cannot be read"),
        ("not_json", "UPSTREAM_PROTOCOL", "cannot be read"),
    ] {
        let (found, message) = upstream.caught(&format!("tools.fault.{tool}({{}})")).await;
        assert!(found == code && message.contains(part), "{tool}: {found} {message}");
    }
    assert_eq!(upstream.starts(), 1);
}

/// Threat 206.
#[tokio::test]
async fn a_server_that_dies_in_its_handshake_shows_its_stderr_tail() {
    let upstream = Upstream::new("dies_in_handshake");
    let (code, message) = upstream.caught("tools.fault.echo({})").await;
    assert_eq!(code, "UPSTREAM_UNAVAILABLE");
    assert!(
        message.contains("exit status 3") && message.contains("Traceback: no such database"),
        "{message}"
    );
}

/// Threat 209.
#[tokio::test]
async fn a_crash_is_caught_and_the_next_call_starts_the_server_again() {
    let upstream = Upstream::new("well");
    let (code, message) = upstream.caught("tools.fault.crash({})").await;
    assert_eq!(code, "UPSTREAM_UNAVAILABLE");
    assert!(message.contains("exit status 7") && message.contains("is unknown"), "{message}");
    assert_eq!(upstream.value("return (await tools.fault.echo({ n: 1 })).n").await, 1);
    assert_eq!(upstream.starts(), 2);
}

/// Threat 208.
#[tokio::test]
async fn a_tool_has_its_own_time_within_the_run() {
    let upstream = Upstream::with("well", |server| server.call_timeout(Duration::from_millis(200)));
    let (code, message) = upstream.caught("tools.fault.never({})").await;
    assert!(code == "TOOL_TIMEOUT" && message.contains("200 ms"), "{code} {message}");
    wait_until(|| upstream.notes().contains("cancelled ")).await;
}

#[tokio::test]
async fn the_end_of_a_run_cancels_its_calls() {
    let upstream = Upstream::new("well");
    let source = "tools.fault.never({}); await tools.fault.echo({}); return 'done'";
    let result = upstream.executor.run_ts(source).await.unwrap();
    assert_eq!(result.value(), Some(&json!("done")));
    assert!(result.tool_calls.iter().any(|call| call.status == ToolCallStatus::InFlight));
    wait_until(|| upstream.notes().contains("cancelled ")).await;
}

/// Threat 215: the limit on the line, and the limit on the value.
#[tokio::test]
async fn results_that_are_too_large_are_refused() {
    let upstream = Upstream::new("well");
    for megabytes in [17, 40] {
        let call = format!("tools.fault.oversized({{ megabytes: {megabytes} }})");
        assert_eq!(upstream.caught(&call).await.0, "RESULT_TOO_LARGE", "{megabytes} MB");
    }
    let length = "return (await tools.fault.oversized({ megabytes: 15 })).length";
    // Other tests of this process take memory too, and for their sake the run that touched most would be stopped.
    let limits = Limits { memory_bytes: 512 << 20, ..Limits::default() };
    let result = upstream.executor.run(Script::typescript(length).limits(limits)).await.unwrap();
    assert_eq!(result.value(), Some(&json!(15 << 20)), "{}", result.to_json());
    assert_eq!(upstream.starts(), 1);
}

/// Threat 206: one server's failure does not affect another one, and is reported when tools are listed.
#[tokio::test]
async fn a_dead_server_hides_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let executor = Executor::builder()
        .mcp_server(McpServer::stdio("dead", "no-such-program"))
        .mcp_server(fault("well", &directory.path().join("notes")))
        .build()
        .unwrap();
    // Discovery waits for a list for two seconds, which a busy machine may need for it; a call waits longer.
    let source = "await tools.fault.echo({}); return (await discoverMCPTools({})).map((tool) => tool.server)";
    let result = executor.run_ts(source).await.unwrap();
    let servers = result.value().unwrap().as_array().unwrap();
    assert!(!servers.is_empty() && servers.iter().all(|server| server == "fault"));
    assert!(result.to_json().to_string().contains("no-such-program"), "{}", result.to_json());
}

/// An error that is not caught ends the run with the tool's code.
#[tokio::test]
async fn an_uncaught_failure_keeps_its_code() {
    let upstream = Upstream::new("dies_in_handshake");
    let result = upstream.executor.run_ts("return await tools.fault.echo({})").await.unwrap();
    let error = result.error().unwrap();
    assert_eq!(error.code, ErrorCode::RuntimeError);
    assert_eq!(error.tool_code, Some(ToolErrorCode::UpstreamUnavailable));
}

#[tokio::test]
async fn closing_the_executor_ends_the_server() {
    let upstream = Upstream::new("ignore_signals");
    let process = upstream.value("return String((await tools.fault.environment()).pid)").await;
    let process = process.as_str().unwrap();
    assert!(runs(process));
    upstream.executor.close().await;
    assert!(!Path::new(&format!("/proc/{process}")).exists(), "killed and reaped");
}

#[tokio::test]
async fn dropping_the_executor_ends_the_server() {
    let upstream = Upstream::new("ignore_signals");
    let process = upstream.value("return String((await tools.fault.environment()).pid)").await;
    let process = process.as_str().unwrap().to_owned();
    let Upstream { executor, directory: _directory } = upstream;
    drop(executor);
    wait_until(|| !Path::new(&format!("/proc/{process}")).exists()).await;
}

/// A configuration with the fault server that ignores every request to end.
fn stubborn_config(directory: &Path) -> PathBuf {
    let path = directory.join("mcp.json");
    let notes = directory.join("notes");
    let server = json!({ "command": "python3", "args": [script(), "ignore_signals", notes] });
    std::fs::write(&path, json!({ "mcpServers": { "fault": server } }).to_string()).unwrap();
    path
}

/// Threat 220.
#[tokio::test]
async fn a_server_dies_with_a_command_that_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let config = stubborn_config(directory.path());
    let mut command = alone(&mut Command::new(env!("CARGO_BIN_EXE_cx")), directory.path())
        .args(["run", "-e", "return await tools.fault.never({})", "--mcp-config"])
        .arg(config)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let notes = || std::fs::read_to_string(directory.path().join("notes")).unwrap_or_default();
    wait_until(|| notes().contains("called never")).await;
    let process = notes().lines().next().unwrap().strip_prefix("started ").unwrap().to_owned();
    assert!(runs(&process));
    command.kill().unwrap();
    command.wait().unwrap();
    wait_until(|| !runs(&process)).await;
}

/// As with `npx` and its `node`: a server's child that is not told to end, and holds the pipes open.
#[tokio::test]
async fn what_a_server_has_started_dies_with_a_command_that_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let (config, path) = (directory.path().join("mcp.json"), directory.path().join("notes"));
    let server = json!({ "command": program(), "args": ["stdio", "grandchild", "--notes", path] });
    std::fs::write(&config, json!({ "mcpServers": { "faulty": server } }).to_string()).unwrap();
    let mut command = alone(&mut Command::new(env!("CARGO_BIN_EXE_cx")), directory.path())
        .args([
            "run",
            "-e",
            "await tools.faulty.echo({}); await new Promise(() => setTimeout(() => {}, 60_000))",
        ])
        .arg("--mcp-config")
        .arg(config)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let notes = || std::fs::read_to_string(&path).unwrap_or_default();
    wait_until(|| notes().contains("executed echo")).await;
    let notes = notes();
    let grandchild = notes.lines().find_map(|line| line.strip_prefix("grandchild ")).unwrap();
    assert!(runs(grandchild));
    command.kill().unwrap();
    command.wait().unwrap();
    wait_until(|| !runs(grandchild)).await;
}

#[tokio::test]
async fn a_configuration_file_gives_servers() {
    let directory = tempfile::tempdir().unwrap();
    let config = stubborn_config(directory.path());
    let executor = Executor::builder().mcp_config_file(config).build().unwrap();
    let result = executor.run_ts("return (await tools.fault.echo({ n: 1 })).n").await.unwrap();
    assert_eq!(result.value(), Some(&json!(1)));
    executor.close().await;
}

#[test]
fn a_wrong_configuration_names_file_key_and_expectation() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mcp.json");
    std::fs::write(&path, r#"{"mcpServers": {"fs": {"command": "x", "args": ["y", 2]}}}"#).unwrap();
    let error = Executor::builder().mcp_config_file(&path).build().unwrap_err();
    assert!(matches!(error, Error::Config(_)));
    let expected =
        format!("{}:1:54: `mcpServers.fs.args[1]`: expected a string, found a number", path.display());
    assert_eq!(error.to_string(), expected);
}
