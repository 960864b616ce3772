use std::collections::BTreeSet;

use serde_json::json;

use super::*;

const PAGE: &str = include_str!("../../../../docs/backends.md");

/// The names of a type's variants, which serde's error lists behind the wrong one.
fn variants<'a, T: Deserialize<'a>>(wrong: &'a str) -> BTreeSet<String> {
    let error = serde_json::from_str::<T>(wrong).err().unwrap().to_string();
    assert!(error.starts_with("unknown variant"), "{error}");
    error.split('`').skip(3).step_by(2).map(str::to_owned).collect()
}

/// What the first column of the tables below a heading of the page names.
fn documented(heading: &str) -> BTreeSet<String> {
    let (_, section) = PAGE.split_once(&format!("\n{heading}\n")).unwrap();
    let section = section.split("\n#").next().unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    rows.filter_map(|row| row.split('`').nth(1)).map(str::to_owned).collect()
}

#[test]
fn the_page_about_back_ends_has_every_query() {
    let kinds = variants::<Query>(r#"{"kind":"?"}"#);
    assert!(kinds.len() > 15, "{kinds:?}");
    assert_eq!(documented("## Queries"), kinds);
    assert_eq!(documented("### Calls of `state`"), variants::<StateCall>(r#""?""#));
    assert_eq!(documented("### Calls of `llm`"), variants::<LlmCall>(r#""?""#));
    assert_eq!(documented("### Calls of `fetch`"), variants::<FetchCall>(r#""?""#));
    assert_eq!(documented("### Calls of `file`"), variants::<FileCall>(r#"{"op":"?"}"#));
}

/// Back ends write what the host reads.
#[test]
fn queries_are_read_as_they_are_written() {
    let request = json!({ "id": 1, "url": "http://a", "method": "GET" });
    let calls = [
        json!({ "kind": "names", "server": "a" }),
        json!({ "kind": "servers" }),
        json!({ "kind": "search", "query": "a", "server": null, "limit": 3.0, "detail": "names" }),
        json!({ "kind": "documentation", "query": "a", "server": null, "tool": null, "limit": 1.0, "schemas": true }),
        json!({ "kind": "getPrompt", "server": "a", "name": "b", "arguments": { "c": 1 } }),
        json!({ "kind": "progress", "done": 1.0, "total": null, "message": "m" }),
        json!({ "kind": "state", "call": { "set": { "key": "k", "value": "1", "expected": "" } } }),
        json!({ "kind": "file", "call": { "op": "copy", "path": "a", "to": "b", "exclusive": true } }),
        json!({ "kind": "fileBlock", "file": { "path": "a", "mimeType": "text/plain" } }),
        json!({ "kind": "llm", "call": { "ask": "{}" } }),
        json!({ "kind": "limitCall", "id": 1, "timeoutMs": 5.5 }),
    ];
    for call in calls {
        let query: Query =
            serde_json::from_value(call.clone()).unwrap_or_else(|error| panic!("{call}: {error}"));
        assert_eq!(serde_json::to_value(&query).unwrap(), call);
    }
    // What it leaves out is written.
    let query = json!({ "kind": "fetch", "call": { "open": request } });
    let query: Query = serde_json::from_value(query).ok().unwrap();
    let written = serde_json::to_string(&query).unwrap();
    let Ok(Query::Fetch { call: FetchCall::Open(request) }) = serde_json::from_str(&written) else {
        panic!("{written}");
    };
    assert_eq!((request.id, &*request.url, &*request.method), (1, "http://a", "GET"));
}
