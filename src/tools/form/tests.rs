use serde_json::{Map, Value, json};

use super::{Form, FormError};

fn form(properties: Value) -> Form {
    let schema = json!({ "type": "object", "properties": properties, "required": ["name"] });
    Form::from_schema(&schema).expect("a form of the protocol")
}

fn complete(form: &Form, filled: Value) -> Result<Value, FormError> {
    let Value::Object(filled) = filled else { panic!("an object") };
    form.complete(filled).map(Value::Object)
}

/// Every kind of field of revisions 2025-06-18 to 2026-07-28 reaches the client as the server wrote it.
#[test]
fn a_schema_is_passed_on_as_it_was_written() {
    let properties = json!({
        "name": { "title": "Name", "description": "Yours", "default": "Ada", "type": "string", "minLength": 1,
            "maxLength": 9 },
        "mail": { "type": "string", "format": "email" },
        "age": { "default": 7, "type": "integer", "minimum": 0, "maximum": 150 },
        "score": { "default": 0.5, "type": "number" },
        "sure": { "default": true, "type": "boolean" },
        "plain": { "default": "b", "enum": ["a", "b"], "type": "string" },
        "old": { "enum": ["a", "b"], "enumNames": ["A", "B"], "type": "string" },
        "titled": { "oneOf": [{ "const": "a", "title": "A" }], "type": "string" },
        "many": { "default": ["a"], "type": "array", "items": { "enum": ["a", "b"], "type": "string" },
            "minItems": 1, "maxItems": 2 },
        "titles": { "type": "array", "items": { "anyOf": [{ "const": "a", "title": "A" }] } },
    });
    let form = form(properties.clone());
    assert_eq!(form.schema()["properties"], properties);
    assert_eq!(form.schema()["required"], json!(["name"]));
}

#[test]
fn what_is_not_filled_in_gets_its_default() {
    let form = form(json!({
        "name": { "type": "string", "default": "Ada" },
        "age": { "type": "integer", "default": 7 },
        "many": { "type": "array", "items": { "type": "string", "enum": ["a", "b"] }, "default": ["b"] },
        "note": { "type": "string" },
    }));
    let all = json!({ "name": "Ada", "age": 7, "many": ["b"] });
    assert_eq!(complete(&form, json!({})), Ok(all));
    let filled = json!({ "name": "Bo", "age": null, "many": [], "note": "x", "other": 1 });
    assert_eq!(complete(&form, filled), Ok(json!({ "name": "Bo", "age": 7, "many": [], "note": "x" })));
}

#[test]
fn an_answer_must_fit() {
    let form = form(json!({
        "name": { "type": "string", "maxLength": 3 },
        "age": { "type": "integer", "minimum": 0 },
        "sure": { "type": "boolean" },
        "one": { "type": "string", "enum": ["a", "b"] },
        "many": { "type": "array", "items": { "type": "string", "enum": ["a", "b"] }, "maxItems": 1 },
    }));
    for wrong in [
        json!({}),
        json!({ "name": "four" }),
        json!({ "name": 1 }),
        json!({ "name": "a", "age": 1.5 }),
        json!({ "name": "a", "age": -1 }),
        json!({ "name": "a", "sure": "true" }),
        json!({ "name": "a", "one": "c" }),
        json!({ "name": "a", "many": ["a", "b"] }),
        json!({ "name": "a", "many": ["a", "a"] }),
        json!({ "name": "a", "many": "a" }),
    ] {
        assert!(matches!(complete(&form, wrong.clone()), Err(FormError::Value { .. })), "{wrong}");
    }
    let right = json!({ "name": "abc", "age": 0, "sure": false, "one": "b", "many": ["b"] });
    assert_eq!(complete(&form, right.clone()), Ok(right));
}

#[test]
fn a_default_that_does_not_fit_is_none() {
    let form = form(json!({ "name": { "type": "string", "enum": ["a"], "default": "b" } }));
    assert_eq!(form.fields[0].default, None);
}

#[test]
fn what_is_no_form_is_refused() {
    let of = |properties: Value| Form::from_schema(&json!({ "type": "object", "properties": properties }));
    for properties in [
        json!({ "a": { "type": "object", "properties": {} } }),
        json!({ "a": { "type": "array", "items": { "type": "object" } } }),
        json!({ "a": { "type": "array", "items": { "type": "string" } } }),
        json!({ "a": {} }),
        json!({ "a": { "type": "string", "enum": [1] } }),
    ] {
        assert!(matches!(of(properties.clone()), Err(FormError::Schema(_))), "{properties}");
    }
    assert!(matches!(Form::from_schema(&json!({ "type": "array" })), Err(FormError::Schema(_))));
    let many: Map<String, Value> = (0..33).map(|n| (n.to_string(), json!({ "type": "string" }))).collect();
    assert_eq!(of(Value::Object(many)), Err(FormError::TooLarge));
    let options: Vec<String> = (0..257).map(|n| n.to_string()).collect();
    assert_eq!(of(json!({ "a": { "type": "string", "enum": options } })), Err(FormError::TooLarge));
    assert_eq!(of(json!({ "a\u{202e}": { "type": "string" } })), Err(FormError::Hidden));
    assert_eq!(of(json!({ "a": { "type": "string", "enum": ["a\u{200b}"] } })), Err(FormError::Hidden));
}

#[test]
fn titles_hide_nothing() {
    let form =
        form(json!({ "name": { "type": "string", "title": "a\u{202e}b\nc", "description": "\u{1b}[2J" } }));
    assert_eq!(form.fields[0].title.as_deref(), Some("a\\u{202e}b\\u{a}c"));
    assert_eq!(form.fields[0].description.as_deref(), Some("\\u{1b}[2J"));
}

#[test]
fn what_is_typed_is_read_by_the_kind_of_the_field() {
    let form = form(json!({
        "name": { "type": "string" },
        "age": { "type": "integer" },
        "sure": { "type": "boolean" },
        "one": { "type": "string", "enum": ["red", "blue"] },
        "many": { "type": "array", "items": { "type": "string", "enum": ["red", "blue"] } },
    }));
    let typed = ["  Ada ", "42", "Yes", "2", "blue, 1"];
    let read: Vec<Value> =
        form.fields.iter().zip(typed).map(|(field, typed)| field.read(typed).unwrap()).collect();
    assert_eq!(read, [json!("Ada"), json!(42), json!(true), json!("blue"), json!(["blue", "red"])]);
    let wrong = ["", "4.5", "perhaps", "3", "red, red"];
    let refused = form.fields.iter().zip(wrong).skip(1).filter(|(field, typed)| field.read(typed).is_err());
    assert_eq!(refused.count(), 4);
}
