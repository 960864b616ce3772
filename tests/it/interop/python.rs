//! Third-party servers in Python over stdio: the current SDK, FastMCP on top of it, and the SDK of
//! early 2025.

use std::process::Command;

use cx::{Executor, McpServer, Script};
use serde_json::{Value, json};

use crate::support::interop::{call, executor, python, python_old, script, value};

/// The behavior of the server of `tests/interop/fastmcp_server.py`, over every transport.
pub(crate) async fn check_fastmcp(executor: &Executor, server: &str) {
    let names =
        value(executor, "return (await discoverMCPTools({})).map((tool) => tool.name)", Value::Null).await;
    let expected = ["add", "person", "fail", "wait"].map(|tool| format!("mcp__{server}__{tool}"));
    assert_eq!(names, json!(expected));
    // An output schema whose only field is `result` is unwrapped.
    assert_eq!(call(executor, server, "add", json!({ "a": 40, "b": 2 })).await["result"], 42);
    let person = call(executor, server, "person", json!({ "name": "Ada" })).await;
    assert_eq!(person["result"], json!({ "name": "Ada", "age": 36 }), "{person}");
    let failed = call(executor, server, "fail", json!({ "reason": "no luck" })).await;
    assert_eq!(failed["error"]["code"], "TOOL_ERROR");
    assert!(failed["error"]["message"].as_str().unwrap().contains("no luck"), "{failed}");
    let wrong = call(executor, server, "add", json!({ "a": "x", "b": 2 })).await;
    assert_eq!(wrong["ok"], false, "{wrong}");

    let heard = std::sync::Arc::new(parking_lot::Mutex::new(Vec::new()));
    let keep = std::sync::Arc::clone(&heard);
    let source = format!("return tools.{server}.wait({{ seconds: 0.3, steps: 3 }})");
    let run = executor.run(Script::typescript(source).on_progress(move |heard| {
        keep.lock().push((heard.progress.progress, heard.progress.total, heard.progress.message.clone()));
    }));
    let result = run.await.unwrap();
    assert_eq!(result.value(), Some(&json!("done")), "{}", result.to_json());
    let step = |step: u32| (f64::from(step), Some(3.0), Some(format!("step {step}")));
    assert_eq!(*heard.lock(), [step(1), step(2), step(3)]);
}

/// Connects, and returns the protocol revision in use.
async fn connected(executor: &Executor) -> String {
    let results = executor.connect_servers().await;
    assert!(results[0].1.is_ok(), "{results:?}");
    executor.server_stats()[0].protocol_version.clone().unwrap()
}

#[tokio::test]
async fn fastmcp_over_stdio() {
    let server =
        McpServer::stdio("fast", python("python")).args([script("fastmcp_server.py"), "stdio".into()]);
    let executor = executor(server);
    assert_eq!(connected(&executor).await, "2026-07-28");
    check_fastmcp(&executor, "fast").await;
    executor.close().await;
}

/// Each protocol revision gets its own handshake, and one tool has the same answer in all of them.
#[tokio::test]
async fn the_sdk_of_now_and_the_sdk_of_before() {
    for (program, revision) in
        [(python("mcp-server-time"), "2026-07-28"), (python_old("mcp-server-time"), "2025-03-26")]
    {
        let executor = executor(McpServer::stdio("time", program).args(["--local-timezone", "UTC"]));
        assert_eq!(connected(&executor).await, revision);
        let arguments = json!({ "source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "UTC" });
        let converted = call(&executor, "time", "convert_time", arguments).await;
        assert_eq!(converted["result"]["time_difference"], "-9.0h", "{revision}: {converted}");
        executor.close().await;
    }
}

#[tokio::test]
async fn the_state_of_a_repository_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let git = |arguments: &[&str]| {
        let status = Command::new("git").arg("-C").arg(&root).args(arguments).status().unwrap();
        assert!(status.success(), "{arguments:?}");
    };
    git(&["init", "--quiet", "--initial-branch", "trunk"]);
    std::fs::write(root.join("notes.txt"), "one\n").unwrap();
    git(&["add", "notes.txt"]);
    let server = McpServer::stdio("git", python("mcp-server-git"));
    let executor = executor(server.args(["--repository", root.to_str().unwrap()]));
    connected(&executor).await;
    let status = call(&executor, "git", "git_status", json!({ "repo_path": root })).await;
    let text = status["result"].to_string();
    assert!(text.contains("On branch trunk") && text.contains("notes.txt"), "{status}");
    let elsewhere = call(&executor, "git", "git_status", json!({ "repo_path": "/" })).await;
    assert_eq!(elsewhere["error"]["code"], "TOOL_ERROR", "{elsewhere}");
    executor.close().await;
}

#[tokio::test]
async fn the_fetch_server_refuses_what_is_no_address() {
    let executor =
        executor(McpServer::stdio("fetch", python("mcp-server-fetch")).args(["--ignore-robots-txt"]));
    connected(&executor).await;
    let schema = value(&executor, "return getToolSchema('mcp__fetch__fetch')", Value::Null).await;
    assert_eq!(schema["parameters"]["properties"]["url"]["type"], "string", "{schema}");
    let answer = call(&executor, "fetch", "fetch", json!({ "url": "no address" })).await;
    assert_eq!(answer["error"]["code"], "TOOL_ERROR", "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("valid URL"), "{answer}");
    executor.close().await;
}
