//! Arguments and schemas that would cost the host much: what a check collects, copies and reads is bounded.

use super::*;

/// The list of all errors has a pointer for each, in which every name is repeated.
#[test]
fn v_484_a_long_name_is_not_repeated_for_every_value_in_it() {
    let lists = json!({ "additionalProperties": { "type": "array", "items": { "type": "string" } } });
    let long = "x".repeat(10_000);
    let arguments = |count: usize| json!({ long.as_str(): vec![1; count] });
    let check = compile(lists).unwrap();
    assert!(message(&check, arguments(20)).ends_with("; and 17 more"));
    let first = message(&check, arguments(200));
    assert!(first.contains("expected a string, found 1") && !first.contains("more"), "{first}");
    let nulls = json!({ long.as_str(): vec![1; 200], "n": null });
    assert!(!message(&check, nulls).contains("more"));
}

/// An error of a union has the errors of all its alternatives.
#[test]
fn v_485_errors_of_alternatives_have_a_bound() {
    let strings = json!({ "type": "array", "items": { "type": "string" } });
    for union in ["anyOf", "oneOf"] {
        let schema = json!({ "properties": { "x": { union: [strings, { "type": "string" }] } } });
        let check = compile(schema).unwrap();
        let few = message(&check, json!({ "x": [1, "a"] }));
        assert!(few.contains("expected a string, found 1"), "{few}");
        assert_eq!(message(&check, json!({ "x": vec![1; MAX_VALUES_FOR_ALL_ERRORS] })), TOO_LARGE);
        assert_eq!(message(&check, json!({ "x": vec!["a"; MAX_VALUES_FOR_ALL_ERRORS] })), "");
    }
    // Without a union the first error says where it is.
    let check = compile(json!({ "properties": { "x": strings } })).unwrap();
    let first = message(&check, json!({ "x": vec![1; MAX_VALUES_FOR_ALL_ERRORS] }));
    assert!(first.contains("expected a string, found 1"), "{first}");
}

/// An error for each value and name that the schema requires.
#[test]
fn v_523_lists_of_all_errors_have_a_bound() {
    let names: Vec<String> = (0..1_000).map(|number| format!("field_{number}")).collect();
    let check = compile(json!({ "properties": { "x": { "items": { "required": names } } } })).unwrap();
    let arguments = |count: usize| json!({ "x": vec![json!({}); count] });
    assert!(!check.may_have_all_errors(&arguments(5_000)));
    let first = message(&check, arguments(5_000));
    assert!(first.contains("missing `x[0].field_") && !first.contains("more"), "{first}");
    // A few are all collected, and few of them are explained.
    let all = message(&check, arguments(10));
    assert!(all.ends_with("; and 9997 more"), "{all}");
    // A list of alternatives has errors of each.
    let alternatives: Vec<Value> = (0..2_000).map(|number| json!({ "const": number })).collect();
    let check = compile(json!({ "properties": { "x": { "items": { "anyOf": alternatives } } } })).unwrap();
    assert!(!check.may_have_all_errors(&json!({ "x": vec!["a"; 300] })));
    assert_eq!(message(&check, json!({ "x": vec!["a"; 300] })), TOO_LARGE);
    let few = message(&check, json!({ "x": ["a"] }));
    assert!(few.starts_with("`x[0]`: expected 0, 1, 2") && few.len() < 2_000, "{few}");
}

/// Schemas of one value times values.
#[test]
fn v_523_many_alternatives_are_not_tried_on_many_values() {
    let alternatives: Vec<Value> =
        (0..2_000).map(|number| json!({ "minimum": number, "maximum": number })).collect();
    let check = compile(json!({ "properties": { "x": { "items": { "anyOf": alternatives } } } })).unwrap();
    assert!(check.allows(&json!({ "x": vec![0.5; 100] })));
    // Few enough for comparisons with the longest list, which have a bound of their own.
    let many = json!({ "x": vec![0.5; 3_000] });
    assert!(!check.allows(&many));
    assert_eq!(message(&check, many), "", "left to the server");
}

/// A list of five kinds of objects, as many tools have one.
#[test]
fn v_523_a_union_of_objects_is_explained_however_deep_the_arguments_are() {
    let kind = |number: usize| {
        let value =
            json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
        let properties = json!({ "kind": { "const": format!("k{number}") }, "value": value });
        json!({ "type": "object", "properties": properties, "required": ["kind", "value"] })
    };
    let kinds: Vec<Value> = (0..5).map(kind).collect();
    let filters = json!({ "type": "array", "items": { "anyOf": kinds } });
    let check =
        compile(json!({ "properties": { "filters": filters, "limit": { "type": "integer" } } })).unwrap();
    let filter = |name: Value| json!({ "kind": "k3", "value": { "name": name } });
    let wrong = json!({ "filters": [filter(json!("a")), filter(json!(1)), filter(json!("b"))] });
    assert!(check.may_have_all_errors(&wrong));
    let message_of_wrong = message(&check, wrong);
    assert!(message_of_wrong.contains("filters[1]"), "{message_of_wrong}");
    // What is null is left out.
    let Value::Object(arguments) = json!({ "filters": [filter(json!("a"))], "limit": null }) else {
        panic!("arguments are an object")
    };
    let checked = check.check(arguments).unwrap();
    assert!(!checked.contains_key("limit"), "{checked:?}");
}

