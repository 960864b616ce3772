//! Resources and prompts of a third-party server.

use cx::{Executor, Script};
use serde_json::{Value, json};

use crate::support::interop::everything;

async fn value(executor: &Executor, script: impl Into<Script>) -> Value {
    let result = executor.run(script).await.unwrap();
    result.value().cloned().unwrap_or_else(|| panic!("{}", result.to_json()))
}

#[tokio::test]
async fn resources_and_prompts_are_listed_and_read() {
    let executor = everything();
    assert_eq!(value(&executor, "return mcp.servers()").await, json!(["everything"]));
    let resources = value(&executor, "return mcp.listResources('everything')").await;
    let uri = resources[0]["uri"].as_str().expect("a resource").to_owned();
    let script = Script::typescript("return mcp.readResource('everything', input)").input(json!(uri));
    let read = value(&executor, script).await;
    assert_eq!(read["contents"][0]["uri"], json!(uri), "{read}");
    let prompts =
        value(&executor, "return (await mcp.listPrompts('everything')).map((prompt) => prompt.name)").await;
    assert!(prompts.as_array().unwrap().contains(&json!("simple-prompt")), "{prompts}");
    let prompt = value(&executor, "return mcp.getPrompt('everything', 'simple-prompt')").await;
    assert_eq!(prompt["messages"][0]["role"], "user", "{prompt}");
    executor.close().await;
}

#[tokio::test]
async fn wrong_ones_and_wrong_arguments_can_be_caught() {
    let executor = everything();
    let source = "
        const codes = [];
        const attempt = async (work) => work().then(() => codes.push('fine'), (error) => codes.push(error.code ?? error.name));
        await attempt(() => mcp.readResource('everything', 'demo://nothing/of/the/kind'));
        await attempt(() => mcp.getPrompt('everything', 'no-such-prompt'));
        await attempt(() => mcp.listResources('elsewhere'));
        await attempt(() => mcp.readResource('everything'));
        return codes";
    let result = executor.run(source).await.unwrap();
    let codes = result.value().unwrap().as_array().unwrap().clone();
    assert_ne!(codes[0], "fine");
    assert_ne!(codes[1], "fine");
    assert_eq!(codes[2..], [json!("TOOL_NOT_FOUND"), json!("TypeError")], "{codes:?}");
    // Requests for them are calls: recorded, and within the run's budget.
    assert!(result.tool_calls.iter().any(|call| call.tool == "resources/read"), "{:?}", result.tool_calls);
    let limits = cx::Limits { tool_calls: 1, ..cx::Limits::default() };
    let source = "await mcp.listPrompts('everything'); return mcp.listPrompts('everything').catch((error) => error.code)";
    let limited = executor.run(Script::typescript(source).limits(limits)).await.unwrap();
    assert_eq!(limited.value(), Some(&json!("MAX_TOOL_CALLS_EXCEEDED")), "{}", limited.to_json());
    executor.close().await;
}

/// Threat 145: a list that names single tools permits nothing else of their server.
#[tokio::test]
async fn tl_145_resources_are_under_the_policy() {
    let executor = everything();
    let read = "return mcp.listResources('everything').then(() => 'fine', (error) => error.code)";
    let run = async |script: Script| value(&executor, script).await;
    assert_eq!(run(Script::typescript(read).allow(["everything.echo"])).await, "TOOL_DENIED");
    assert_eq!(run(Script::typescript(read).deny(["everything.resources/*"])).await, "TOOL_DENIED");
    assert_eq!(run(Script::typescript(read).allow(["everything.*"])).await, "fine");
    assert_eq!(run(Script::typescript(read).allow(["everything.resources/list"])).await, "fine");
    executor.close().await;
}
