use serde_json::{Value, json};

use super::find_json;

#[track_caller]
fn check(answer: &str, expected: Option<Value>) {
    assert_eq!(find_json(answer), expected, "{answer}");
}

#[test]
fn finds_the_value_of_an_answer() {
    check(r#"{"a": 1}"#, Some(json!({ "a": 1 })));
    check(" 12 ", Some(json!(12)));
    check("\"text\"", Some(json!("text")));
    check("```json\n{\"a\": [1, 2]}\n```", Some(json!({ "a": [1, 2] })));
    check("Here it is:\n```\n[1]\n```\nAnything else?", Some(json!([1])));
    check("Sure! {\"a\": {\"b\": \"}\"}} is the answer.", Some(json!({ "a": { "b": "}" } })));
    check("As [requested]: {\"a\": 1}", Some(json!({ "a": 1 })));
    check("No JSON here.", None);
    check("{\"a\": ", None);
    check("", None);
}

#[test]
fn the_search_in_an_answer_of_brackets_stops_soon() {
    check(&"[".repeat(1_000_000), None);
    check(&"{[".repeat(500_000), None);
}