/// Names that a server declares times names that a script misspells.
#[test]
fn v_524_misspelt_fields_are_compared_within_a_budget() {
    let letters: String = ('a'..='z').chain('0'..='9').cycle().take(120).collect();
    let field = |number: usize| format!("{}{number:05}{}", &letters[..number % 60], &letters[number % 60..]);
    let properties: Map<String, Value> = (0..1_500).map(|number| (field(number), json!({}))).collect();
    let item = json!({ "properties": properties, "additionalProperties": false });
    let check = compile(json!({ "properties": { "x": { "items": item } } })).unwrap();
    let wrong = |at: usize| -> Map<String, Value> {
        (0..10).map(|number| (format!("{}q", field(20_000 + 10 * at + number)), json!(1))).collect()
    };
    let budget = SuggestionBudget::of_message();
    let arguments = json!({ "x": (0..200).map(wrong).collect::<Vec<_>>() });
    let errors: Vec<_> = check.validator.iter_errors(&arguments).collect();
    assert_eq!(errors.len(), 200);
    let schema = check.schema.to_value();
    let message = explain(errors, SchemaView::root(&schema), &budget);
    assert_eq!(budget.left(), 0);
    assert!(message.starts_with("unknown field `x[0]."), "{message}");
    // A hundred errors with ten fields each are explained, of which three are shown; and a hundred are not.
    assert!(message.ends_with("; and 1097 more"), "{message}");
}

/// Each error of an alternative has a copy of its value.
#[test]
fn v_531_errors_of_alternatives_do_not_copy_a_large_value() {
    let alternatives = vec![json!({ "type": "integer" }); 1_000];
    for union in ["anyOf", "oneOf"] {
        let check = compile(json!({ "properties": { "x": { union: alternatives } } })).unwrap();
        let few = message(&check, json!({ "x": "a" }));
        assert!(few.starts_with("`x`: expected"), "{few}");
        assert_eq!(message(&check, json!({ "x": "a".repeat(100_000) })), TOO_LARGE);
        assert_eq!(message(&check, json!({ "x": vec!["a"; 5_000] })), TOO_LARGE);
    }
    // The names of fields are copied too.
    let closed = vec![json!({ "additionalProperties": false }); 1_000];
    let check = compile(json!({ "properties": { "x": { "anyOf": closed } } })).unwrap();
    assert_eq!(message(&check, json!({ "x": { "a".repeat(100_000): 1 } })), TOO_LARGE);
}

/// Errors have copies of texts of the schema.
#[test]
fn v_532_texts_of_a_schema_are_not_copied_for_every_value() {
    let long = "a".repeat(20_000);
    let schemas = [
        json!({ "required": [long] }),
        json!({ "dependentRequired": { "a": [long] } }),
        json!({ "not": { "type": "object", "description": long } }),
    ];
    for items in schemas {
        let check = compile(json!({ "properties": { "x": { "items": items } } })).unwrap();
        let arguments = |count: usize| json!({ "x": vec![json!({ "a": 1 }); count] });
        assert!(check.may_have_all_errors(&arguments(10)), "{items}");
        assert!(!check.may_have_all_errors(&arguments(1_000)), "{items}");
        // The first one is explained.
        let first = message(&check, arguments(1_000));
        assert!(first.contains("x[0]") && !first.contains("more"), "{first}");
    }
}

/// For each byte, all states of a pattern's automaton can be active.
#[test]
fn v_533_patterns_read_a_bounded_amount_of_text() {
    let text = "ab".repeat(250_000);
    let many: Vec<Value> = (0..200).map(|number| json!({ "pattern": format!("a.*b.*{number}$") })).collect();
    let schemas = [json!({ "pattern": "[ab]*a[ab]{100}c" }), json!({ "allOf": many })];
    for schema in schemas {
        let check = compile(json!({ "properties": { "x": schema } })).unwrap();
        assert!(message(&check, json!({ "x": "ab" })).contains("a string that matches"));
        assert!(!check.allows(&json!({ "x": text })), "{schema}");
        assert_eq!(message(&check, json!({ "x": text })), "", "left to the server");
        // Text that no pattern reads does not count.
        assert!(check.allows(&json!({ "x": "ab", "y": text })), "{schema}");
    }
    let names = compile(json!({ "patternProperties": { "[ab]*a[ab]{100}c": false } })).unwrap();
    assert!(!names.allows(&json!({ text.as_str(): 1 })));
    let names = compile(json!({ "propertyNames": { "pattern": "[ab]*a[ab]{100}c" } })).unwrap();
    assert!(!names.allows(&json!({ text.as_str(): 1 })));
    assert!(names.allows(&json!({ "a": text })));
}

/// A JSON text takes many times its bytes when it is parsed.
#[test]
fn v_534_the_content_of_strings_is_not_decoded() {
    for keyword in [json!({ "contentMediaType": "application/json" }), json!({ "contentEncoding": "base64" })]
    {
        let mut schema = json!({ "$schema": "http://json-schema.org/draft-07/schema#" });
        schema["properties"] = json!({ "x": keyword, "contentEncoding": { "type": "string" } });
        let check = compile(schema).unwrap();
        assert_eq!(message(&check, json!({ "x": "{?" })), "");
        assert!(message(&check, json!({ "contentEncoding": 1 })).contains("expected a string"));
    }
}
