//! Converts a shape to a JSON Schema.

use serde_json::{Map, Value, json};

use super::node::{Node, kind};

/// The JSON Schema of what was seen at a location and below it.
pub(crate) fn to_schema(node: &Node) -> Map<String, Value> {
    let mut alternatives: Vec<Map<String, Value>> = Vec::new();
    if node.is_unknown() {
        return Map::new();
    }
    let mut types: Vec<&str> = Vec::new();
    let number = if node.kinds & kind::FRACTION == 0 { "integer" } else { "number" };
    for (bits, name) in [
        (kind::BOOLEAN, "boolean"),
        (kind::INTEGER | kind::FRACTION, number),
        (kind::STRING, "string"),
        (kind::NULL, "null"),
    ] {
        if node.kinds & bits != 0 {
            types.push(name);
        }
    }
    if let Some(fields) = &node.fields {
        let properties: Map<String, Value> =
            fields.iter().map(|(key, field)| (key.clone(), to_schema(&field.node).into())).collect();
        let required: Vec<&String> =
            fields.iter().filter(|(_, field)| !field.optional).map(|(key, _)| key).collect();
        let mut schema = typed("object");
        schema.insert("properties".to_owned(), properties.into());
        if !required.is_empty() {
            schema.insert("required".to_owned(), json!(required));
        }
        if let Some(values) = &node.values {
            schema.insert("additionalProperties".to_owned(), to_schema(values).into());
        }
        alternatives.push(schema);
    }
    if let (Some(values), None) = (&node.values, &node.fields) {
        let mut schema = typed("object");
        schema.insert("additionalProperties".to_owned(), to_schema(values).into());
        alternatives.push(schema);
    }
    if let Some(elements) = &node.elements {
        let mut schema = typed("array");
        if **elements != Node::default() {
            schema.insert("items".to_owned(), to_schema(elements).into());
        }
        alternatives.push(schema);
    }
    match types[..] {
        [] => {}
        [one] => alternatives.push(typed(one)),
        _ => alternatives.push(Map::from_iter([("type".to_owned(), json!(types))])),
    }
    if alternatives.len() > 1 {
        return Map::from_iter([("anyOf".to_owned(), json!(alternatives))]);
    }
    alternatives.pop().unwrap_or_default()
}

fn typed(name: &str) -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), Value::from(name))])
}
