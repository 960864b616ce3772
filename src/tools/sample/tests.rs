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

/// Whoever reads the sample may check it against the schema.
#[test]
fn numbers_are_within_their_limits() {
    for (schema, expected) in [
        (json!({ "type": "integer", "maximum": 2, "multipleOf": 3 }), json!(0)),
        (json!({ "type": "integer", "maximum": 0.5 }), json!(0)),
        (json!({ "type": "number", "maximum": 0.5 }), json!(0.5)),
        (json!({ "type": "integer", "minimum": -7, "maximum": -5, "multipleOf": 4 }), Value::Null),
        (json!({ "type": "integer", "minimum": -9, "maximum": -5, "multipleOf": 4 }), json!(-8)),
        (json!({ "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 0.5 }), json!(0.25)),
        (json!({ "type": "number", "exclusiveMinimum": 1, "maximum": 1.5 }), json!(1.25)),
        (json!({ "type": "integer", "exclusiveMinimum": 1, "maximum": 2 }), json!(2)),
        (json!({ "type": "integer", "minimum": 2, "exclusiveMinimum": 1 }), json!(2)),
        (json!({ "type": "integer", "minimum": 1.5, "exclusiveMaximum": 2.5 }), json!(2)),
        (json!({ "type": "number", "minimum": 1.2, "maximum": 1.3, "multipleOf": 0.25 }), json!(1.25)),
    ] {
        let sample = from_schema(Some(&schema));
        let validator = jsonschema::validator_for(&schema).unwrap();
        if expected.is_null() {
            // No number satisfies the schema.
            assert!(sample.as_f64().unwrap() <= schema["maximum"].as_f64().unwrap(), "{schema}: {sample}");
        } else {
            assert_eq!(sample, expected, "{schema}");
            assert!(validator.is_valid(&sample), "{schema}: {sample}");
        }
    }
    // In draft 4, whether a limit is exclusive is a boolean.
    check(&json!({ "type": "integer", "minimum": 5, "exclusiveMinimum": true }), &json!(6));
    check(&json!({ "type": "number", "maximum": 0, "exclusiveMaximum": true }), &json!(-1));
}

#[test]
fn an_observed_shape() {
    let seen = json!({ "items": [{ "id": 5, "name": "geheim", "tags": [] }], "next": null });
    let sample = from_schema(Some(&Shape::from_value(&seen).to_schema()));
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

/// Constants of one schema times references to it.
#[test]
fn v_529_few_constants_of_a_schema_are_tried() {
    let long = |number: usize| json!([number, "x".repeat(MAX_CONSTANT_BYTES)]);
    let schema = |count: usize| {
        let constants: Vec<Value> = (0..count).map(long).chain([json!(1)]).collect();
        json!({ "enum": constants, "type": "string" })
    };
    assert_eq!(from_schema(Some(&schema(MAX_CONSTANTS - 1))), json!(1));
    assert_eq!(from_schema(Some(&schema(MAX_CONSTANTS))), json!(MARK));
    // A long one is not read to its end.
    let mut left = 10;
    assert!(!is_within(&json!(["12345", "12345", "12345"]), &mut left));
    assert!(left <= 5, "{left}");
    assert!(is_short(&json!({ "a": [1, null, "b"] })) && !is_short(&long(1)));
}
