//! A tool's answer, and the one rule that turns it into a script's value.

use serde_json::Value;

use super::{ToolError, ToolErrorCode};

/// What a tool answered, whatever protocol it came over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolResult {
    /// Content blocks as MCP writes them in JSON: `{"type": "text", "text": …}` and so on.
    pub content: Vec<Value>,
    /// The structured result, if there is one. An explicit `null` is one.
    pub structured: Option<Value>,
    /// Whether the tool reports that it failed.
    pub is_error: bool,
}

impl ToolResult {
    /// A result that is nothing but a JSON value.
    pub fn structured(value: Value) -> Self {
        Self { structured: Some(value), ..Self::default() }
    }

    /// The value that the script gets:
    ///
    /// 1. a reported failure is a [`ToolErrorCode::ToolError`] with the content;
    /// 2. `structuredContent`, and of a lone `{"result": x}` the `x` when the tool's output schema
    ///    is exactly such a wrapper;
    /// 3. else all text, joined by newlines, parsed if the whole is a JSON object or array;
    /// 4. else the content blocks as they are.
    ///
    /// # Errors
    ///
    /// Rule 1 only.
    pub(crate) fn into_value(self, output_schema: Option<&Value>) -> Result<Value, ToolError> {
        if self.is_error {
            let text = joined_text(&self.content);
            let message = match (text, &self.structured) {
                (Some(text), _) if !text.trim().is_empty() => text,
                (_, Some(structured)) => structured.to_string(),
                _ => "the tool reported a failure without a message".to_owned(),
            };
            return Err(ToolError {
                content: self.content,
                ..ToolError::new(ToolErrorCode::ToolError, message)
            });
        }
        if let Some(structured) = self.structured {
            return Ok(unwrap_result(structured, output_schema));
        }
        let Some(text) = joined_text(&self.content) else {
            return Ok(Value::Array(self.content));
        };
        Ok(parse_container(&text).unwrap_or(Value::String(text)))
    }
}

/// The texts of `content`, if it is nothing but text. No content at all is not text.
fn joined_text(content: &[Value]) -> Option<String> {
    if content.is_empty() {
        return None;
    }
    let texts = content
        .iter()
        .map(|block| (block["type"] == "text").then(|| block["text"].as_str()).flatten())
        .collect::<Option<Vec<_>>>()?;
    Some(texts.join("\n"))
}

/// `text` as a JSON object or array. A bare number or word stays the text it is: `007` and `true`
/// are as often prose as they are data.
fn parse_container(text: &str) -> Option<Value> {
    let trimmed = text.trim();
    let looks_like_a_container = (trimmed.starts_with('{') && trimmed.ends_with('}'))
        || (trimmed.starts_with('[') && trimmed.ends_with(']'));
    looks_like_a_container.then(|| serde_json::from_str(trimmed).ok()).flatten()
}

/// Takes the `x` out of `{"result": x}` when the schema promises an object whose one property is
/// `result`: that is how servers wrap what is not an object, because MCP wants one.
fn unwrap_result(structured: Value, output_schema: Option<&Value>) -> Value {
    let promised = output_schema
        .and_then(|schema| schema["properties"].as_object())
        .is_some_and(|properties| properties.len() == 1 && properties.contains_key("result"));
    match structured {
        Value::Object(mut fields) if promised && fields.len() == 1 => match fields.remove("result") {
            Some(result) => result,
            None => Value::Object(fields),
        },
        other => other,
    }
}

#[cfg(test)]
mod tests;
