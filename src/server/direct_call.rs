//! A call of a tool that is shown directly: a run without a script.

use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use serde_json::Value;

use super::answer::truncation::{cut, is_longer, record_note};
use super::shared::Shared;
use crate::error::{Error, with_sources};
use crate::json::{self, Json};
use crate::run::tool_call::CallResult;
use crate::tools::{ToolError, ToolResult};

/// Maximum number of content blocks that are passed on.
const MAX_BLOCKS: usize = 1_000;

/// The answer to a call whose run has ended. Everything that the tool returned is passed on unchanged, except that text
/// beyond the operator's bound is truncated, as in answers of scripts; the next script can read all of it. Structured
/// content without blocks, such as the value of a saved script, is also passed on as a block of text. Must be called in
/// a tokio runtime.
pub(crate) async fn answer(
    shared: &Shared,
    client: &str,
    result: Result<CallResult, Error>,
    takes_any_structure: bool,
) -> CallToolResult {
    let CallResult { result, run } = match result {
        Ok(result) => result,
        Err(error) => return failure(&with_sources(&error)),
    };
    let result = match result {
        Ok(result) => result,
        Err(error) => return refused(&error),
    };
    let max = shared.options.max_value;
    let history = shared.executor.history().filter(|_| is_cut(&result, max));
    let record = history.and_then(|history| history.keep(client, &run));
    if let (Some(history), Some(id)) = (history, &record) {
        history.share(client, id).await;
    }
    passed_on(&result, max, record.as_deref(), takes_any_structure)
}

/// Whether the answer is truncated.
fn is_cut(result: &ToolResult, max: usize) -> bool {
    let structured = result.structured.as_ref();
    structured.is_some_and(|structured| is_longer(structured.text(), max)) || text_bytes(result) > max
}

/// Bytes of the text blocks, which are at least as many as the characters.
fn text_bytes(result: &ToolResult) -> usize {
    let mut bytes = 0;
    if let Some(content) = &result.content {
        // Content that cannot be read was refused before.
        let _ = json::each_item(content.text(), |block| {
            let block = Json::parse(block.get())?;
            bytes += block.string_field("text").map_or(0, |text| text.len());
            Ok(())
        });
    }
    bytes
}

/// The answer with what the tool returned, truncated to `max` characters. `record` names the record that has all of it.
fn passed_on(
    result: &ToolResult,
    max: usize,
    record: Option<&str>,
    takes_any_structure: bool,
) -> CallToolResult {
    let note = record_note(record, "value");
    let mut answer = CallToolResult::success(Vec::new());
    answer.is_error = result.is_error.then_some(true);
    if let Some(content) = &result.content {
        answer.content = blocks(content, max, &note);
    }
    answer.meta = result.meta.as_ref().and_then(|meta| serde_json::from_str::<MetaObject>(meta.text()).ok());
    let Some(structured) = &result.structured else { return answer };
    if is_longer(structured.text(), max) {
        let length = structured.text().chars().count();
        let what = format!(
            "The tool returned {length} characters of structured content, which are left out: an answer has at \
             most {max}{note}"
        );
        answer.content.push(ContentBlock::text(what));
        // If the tool has an output schema, clients accept an answer without structured content only as an error.
        answer.is_error = Some(true);
        return answer;
    }
    // Otherwise clients and models that read only blocks would see nothing, and older clients would lose a value that
    // is not an object.
    if answer.content.is_empty() {
        answer.content.push(ContentBlock::text(text_of(structured)));
    }
    if takes_any_structure || structured.text().starts_with('{') {
        answer.structured_content = structured.value().cloned();
    }
    answer
}

/// The content blocks of a result, with at most `max` characters of text in all. `note` says where the rest is.
fn blocks(content: &Json, max: usize, note: &str) -> Vec<ContentBlock> {
    let (mut blocks, mut remaining) = (Vec::new(), max);
    let mut budget = json::budget(content.text().len());
    // Content that cannot be read was refused before.
    let _ = json::each_item(content.text(), |block| {
        if blocks.len() >= MAX_BLOCKS {
            return Ok(());
        }
        // A block that would take far more memory than its text is not parsed into a tree.
        budget -=
            json::check(block.get(), budget).map_err(<serde_json::Error as serde::de::Error>::custom)?;
        let mut block: ContentBlock = serde_json::from_str(block.get())?;
        if let ContentBlock::Text(text) = &mut block {
            let length = text.text.chars().count();
            if let Some((kept, _)) = cut(&text.text, remaining, note) {
                text.text = kept;
            }
            remaining = remaining.saturating_sub(length);
        }
        blocks.push(block);
        Ok(())
    });
    blocks
}

