//! Servers that we did not write, from npm and PyPI: see `tests/interop`.

use std::env;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use cx::{Executor, StdioServer};
use serde_json::{Value, json};

/// Where `tests/interop/install.sh` puts the servers.
static SERVERS: LazyLock<PathBuf> = LazyLock::new(|| {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let directory = set("CX_INTEROP_DIR").unwrap_or_else(|| {
        let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
        cache.expect("a home directory").join("cx/interop")
    });
    let mark = directory.join("installed");
    assert!(mark.is_file(), "{} is missing; run tests/interop/install.sh", mark.display());
    directory
});

fn node(package: &str) -> String {
    let modules = "node/node_modules/@modelcontextprotocol";
    SERVERS.join(modules).join(package).join("dist/index.js").to_str().unwrap().to_owned()
}

fn everything() -> Executor {
    executor(StdioServer::new("everything", "node").args([node("server-everything"), "stdio".to_owned()]))
}

fn filesystem(directory: &Path) -> Executor {
    let directory = directory.to_str().unwrap().to_owned();
    executor(StdioServer::new("filesystem", "node").args([node("server-filesystem"), directory]))
}

fn time() -> Executor {
    let program = SERVERS.join("python/bin/mcp-server-time");
    executor(StdioServer::new("time", program.to_str().unwrap()).args(["--local-timezone", "UTC"]))
}

fn executor(server: StdioServer) -> Executor {
    Executor::builder().mcp_server(server).build().unwrap()
}

/// Runs a script and returns its value.
async fn value(executor: &Executor, source: &str, input: Value) -> Value {
    let result = executor.run(cx::Script::typescript(source).input(input)).await.unwrap();
    result.value().cloned().unwrap_or_else(|| panic!("{source}: {}", result.to_json()))
}

/// Calls a tool as `call_tool` does: `{ok: true, result}` or `{ok: false, error}`.
async fn call(executor: &Executor, server: &str, tool: &str, arguments: Value) -> Value {
    let input = json!({ "server": server, "tool": tool, "arguments": arguments });
    value(executor, "return call_tool(input.server, input.tool, input.arguments)", input).await
}

