//! Tools whose arguments have alternatives.

use serde_json::json;

use super::super::signature;
use super::{tool, types};

#[test]
fn arguments_are_optional_if_some_alternative_needs_none() {
    let alternative = |field: &str| json!({"properties": {field: {"type": "null"}}, "required": [field]});
    let none = json!({"properties": {"c": {"type": "null"}}});
    for (alternatives, expected) in [
        (json!([alternative("a"), alternative("b")]), "t(args: { a: null } | { b: null }): Promise<any>"),
        (json!([alternative("a"), none]), "t(args?: { a: null } | { c?: null }): Promise<any>"),
    ] {
        let definition = tool("t", json!({"type": "object", "oneOf": alternatives}));
        assert_eq!(signature(types(&definition)), expected);
    }
}

#[test]
fn arguments_are_required_if_each_alternative_requires_one() {
    let properties = json!({ "a": { "type": "null" }, "b": { "type": "null" } });
    let (a, b, none) = (json!({ "required": ["a"] }), json!({ "required": ["b"] }), json!({}));
    for (schema, is_required) in [
        (json!({ "properties": properties, "anyOf": [a, b] }), true),
        (json!({ "properties": properties, "anyOf": [a, none] }), false),
        (json!({ "properties": properties, "anyOf": [] }), false),
        (json!({ "properties": properties, "allOf": [none, { "oneOf": [a, b] }] }), true),
        (json!({ "$ref": "#/$defs/a", "$defs": { "a": a } }), true),
        // References that lead back, and to one schema often.
        (json!({ "$ref": "#" }), false),
        (
            json!({ "$ref": "#/$defs/a", "$defs": { "a": {
                "allOf": [{ "$ref": "#/$defs/a" }, { "$ref": "#/$defs/a" }],
                "properties": properties
            } } }),
            false,
        ),
    ] {
        let signature = signature(types(&tool("t", schema.clone())));
        let expected = if is_required { "t(args: " } else { "t(args?: " };
        assert!(signature.starts_with(expected), "{schema}: {signature}");
    }
}
