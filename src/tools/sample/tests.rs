use serde_json::json;

use super::*;
use crate::tools::shape::Shape;

fn check(schema: &Value, expected: &Value) {
    assert_eq!(from_schema(Some(schema)), *expected, "{schema}");
    assert_eq!(from_schema(Some(schema)), *expected, "the same again");
}

#[test]
fn every_kind_of_value() {
    check(&json!({ "type": "string" }), &json!("dry run"));
    check(&json!({ "type": "string", "minLength": 9 }), &json!("dry rundr"));
    check(&json!({ "type": "string", "maxLength": 3 }), &json!("dry"));
    check(&json!({ "type": "string", "format": "date-time" }), &json!("2000-01-01T00:00:00Z"));
    check(&json!({ "type": "integer" }), &json!(1));
    check(&json!({ "type": "integer", "minimum": 5 }), &json!(5));
    check(&json!({ "type": "number", "exclusiveMaximum": 0 }), &json!(-1));
    check(&json!({ "type": "number", "minimum": 1.5 }), &json!(1.5));
    check(&json!({ "type": "integer", "minimum": 5, "multipleOf": 4 }), &json!(8));
    check(&json!({ "type": "boolean" }), &json!(true));
    check(&json!({ "type": "null" }), &json!(null));
    check(&json!({ "type": ["null", "string"] }), &json!("dry run"));
    check(&json!({ "enum": ["open", "closed"] }), &json!("open"));
    check(&json!({ "const": 7 }), &json!(7));
    check(&json!({ "type": "string", "examples": ["a"], "default": "b" }), &json!("b"));
    check(&json!({ "type": "array", "items": { "type": "integer" } }), &json!([1]));
    check(&json!({ "type": "array", "items": { "type": "integer" }, "minItems": 3 }), &json!([1, 1, 1]));
    check(&json!({ "type": "array", "items": { "type": "integer" }, "maxItems": 0 }), &json!([]));
    check(&json!({ "type": "array" }), &json!([]));
    check(
        &json!({ "prefixItems": [{ "type": "string" }, { "type": "boolean" }] }),
        &json!(["dry run", true]),
    );
    check(
        &json!({ "type": "object", "properties": { "b": { "type": "integer" }, "a": { "type": "string" } } }),
        &json!({ "b": 1, "a": "dry run" }),
    );
    check(&json!({ "additionalProperties": { "type": "integer" } }), &json!({ "dry run": 1 }));
    check(&json!({ "anyOf": [{ "type": "null" }, { "type": "integer" }] }), &json!(1));
    check(
        &json!({ "allOf": [{ "properties": { "a": { "type": "integer" } } }], "properties": { "b": { "const": 2 } } }),
        &json!({ "a": 1, "b": 2 }),
    );
    check(&json!({ "$ref": "#/$defs/a", "$defs": { "a": { "type": "boolean" } } }), &json!(true));
    for nothing in [json!({}), json!(true), json!({ "type": "object" }), json!({ "$ref": "http://x/y" })] {
        check(&nothing, &json!({ "dry run": true }));
    }
    assert_eq!(from_schema(None), json!({ "dry run": true }));
}

#[test]
fn an_observed_shape() {
    let seen = json!({ "items": [{ "id": 5, "name": "geheim", "tags": [] }], "next": null });
    let sample = from_schema(Some(&Shape::of(&seen).to_schema()));
    assert_eq!(sample, json!({ "items": [{ "id": 1, "name": "dry run", "tags": [] }], "next": null }));
}

/// Schemas come from servers: no schema may cause an endless or a large sample.
#[test]
fn hostile_schemas_have_small_samples() {
    let doubling = json!({
        "$ref": "#/$defs/a",
        "$defs": { "a": { "type": "object", "properties": {
            "x": { "$ref": "#/$defs/a" }, "y": { "$ref": "#/$defs/a" }, "z": { "$ref": "#/$defs/a" },
        } } },
    });
    let long = "x".repeat(100_000);
    for schema in [
        doubling,
        json!({ "$ref": "#" }),
        json!({ "allOf": [{ "$ref": "#" }, { "$ref": "#" }] }),
        json!({ "anyOf": [{ "$ref": "#" }] }),
        json!({ "type": "array", "minItems": u64::MAX, "items": { "$ref": "#" } }),
        json!({ "type": "string", "minLength": u64::MAX }),
        json!({ "type": "integer", "minimum": 1e308, "multipleOf": 1e-308 }),
        json!({ "type": "number", "maximum": -1e308, "multipleOf": 1e308 }),
        json!({ "type": "string", "default": long, "examples": [long], "enum": [long] }),
    ] {
        let text = from_schema(Some(&schema)).to_string();
        assert!(text.len() < 64 << 10, "{} bytes of {schema:.100}", text.len());
    }
}
