use serde_json::json;

use super::*;

fn is_small(schema: &Value, value: &Value) -> bool {
    has_small_errors(SchemaView::root(schema), value)
}

#[test]
fn errors_are_counted_where_they_can_be() {
    let item = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let schema = json!({ "type": "array", "items": item });
    // The values are as they have to be.
    assert!(is_small(&schema, &json!(vec![json!({ "n": 1 }); 10_000])));
    assert!(is_small(&schema, &json!(vec![json!({}); 10_000])));
    assert!(!is_small(&schema, &json!(vec![json!({}); 30_000])));
    // Nothing is copied where only the validity matters.
    let large = json!("a".repeat(1_000_000));
    let integers = vec![json!({ "type": "integer" }); 100];
    assert!(is_small(&json!({ "not": { "anyOf": integers } }), &large));
    assert!(is_small(&json!({ "allOf": integers }), &large));
    assert!(!is_small(&json!({ "anyOf": integers }), &large));
}

#[test]
fn steps_of_recursive_schemas_are_those_of_the_values() {
    let both = json!({ "$ref": "#/$defs/n" });
    let schema = json!({ "$ref": "#/$defs/n", "$defs": { "n": { "anyOf": [
        { "type": "object", "properties": { "x": both } },
        { "type": "object", "properties": { "y": both } },
        { "properties": { "x": both, "y": both } },
        { "type": "string" },
    ] } } });
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!({ "x": inner }));
    assert!(has_few_steps(SchemaView::root(&schema), &nested(8)));
    assert!(!has_few_steps(SchemaView::root(&schema), &nested(64)));
    // An anchor is searched for once.
    let anchored = json!({ "$ref": "#n", "$defs": { "n": { "$anchor": "n", "items": { "$ref": "#n" } } } });
    assert!(has_few_steps(SchemaView::root(&anchored), &json!(vec![json!([]); 10_000])));
}