/// The tools of server-everything that need nothing of a client, with arguments and what the answer
/// must contain. `simulate-research-query` answers only as a task, which this client does not ask
/// for; it says so.
const EVERYTHING: &[(&str, &str, &str)] = &[
    ("echo", r#"{"message":"hello"}"#, r#""result":"Echo: hello""#),
    ("get-annotated-message", r#"{"messageType":"error","includeImage":true}"#, r#""type":"image""#),
    ("get-env", "{}", r#""PATH":"#),
    ("get-resource-links", r#"{"count":2}"#, r#""type":"resource_link""#),
    ("get-resource-reference", r#"{"resourceType":"Blob","resourceId":2}"#, r#""blob":"#),
    ("get-structured-content", r#"{"location":"Chicago"}"#, r#""temperature":"#),
    ("get-sum", r#"{"a":2,"b":40}"#, "The sum of 2 and 40 is 42."),
    ("get-tiny-image", "{}", r#""mimeType":"image/png""#),
    (
        "gzip-file-as-resource",
        r#"{"name":"x.gz","data":"data:text/plain;base64,aGVsbG8=","outputType":"resource"}"#,
        r#""mimeType":"application/gzip""#,
    ),
    ("toggle-simulated-logging", "{}", "Started simulated"),
    ("toggle-subscriber-updates", "{}", "Started simulated"),
    ("trigger-long-running-operation", r#"{"duration":0.2,"steps":2}"#, "operation completed"),
    ("simulate-research-query", r#"{"topic":"x"}"#, "requires task augmentation"),
];

#[tokio::test]
async fn every_tool_of_server_everything_answers() {
    let executor = everything();
    let source =
        "return (await discoverMCPTools({})).map((tool) => tool.name.replace('mcp__everything__', ''))";
    let mut offered: Vec<String> =
        serde_json::from_value(value(&executor, source, Value::Null).await).unwrap();
    let mut known: Vec<String> = EVERYTHING.iter().map(|(tool, ..)| (*tool).to_owned()).collect();
    offered.sort();
    known.sort();
    assert_eq!(offered, known);
    for (tool, arguments, expected) in EVERYTHING {
        let arguments = serde_json::from_str(arguments).unwrap();
        let answer = call(&executor, "everything", tool, arguments).await;
        assert_eq!(answer["ok"], *tool != "simulate-research-query", "{tool}: {answer}");
        assert!(answer.to_string().contains(expected), "{tool}: {answer}");
    }
    executor.close().await;
}

#[tokio::test]
async fn content_has_its_shape() {
    let executor = everything();
    let structured =
        call(&executor, "everything", "get-structured-content", json!({ "location": "Chicago" })).await;
    assert!(structured["result"]["temperature"].is_number(), "{structured}");
    let image = call(&executor, "everything", "get-tiny-image", json!({})).await;
    assert_eq!(image["result"][0]["type"], "text");
    assert_eq!(image["result"][1]["type"], "image");
    assert!(image["result"][1]["data"].as_str().unwrap().starts_with("iVBOR"), "a PNG in base64");
    let resource = call(&executor, "everything", "get-resource-reference", json!({ "resourceId": 2 })).await;
    assert_eq!(resource["result"][1]["resource"]["uri"], "demo://resource/dynamic/text/2");
    // Variables of this process stay here.
    let environment = call(&executor, "everything", "get-env", json!({})).await;
    assert!(environment["result"].get("CARGO_MANIFEST_DIR").is_none());
    executor.close().await;
}

#[tokio::test]
async fn wrong_arguments_are_an_error_that_says_what_is_wrong() {
    let executor = everything();
    let source =
        "try { await tools.everything.echo({}); } catch (error) { return [error.code, error.message]; }";
    let failure = value(&executor, source, Value::Null).await;
    assert!(failure[1].as_str().unwrap().contains("message"), "{failure}");
    let wrong_name = call(&executor, "everything", "ecko", json!({})).await;
    assert_eq!(wrong_name["error"]["code"], "TOOL_NOT_FOUND");
    executor.close().await;
}

#[tokio::test]
async fn camel_case_names_reach_tools_with_hyphens() {
    let executor = everything();
    let sums = value(
        &executor,
        "return await Promise.all([1, 2, 3].map((n) => tools.everything.getSum({ a: n, b: n })))",
        Value::Null,
    );
    let expected = [1, 2, 3].map(|n| format!("The sum of {n} and {n} is {}.", 2 * n));
    assert_eq!(sums.await, json!(expected));
    executor.close().await;
}

#[tokio::test]
async fn files_are_written_read_and_listed_within_the_directory() {
    let directory = tempfile::tempdir().unwrap();
    // The server compares real paths.
    let root = directory.path().canonicalize().unwrap();
    let executor = filesystem(&root);
    let source = r#"
        const path = `${input}/notes.txt`;
        await tools.filesystem.write_file({ path, content: "one\ntwo\n" });
        const { content } = await tools.filesystem.readTextFile({ path, head: 1 });
        const { content: listing } = await tools.filesystem.list_directory({ path: input });
        const outside = await tools.filesystem.read_text_file({ path: "/etc/passwd" }).catch((error) => error);
        const missing = call_tool("filesystem", "read_text_file", { path: `${input}/none.txt` });
        return { content, listing, outside: [outside.code, outside.message], missing: missing.error };
    "#;
    let seen = value(&executor, source, json!(root)).await;
    assert_eq!(std::fs::read_to_string(root.join("notes.txt")).unwrap(), "one\ntwo\n");
    assert_eq!(seen["content"], "one");
    assert_eq!(seen["listing"], "[FILE] notes.txt");
    assert_eq!(seen["outside"][0], "TOOL_ERROR");
    assert!(seen["outside"][1].as_str().unwrap().starts_with("Access denied"), "{seen}");
    assert_eq!(seen["missing"]["code"], "TOOL_ERROR");
    assert!(seen["missing"]["message"].as_str().unwrap().contains("ENOENT"), "{seen}");
    executor.close().await;
}

#[tokio::test]
async fn times_are_converted() {
    let executor = time();
    // Neither place changes its clocks, so this holds on every day.
    let arguments = json!({ "source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "UTC" });
    let converted = call(&executor, "time", "convert_time", arguments).await;
    assert_eq!(converted["result"]["time_difference"], "-9.0h", "{converted}");
    let nowhere = call(&executor, "time", "get_current_time", json!({ "timezone": "Mars/Base" })).await;
    assert_eq!(nowhere["error"]["code"], "TOOL_ERROR");
    assert!(nowhere["error"]["message"].as_str().unwrap().contains("Mars/Base"), "{nowhere}");
    executor.close().await;
}
