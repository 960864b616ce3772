//! Third-party servers from npm and PyPI: see `tests/interop`. The clients there are in `clients.rs`.

use std::path::Path;

use cx::{ElicitationAnswer, ElicitationMode, ElicitationRequest, Executor, McpServer, Script};
use serde_json::{Value, json};

use crate::support::interop::{call, everything, executor, node, python, value};

fn filesystem(directory: &Path) -> Executor {
    let directory = directory.to_str().unwrap().to_owned();
    executor(McpServer::stdio("filesystem", "node").args([node("server-filesystem"), directory]))
}

fn time() -> Executor {
    executor(McpServer::stdio("time", python("mcp-server-time")).args(["--local-timezone", "UTC"]))
}

/// All that server-everything offers to cx, with arguments and what the answer must contain.
/// `simulate-research-query` runs only as a task. The two that ask the user report that no user can be asked.
///
/// The server does not offer tools that need capabilities which cx does not declare: sampling
/// (`trigger-sampling-request` and its `-async`), tasks (`trigger-elicitation-request-async`), and roots where none are
/// configured (`get-roots-list`).
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
    ("simulate-research-query", r#"{"topic":"x"}"#, "Research Report: x"),
    ("trigger-elicitation-request", "{}", "no user can be asked here"),
    ("trigger-url-elicitation", r#"{"url":"https://example.com/"}"#, "no user can be asked here"),
];

/// Those of them that fail.
const FAILING: &[&str] = &["trigger-elicitation-request", "trigger-url-elicitation"];

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
        assert_eq!(answer["ok"], !FAILING.contains(tool), "{tool}: {answer}");
        assert!(answer.to_string().contains(expected), "{tool}: {answer}");
    }
    executor.close().await;
}

/// The reference server's form has every kind of field.
#[tokio::test]
async fn the_user_answers_server_everything() {
    let root = cx::Root::from_directory("/srv/project").unwrap();
    let arguments = [node("server-everything"), "stdio".to_owned()];
    let executor = executor(McpServer::stdio("everything", "node").args(arguments).root(root));
    let ask = async |source: &str| {
        let script = Script::typescript(source).elicitor(|request: ElicitationRequest| async move {
            assert_eq!(request.server, "everything");
            let filled = match request.mode {
                // The question of a task, which is asked for its result meanwhile.
                ElicitationMode::Form(form) if form.fields.len() == 1 => json!({ "interpretation": "snake" }),
                ElicitationMode::Form(form) => {
                    assert_eq!(form.fields.len(), 13);
                    json!({ "name": "Ada", "titledMultipleSelectEnum": ["fish-2", "fish-3"] })
                }
                _ => json!({}),
            };
            ElicitationAnswer::Accept(filled.as_object().cloned().unwrap())
        });
        let result = executor.run(script).await.unwrap();
        result.value().unwrap_or_else(|| panic!("{}", result.to_json())).to_string()
    };
    let said = ask("return tools.everything.triggerElicitationRequest({})").await;
    for part in
        ["- Name: Ada", "- Favorite Integer: 42", "fish-3", "pet-1", "It was a dark and stormy night."]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    let said =
        ask("return tools.everything.simulateResearchQuery({ topic: 'python', ambiguous: true })").await;
    assert!(said.contains("**Clarification**: snake"), "{said}");
    let said = ask("return tools.everything.triggerUrlElicitation({ url: 'https://example.com/' })").await;
    assert!(said.contains("completed the URL elicitation flow"), "{said}");
    // The server requires that an address is opened before it answers, and the call is made again after that.
    let twice = "const url = { url: 'https://example.com/', errorPath: true };
        try { await tools.everything.triggerUrlElicitation(url) } catch (error) { console.log(error.message) }
        return tools.everything.triggerUrlElicitation(url)";
    assert!(ask(twice).await.contains("completed the URL elicitation flow"));
    let said = ask("return tools.everything.getRootsList({})").await;
    assert!(said.contains("URI: file:///srv/project"), "{said}");
    executor.close().await;
}

