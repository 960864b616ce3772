use serde_json::{Value, json};

use super::{ArgumentCheck, SuggestionBudget, Unknowns};

/// The problems as `path: message`, with `?` before those that are not certain. The value `"?"` stands for one
/// that is not known, `"?-"` for one that may be left out, and an object with the field `...` is open.
fn problems(schema: &Value, written: Value) -> Vec<String> {
    fn read(value: Value, path: &str, unknowns: &mut Unknowns) -> Value {
        match value {
            Value::String(text) if text == "?" || text == "?-" => {
                unknowns.values.insert(path.to_owned());
                if text == "?-" {
                    unknowns.optional.insert(path.to_owned());
                }
                Value::Null
            }
            Value::Object(mut fields) => {
                if fields.remove("...").is_some() {
                    unknowns.open.insert(path.to_owned());
                }
                let field = |(name, value): (String, Value)| {
                    let read = read(value, &format!("{path}/{name}"), unknowns);
                    (name, read)
                };
                Value::Object(fields.into_iter().map(field).collect())
            }
            Value::Array(items) => {
                let items = items.into_iter().enumerate();
                items.map(|(index, item)| read(item, &format!("{path}/{index}"), unknowns)).collect()
            }
            other => other,
        }
    }
    let mut unknowns = Unknowns::default();
    let arguments = read(written, "", &mut unknowns);
    let check = ArgumentCheck::compile(&schema.clone().into()).unwrap();
    let found = check.problems_of_part(&arguments, &unknowns, &SuggestionBudget::of_message());
    let shown = found.into_iter().map(|problem| {
        let doubt = if problem.is_certain { "" } else { "?" };
        format!("{doubt}{}: {}", problem.path, problem.message)
    });
    shown.collect()
}

#[test]
fn only_what_no_unknown_value_can_mend_is_a_problem() {
    let closed = json!({
        "type": "object",
        "properties": { "a": { "type": "string" }, "n": { "type": "integer" }, "o": { "required": ["x"] } },
        "required": ["a"],
        "additionalProperties": false,
    });
    for (written, expected) in [
        (json!({ "a": "?" }), vec![]),
        (json!({ "a": "?-" }), vec![]),
        (json!({ "n": 1 }), vec![": missing `a` (a string)"]),
        (json!({ "n": "?" }), vec![": missing `a` (a string)"]),
        (json!({ "n": "?", "...": 1 }), vec![]),
        (json!({ "n": "x", "...": 1 }), vec!["/n: `n`: expected an integer, found \"x\""]),
        (json!({ "a": "?", "n": "x" }), vec!["/n: `n`: expected an integer, found \"x\""]),
        (json!({ "a": "?", "z": "?" }), vec![": unknown field `z`; the fields are `a`, `n`, `o`"]),
        (json!({ "a": "?", "z": "?-" }), vec!["?: unknown field `z`; the fields are `a`, `n`, `o`"]),
        (json!({ "a": "?", "n": ["?"] }), vec!["/n: `n`: expected an integer, found an array of 1"]),
        (json!({ "a": "?", "o": { "y": "?" } }), vec!["/o: missing `o.x`"]),
        (json!({ "a": "?", "o": "?" }), vec![]),
        // Null may mean that the field is left out.
        (json!({ "a": "?", "n": null }), vec![]),
    ] {
        let found = problems(&closed, written.clone());
        if expected.iter().any(|text| text.contains("an array of")) {
            assert!(found.len() == 1 && found[0].starts_with("/n: `n`: expected an integer"), "{found:?}");
        } else {
            assert_eq!(found, expected, "{written}");
        }
    }
}

#[test]
fn what_depends_on_other_values_is_no_problem() {
    let union = json!({ "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] });
    assert_eq!(problems(&union, json!({ "c": "?" })), Vec::<String>::new());
    assert_eq!(problems(&union, json!({ "c": 1 })).len(), 1);
    let conditional = json!({
        "if": { "properties": { "kind": { "const": "file" } }, "required": ["kind"] },
        "then": { "required": ["path"] },
        "else": { "required": ["url"] },
    });
    assert_eq!(problems(&conditional, json!({ "kind": "?" })), Vec::<String>::new());
    assert_eq!(problems(&conditional, json!({ "kind": "file" })).len(), 1);
    let unevaluated = json!({ "allOf": [{ "properties": { "a": {} } }], "unevaluatedProperties": false });
    assert_eq!(problems(&unevaluated, json!({ "b": "?" })), Vec::<String>::new());
    let field = json!({ "properties": { "x": { "anyOf": [{ "type": "string" }, { "type": "null" }] } } });
    assert_eq!(problems(&field, json!({ "x": 1, "y": "?" })).len(), 1);
    assert_eq!(problems(&field, json!({ "x": "?", "y": 1 })), Vec::<String>::new());
}

#[test]
fn v_483_described_problems_of_a_call_are_bounded() {
    let schema = json!({ "additionalProperties": { "type": "array", "items": { "type": "string" } } });
    let found = problems(&schema, json!({ "a": vec![1; 500], "b": [1, "?"] }));
    assert_eq!(found.len(), super::MAX_PROBLEMS);
}

/// Each error asks whether its value has unknown parts.
#[test]
fn values_with_unknown_parts_are_known_at_once() {
    let set = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
    let unknowns = Unknowns { values: set(&["/a/b/0", "/ab"]), open: set(&["/a/c"]), ..Unknowns::default() };
    let mut containing: Vec<&str> = unknowns.containing().into_iter().collect();
    containing.sort_unstable();
    assert_eq!(containing, ["", "/a", "/a/b", "/a/b/0", "/a/c", "/ab"]);
    assert!(Unknowns::default().containing().is_empty());
    let root = Unknowns { open: set(&[""]), ..Unknowns::default() };
    assert_eq!(root.containing().into_iter().collect::<Vec<_>>(), [""]);
}
