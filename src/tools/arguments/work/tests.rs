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

/// A repetition in a repetition has as many states as both say, multiplied.
#[test]
fn v_561_patterns_weigh_as_much_as_their_automata() {
    let date = "^[0-9]{4}-[0-9]{2}$";
    for (pattern, weight) in [
        ("", 1),
        ("^a.*$", 5),
        ("a{2,}", 7),
        (date, 25),
        ("(ab)*{2,30}", 330),
        (r"\p{L}{3}", 24),
        ("(a{100}){100}", MAX_PATTERN_WEIGHT),
        ("a{100}{100}", MAX_PATTERN_WEIGHT),
        ("(?x)(a{100})# b\n{100}", MAX_PATTERN_WEIGHT),
    ] {
        assert_eq!(pattern_weight(pattern), weight, "{pattern}");
    }
    let has_few = |schema: &Value, value: &Value| has_few_steps(SchemaView::root(schema), value);
    assert!(!has_few(&json!({ "pattern": "(a{90}){90}" }), &json!("a".repeat(20_000))));
    // A long list of short texts is checked.
    let dates = json!({ "items": { "pattern": date } });
    assert!(has_few(&dates, &json!(vec!["2026-11"; 10_000])));
}
