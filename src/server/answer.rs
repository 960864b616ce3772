//! The answer to a tool call.

pub(crate) mod draft;
mod format;
mod text;
pub(crate) mod truncation;

use std::time::Duration;

use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock};
use serde_json::{Value, json};

use crate::run::result_json::milliseconds;

pub use format::Format;

/// Error code of answers to calls with invalid arguments. Tools use the same code.
pub(crate) const INVALID_ARGUMENTS: &str = "INVALID_ARGUMENTS";

/// An answer to a tool call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) structured: Value,
    /// The text first, then the emitted content.
    pub(crate) content: Vec<ContentBlock>,
    pub(crate) is_error: bool,
}

impl Answer {
    /// Bytes that the model reads: of text the text itself, of other content its data as it is sent.
    pub(crate) fn content_bytes(&self) -> u64 {
        let bytes = |block: &ContentBlock| match block {
            ContentBlock::Text(text) => text.text.len(),
            ContentBlock::Image(image) => image.data.len(),
            ContentBlock::Audio(audio) => audio.data.len(),
            // Rare and small: a link or a resource.
            other => serde_json::to_string(other).map_or(0, |text| text.len()),
        };
        self.content.iter().map(|block| bytes(block) as u64).sum()
    }
}

impl From<Answer> for CallToolResult {
    fn from(answer: Answer) -> Self {
        let mut result = Self::success(answer.content);
        result.structured_content = Some(answer.structured);
        result.is_error = Some(answer.is_error);
        result
    }
}

impl From<Answer> for CallToolResponse {
    fn from(answer: Answer) -> Self {
        CallToolResult::from(answer).into()
    }
}

/// The answer to a call that was refused before it became a run.
pub(crate) fn refusal(format: Format, code: &str, message: &str, hint: Option<&str>) -> Answer {
    let mut error = json!({ "code": code, "message": message });
    if let Some(hint) = hint {
        error["hint"] = hint.into();
    }
    let structured = json!({ "success": false, "error": error });
    let text = format.render(&structured, || {
        let hint = hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
        format!("{code}: {message}{hint}")
    });
    Answer { structured, content: vec![ContentBlock::text(text)], is_error: true }
}

/// The same for a call that may succeed after `retry_after`.
pub(crate) fn refusal_for_now(format: Format, code: &str, message: &str, retry_after: Duration) -> Answer {
    let error = json!({ "code": code, "message": message, "retryAfterMs": milliseconds(retry_after) });
    let structured = json!({ "success": false, "error": error });
    // Fractions say nothing to a model.
    let rounded = retry_after.as_micros().div_ceil(1_000);
    let text = format.render(&structured, || format!("{code}: {message}\ntry again after {rounded} ms"));
    Answer { structured, content: vec![ContentBlock::text(text)], is_error: true }
}

/// The answer to a call that is not a run: `health`.
pub(crate) fn data(format: Format, structured: Value) -> Answer {
    let text = format.render(&structured, || structured.to_string());
    Answer { structured, content: vec![ContentBlock::text(text)], is_error: false }
}

#[cfg(test)]
pub(crate) mod tests;