#[tokio::test]
async fn content_has_its_shape() {
    let executor = everything();
    let answer = async |tool: &str, arguments: Value| {
        let mut answer = call(&executor, "everything", tool, arguments).await;
        assert_eq!(answer["ok"], true, "{tool}: {answer}");
        answer["result"].take()
    };
    // Text alone is a string, whatever its annotations.
    assert_eq!(answer("echo", json!({ "message": "hi" })).await, json!("Echo: hi"));
    let debug = answer("get-annotated-message", json!({ "messageType": "debug" })).await;
    assert_eq!(debug, json!("Debug: Cache hit ratio 0.95, latency 150ms"));
    // Text that is a JSON object becomes that object. The server does not get this process's variables.
    let environment = answer("get-env", json!({})).await;
    assert!(environment["PATH"].is_string(), "{environment}");
    assert_eq!(environment.get("CARGO_MANIFEST_DIR"), None);
    // Structured content has precedence over the same content as text.
    let weather = answer("get-structured-content", json!({ "location": "Chicago" })).await;
    assert_eq!(weather, json!({ "temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82 }));
    // Everything else is the unchanged content, including annotations.
    let image = answer("get-tiny-image", json!({})).await;
    assert_eq!(image[0]["type"], "text");
    assert_eq!((&image[1]["type"], &image[1]["mimeType"]), (&json!("image"), &json!("image/png")));
    assert!(image[1]["data"].as_str().unwrap().starts_with("iVBOR"), "a PNG in base64");
    let annotated =
        answer("get-annotated-message", json!({ "messageType": "error", "includeImage": true })).await;
    assert_eq!(annotated[0]["annotations"]["audience"], json!(["user", "assistant"]), "{annotated}");
    assert_eq!(annotated[0]["annotations"]["priority"].as_f64(), Some(1.0));
    assert_eq!(annotated[1]["type"], "image");
    let text = answer("get-resource-reference", json!({ "resourceId": 2 })).await;
    assert_eq!(text[1]["type"], "resource");
    assert_eq!(text[1]["resource"]["uri"], "demo://resource/dynamic/text/2");
    assert!(text[1]["resource"]["text"].as_str().unwrap().starts_with("Resource 2: "), "{text}");
    let links = answer("get-resource-links", json!({ "count": 1 })).await;
    assert_eq!(
        links[1],
        json!({
            "type": "resource_link",
            "name": "Blob Resource 1",
            "uri": "demo://resource/dynamic/blob/1",
            "description": "Resource 1: plaintext resource",
            "mimeType": "text/plain",
        })
    );
    executor.close().await;
}

#[tokio::test]
async fn a_tools_own_error_is_thrown() {
    let executor = everything();
    let source = r#"
        try {
            await tools.everything.getResourceReference({ resourceId: -1 });
        } catch (error) {
            const { server, tool, code, message, content } = error;
            return { thrown: error instanceof McpToolError, server, tool, code, message, content };
        }
    "#;
    let message = "Invalid resourceId: -1. Must be a finite positive integer.";
    assert_eq!(
        value(&executor, source, Value::Null).await,
        json!({
            "thrown": true,
            "server": "everything",
            "tool": "get-resource-reference",
            "code": "TOOL_ERROR",
            "message": message,
            "content": [{ "type": "text", "text": message }],
        })
    );
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
    // Neither place has daylight saving time, so this holds on every day.
    let arguments = json!({ "source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "UTC" });
    let converted = call(&executor, "time", "convert_time", arguments).await;
    assert_eq!(converted["result"]["time_difference"], "-9.0h", "{converted}");
    let nowhere = call(&executor, "time", "get_current_time", json!({ "timezone": "Mars/Base" })).await;
    assert_eq!(nowhere["error"]["code"], "TOOL_ERROR");
    assert!(nowhere["error"]["message"].as_str().unwrap().contains("Mars/Base"), "{nowhere}");
    executor.close().await;
}

#[tokio::test]
async fn memory_is_kept_in_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("memory.jsonl");
    let memory = || {
        let server = McpServer::stdio("memory", "node").args([node("server-memory")]);
        executor(server.env("MEMORY_FILE_PATH", file.to_str().unwrap()))
    };
    let first = memory();
    let source = r#"
        const entities = [{ name: "Ada", entityType: "person", observations: ["writes programs"] }];
        await tools.memory.createEntities({ entities });
        return (await tools.memory.readGraph({})).entities.map((entity) => entity.name);
    "#;
    assert_eq!(value(&first, source, Value::Null).await, json!(["Ada"]));
    first.close().await;
    let second = memory();
    let found = call(&second, "memory", "search_nodes", json!({ "query": "programs" })).await;
    assert_eq!(found["result"]["entities"][0]["name"], "Ada", "{found}");
    second.close().await;
}

#[tokio::test]
async fn thoughts_follow_each_other() {
    let executor = executor(McpServer::stdio("thinking", "node").args([node("server-sequential-thinking")]));
    let source = r#"
        const totalThoughts = 2;
        const think = (thoughtNumber) => tools.thinking.sequentialthinking({
            thought: "so", thoughtNumber, totalThoughts, nextThoughtNeeded: thoughtNumber < totalThoughts,
        });
        await think(1);
        return think(2);
    "#;
    let second = value(&executor, source, Value::Null).await;
    assert_eq!(second["thoughtHistoryLength"], 2, "{second}");
    assert_eq!(second["nextThoughtNeeded"], false, "{second}");
    executor.close().await;
}
