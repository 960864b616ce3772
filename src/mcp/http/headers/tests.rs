use serde_json::json;

use super::*;
use crate::growth::assert_linear;

#[test]
fn values_that_would_not_survive_are_encoded() {
    assert_eq!(encoded("plain value"), "plain value");
    assert_eq!(encoded("é"), "=?base64?w6k=?=");
    assert_eq!(encoded(" x"), "=?base64?IHg=?=");
    assert_eq!(encoded("a\r\nb"), "=?base64?YQ0KYg==?=");
    assert_eq!(encoded("=?base64?eA==?="), "=?base64?PT9iYXNlNjQ/ZUE9PT89?=");
}

fn list(properties: &Value) -> String {
    let tool = json!({ "name": "t", "inputSchema": { "type": "object", "properties": properties } });
    json!({ "tools": [tool], "ttlMs": 1 }).to_string()
}

#[test]
fn declared_arguments_travel_as_headers() {
    let promotions = Promotions::default();
    let learned = promotions.learn(&list(&json!({
        "region": { "type": "string", "x-mcp-header": "Region" },
        "inner": { "type": "object", "properties": { "n": { "type": "integer", "x-mcp-header": "N" } } },
    })));
    assert_eq!(learned, None);
    let call = json!({ "method": "tools/call", "params": { "name": "t", "arguments": { "region": "eu", "inner": { "n": 7 } } } });
    let headers = promotions.headers(call.to_string().as_bytes());
    assert_eq!(headers["mcp-method"], "tools/call");
    assert_eq!(headers["mcp-name"], "t");
    assert_eq!(headers["mcp-param-region"], "eu");
    assert_eq!(headers["mcp-param-n"], "7");
}

#[test]
fn requests_about_tasks_name_them() {
    let named = |method: &str, parameters: Value| {
        let message = json!({ "method": method, "params": parameters });
        let headers = Promotions::default().headers(message.to_string().as_bytes());
        headers.get("mcp-name").map(|name| name.to_str().unwrap().to_owned())
    };
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        assert_eq!(named(method, json!({ "taskId": "t" })).as_deref(), Some("t"), "{method}");
    }
    assert_eq!(named("tools/list", json!({ "taskId": "t" })), None);
}

#[test]
fn tools_with_declarations_against_the_rules_are_left_out() {
    for properties in [
        json!({ "a": { "type": "object", "x-mcp-header": "A" } }),
        json!({ "a": { "type": "string", "x-mcp-header": "" } }),
        json!({ "a": { "type": "string", "x-mcp-header": "a\r\nb" } }),
        json!({ "a": { "type": "string", "x-mcp-header": "A" }, "b": { "type": "string", "x-mcp-header": "a" } }),
    ] {
        let learned = Promotions::default().learn(&list(&properties));
        assert_eq!(learned.as_deref(), Some(r#"{"tools":[null],"ttlMs":1}"#), "{properties}");
    }
}

/// A page of `count` tools with one argument each. Their descriptions are long, so that copies of the page cost more
/// than reading it.
fn page(first: usize, count: usize, property: &Value) -> String {
    let tool = |number: usize| {
        let schema = json!({ "type": "object", "properties": { "a": property } });
        json!({ "name": format!("t{}", first + number), "description": "x".repeat(2_000), "inputSchema": schema })
    };
    json!({ "tools": (0..count).map(tool).collect::<Vec<_>>() }).to_string()
}

/// Tools that are left out times bytes of their page.
#[test]
fn v_528_tools_of_a_page_are_left_out_in_linear_time() {
    let refused = json!({ "type": "object", "x-mcp-header": "A" });
    let learned = Promotions::default().learn(&page(0, 3, &refused));
    assert_eq!(learned.as_deref(), Some(r#"{"tools":[null,null,null]}"#));
    assert_linear("tools", 1_000, |count| page(0, count, &refused), |page| Promotions::default().learn(page));
}

/// Lists of a server times tools of a list.
#[test]
fn v_528_headers_of_so_many_tools_are_kept() {
    let promotions = Promotions::default();
    let promoted = json!({ "type": "string", "x-mcp-header": "A" });
    for list in 0..3 {
        promotions.learn(&page(list * MAX_TOOLS / 2, MAX_TOOLS / 2 + 1, &promoted));
    }
    assert_eq!(promotions.0.lock().by_tool.len(), MAX_TOOLS);
    let long = json!({ "x".repeat(MAX_PATH_BYTES + 1): promoted });
    assert!(Promotions::default().learn(&list(&long)).is_some_and(|page| page.contains("[null]")));
}

/// Threat 658. The path of each argument is copied: 3 KB of a list become 35 KB, for each of ten thousand tools.
#[test]
fn v_658_the_headers_of_a_server_take_bounded_memory() {
    let argument = |number: usize| {
        (format!("a{number}"), json!({ "type": "string", "x-mcp-header": format!("h{number}") }))
    };
    let inner: serde_json::Map<String, Value> = (0..MAX_PROMOTED).map(argument).collect();
    let outer = json!({ "type": "object", "properties": inner });
    let page = |properties: &Value| {
        let schema = json!({ "type": "object", "properties": properties });
        let tool = |number: usize| json!({ "name": format!("t{number}"), "inputSchema": schema });
        json!({ "tools": (0..1_000).map(tool).collect::<Vec<_>>() }).to_string()
    };
    let promotions = Promotions::default();
    let long = page(&json!({ "x".repeat(1_000): outer }));
    let left = promotions.learn(&long).unwrap();
    let memory = || {
        let learned = promotions.0.lock();
        let all: usize = learned.by_tool.iter().map(|(tool, promoted)| memory_of(tool, promoted)).sum();
        assert_eq!(all, learned.bytes);
        (learned.by_tool.len(), learned.bytes)
    };
    let (kept, bytes) = memory();
    assert!(kept > 100 && bytes <= MAX_BYTES, "{kept} tools, {bytes} bytes");
    // Nothing else is listed: a call without its headers would be refused.
    assert_eq!(left.matches("null").count(), 1_000 - kept);
    // The same list again takes no more, and one without such arguments gives all of it back.
    assert_eq!(promotions.learn(&long), Some(left));
    assert_eq!(memory(), (kept, bytes));
    assert_eq!(promotions.learn(&page(&json!({ "a": { "type": "string" } }))), None);
    assert_eq!(memory(), (0, 0));
}