/// A string as it is, any other value as JSON.
fn text_of(value: &Json) -> String {
    match value.value() {
        Some(Value::String(text)) => text.clone(),
        _ => value.text().to_owned(),
    }
}

/// The answer to a call that was not made, or has no result.
fn refused(error: &ToolError) -> CallToolResult {
    let mut text = error.to_string();
    if let Some(time) = error.retry_after {
        text.push_str(&format!("\ntry again after {} ms", time.as_millis()));
    }
    failure(&text)
}

/// An answer with an error. Without structured content, which would not be of the tool's
/// output schema.
pub(crate) fn failure(text: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// The arguments as JSON text, with the value that was detached from the message.
pub(crate) fn arguments(mut arguments: rmcp::model::JsonObject, input: Option<Json>) -> Json {
    let Some(input) = input else { return Json::from(Value::Object(arguments)) };
    arguments.shift_remove("input");
    let rest = Value::Object(arguments).to_string();
    let separator = if rest == "{}" { "" } else { "," };
    let text = format!("{}{separator}\"input\":{}}}", &rest[..rest.len() - 1], input.text());
    // Both parts are JSON.
    Json::parse(&text).unwrap_or_else(|_| Value::Null.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result() -> ToolResult {
        let mut result = ToolResult::content(vec![
            json!({ "type": "text", "text": "ab", "_meta": { "x": 1 }, "annotations": { "priority": 0.5 } }),
            json!({ "type": "image", "data": "AAAA", "mimeType": "image/png" }),
        ]);
        result.structured = Some(json!({ "a": [1, 2] }).into());
        result.meta = Some(json!({ "io.example/x": { "y": true } }).into());
        result
    }

    #[test]
    fn a_result_is_passed_on_unchanged() {
        let answer = serde_json::to_value(passed_on(&result(), 1_000, None, false)).unwrap();
        let expected = json!({
            "content": [
                { "type": "text", "text": "ab", "_meta": { "x": 1 }, "annotations": { "priority": 0.5 } },
                { "type": "image", "data": "AAAA", "mimeType": "image/png" },
            ],
            "structuredContent": { "a": [1, 2] },
            "_meta": { "io.example/x": { "y": true } },
            "resultType": "complete",
        });
        assert_eq!(answer, expected);
        let failed = ToolResult { is_error: true, ..result() };
        assert_eq!(passed_on(&failed, 1_000, None, false).is_error, Some(true));
    }

    #[test]
    fn what_is_too_long_is_cut_and_said() {
        let mut long = result();
        long.content = Some(json!([{ "type": "text", "text": "x".repeat(3_000) }]).into());
        let answer = passed_on(&long, 500, Some("r1"), false);
        let text = serde_json::to_string(&answer.content).unwrap();
        assert!(text.contains("characters left out") && text.contains(r#"mcp.run(\"r1\")"#), "{text}");
        assert!(answer.structured_content.is_some() && is_cut(&long, 500));
        long.structured = Some(json!({ "a": "y".repeat(3_000) }).into());
        let answer = passed_on(&long, 500, None, false);
        assert_eq!((answer.is_error, answer.structured_content), (Some(true), None));
        assert!(!is_cut(&result(), 500));
    }

    #[test]
    fn structure_that_older_clients_refuse_is_left_out() {
        let list = ToolResult::structured(json!([1]));
        assert_eq!(passed_on(&list, 500, None, false).structured_content, None);
        assert_eq!(passed_on(&list, 500, None, true).structured_content, Some(json!([1])));
    }

    #[test]
    fn structure_without_blocks_is_text_too() {
        for (value, expected) in [
            (json!("a \"b\""), "a \"b\""),
            (json!([1, "c"]), r#"[1,"c"]"#),
            (json!({ "d": null }), r#"{"d":null}"#),
        ] {
            for takes_any_structure in [false, true] {
                let answer =
                    passed_on(&ToolResult::structured(value.clone()), 500, None, takes_any_structure);
                assert_eq!(
                    serde_json::to_value(&answer.content).unwrap(),
                    json!([{ "type": "text", "text": expected }])
                );
            }
        }
        // Blocks that are there are enough.
        assert_eq!(passed_on(&result(), 500, None, false).content.len(), 2);
    }

    #[test]
    fn a_detached_input_is_put_back() {
        let fields = |value: Value| value.as_object().cloned().unwrap();
        let put_back = |given: Value| arguments(fields(given), Some(json!({ "b": 1 }).into())).to_string();
        assert_eq!(put_back(json!({ "input": null })), r#"{"input":{"b":1}}"#);
        assert_eq!(put_back(json!({ "a": 1, "input": null })), r#"{"a":1,"input":{"b":1}}"#);
        assert_eq!(arguments(fields(json!({ "a": 1 })), None).to_string(), r#"{"a":1}"#);
    }
}
