use serde_json::json;

use super::*;

#[test]
fn names_are_plain_where_they_can_be_and_never_shared() {
    assert_eq!(name("files", "read_file"), "files__read_file");
    // Two pairs whose joined names are equal.
    let pairs = [("a__b", "c"), ("a", "b__c"), ("a_", "b"), ("a", "_b"), ("a.b", "c"), ("a b", "c")];
    let names: std::collections::HashSet<String> =
        pairs.iter().map(|(server, tool)| name(server, tool)).collect();
    assert_eq!(names.len(), pairs.len(), "{names:?}");
    let long = "x".repeat(300);
    for (server, tool) in pairs.into_iter().chain([("files", &*long), (&long, "read"), ("ü", "読む")]) {
        let name = name(server, tool);
        assert!(name.len() <= MAX_NAME && !name.is_empty(), "{name}");
        assert!(name.chars().all(|character| character.is_ascii_alphanumeric() || "_-".contains(character)));
        assert_eq!(name, super::name(server, tool));
    }
    assert!(name("files", &long).starts_with("files__xxx"));
}

#[test]
fn schemas_that_could_break_a_list_are_refused() {
    let shown = |schema: Value| object_schema(&schema.to_string());
    assert_eq!(shown(json!({})), Ok(json!({ "type": "object" }).as_object().unwrap().clone()));
    let any = json!({ "type": "object", "properties": { "a": true } });
    assert_eq!(shown(any).unwrap()["properties"], json!({ "a": {} }));
    let mut deep = json!({});
    for _ in 0..=MAX_SCHEMA_DEPTH {
        deep = json!({ "not": deep });
    }
    for schema in [
        json!([]),
        json!({ "type": "array" }),
        json!({ "type": ["object", "null"] }),
        json!({ "properties": [] }),
        json!({ "properties": { "a": 1 } }),
        json!({ "properties": { "a": false } }),
        json!({ "required": "a" }),
        json!({ "required": [1] }),
        json!({ "$schema": "https://example.com/mine" }),
        json!({ "description": "x".repeat(MAX_SCHEMA_BYTES) }),
        deep,
    ] {
        assert!(shown(schema.clone()).is_err(), "{schema:.80}");
    }
    assert!(compiles(shown(json!({ "properties": { "a": { "type": "banana" } } })).unwrap()).is_err());
}
