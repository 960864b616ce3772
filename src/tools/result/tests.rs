use serde_json::json;

use super::*;

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn image() -> Value {
    json!({ "type": "image", "mimeType": "image/png", "data": "AA==" })
}

#[test]
fn the_rule() {
    let wrapper =
        Schema::from(json!({ "type": "object", "properties": { "result": {} }, "required": ["result"] }));
    let unmarked = Schema::from(json!({ "type": "object", "properties": { "result": {} } }));
    let check = |content: Vec<Value>, structured: Option<Value>, schema: Option<&Schema>, expected: Value| {
        let result = ToolResult { structured: structured.map(Json::from), ..ToolResult::content(content) };
        assert_eq!(result.into_value(schema).unwrap(), expected);
    };
    check(vec![text("a")], Some(json!({ "b": 1 })), None, json!({ "b": 1 }));
    check(vec![], Some(json!(null)), None, json!(null));
    check(vec![], Some(json!({ "result": [1] })), Some(&wrapper), json!([1]));
    check(vec![], Some(json!({ "result": [1] })), None, json!({ "result": [1] }));
    check(vec![], Some(json!({ "result": [1] })), Some(&unmarked), json!({ "result": [1] }));
    check(vec![], Some(json!({ "result": 1, "b": 2 })), Some(&wrapper), json!({ "result": 1, "b": 2 }));
    check(vec![], Some(json!({ "other": 1 })), Some(&wrapper), json!({ "other": 1 }));
    check(vec![text("a"), text("b")], None, None, json!("a\nb"));
    check(vec![text(" {\"a\": 1}\n")], None, None, json!({ "a": 1 }));
    check(vec![text("[1,"), text("2]")], None, None, json!([1, 2]));
    check(vec![text("{not json}")], None, None, json!("{not json}"));
    check(vec![text("007")], None, None, json!("007"));
    check(vec![text("true")], None, None, json!("true"));
    check(vec![text("")], None, None, json!(""));
    check(vec![], None, None, json!(null));
    check(vec![text("a"), image()], None, None, json!([text("a"), image()]));
    check(vec![image()], None, None, json!([image()]));
}

#[test]
fn a_reported_failure_is_an_error_with_its_content() {
    let check = |content: Vec<Value>, structured: Option<Value>, message: &str| {
        let result = ToolResult {
            structured: structured.map(Json::from),
            is_error: true,
            ..ToolResult::content(content.clone())
        };
        let error = result.into_value(None).unwrap_err();
        assert_eq!(error.code, ToolErrorCode::ToolError);
        assert_eq!(error.message, message);
        assert_eq!(error.content.unwrap(), Value::Array(content));
    };
    check(vec![text("no such file"), text("x")], None, "no such file\nx");
    check(vec![], Some(json!({ "reason": 1 })), "{\"reason\":1}");
    check(vec![image()], None, "the tool reported a failure without a message");
}
