//! A tool's result, and its conversion to a script's value.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use super::error::{ToolError, ToolErrorCode};
use super::schema::Schema;
use crate::json::{self, Json, numbers};

/// A tool's result, independent of the protocol.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolResult {
    /// Content blocks in MCP's JSON form: an array of `{"type": "text", "text": …}` and so on.
    /// `None` is the same as an empty array.
    pub content: Option<Json>,
    /// The structured result, if there is one. An explicit `null` counts as one.
    pub structured: Option<Json>,
    /// Whether the tool reports a failure.
    pub is_error: bool,
    /// The server's `_meta` of the result, an object. Scripts do not see it.
    pub meta: Option<Json>,
}

impl ToolResult {
    /// A result with only a structured value: a [`Value`], or text that is already JSON
    /// ([`Json::parse`]).
    pub fn structured(value: impl Into<Json>) -> Self {
        Self { structured: Some(value.into()), ..Self::default() }
    }

    /// A result with only content blocks.
    pub fn content(blocks: Vec<Value>) -> Self {
        Self { content: Some(blocks.into()), ..Self::default() }
    }

    /// The value that the script receives. The first rule that applies decides:
    ///
    /// 1. A reported failure becomes a [`ToolErrorCode::ToolError`] with the content.
    /// 2. `structuredContent`; only the `x` of `{"result": x}` if the tool's output schema is
    ///    such a wrapper: see [`Schema::wraps_result`].
    /// 3. All text, joined by newlines, and parsed if the whole is a JSON object or array.
    /// 4. The content blocks unchanged; null if there are none.
    ///
    /// # Errors
    ///
    /// Rule 1 only.
    pub(crate) fn into_value(self, output_schema: Option<&Schema>) -> Result<Json, ToolError> {
        if self.is_error {
            let message = match (self.joined_text(), &self.structured) {
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
        let Some(text) = self.joined_text() else {
            let blocks = self
                .content
                .filter(|content| json::items(content.text(), 1).is_ok_and(|blocks| !blocks.is_empty()));
            return Ok(blocks.unwrap_or_else(|| Value::Null.into()));
        };
        Ok(parse_container(&text).unwrap_or_else(|| Json::from(text)))
    }

    /// Whether only the output schema determines if the value is `{"result": x}` or `x`.
    pub(crate) fn may_be_wrapped(&self) -> bool {
        let structured = if self.is_error { None } else { self.structured.as_ref() };
        structured.is_some_and(|structured| json::lone_field(structured.text(), "result").is_some())
    }

    /// Bytes of JSON of all parts.
    pub(crate) fn bytes(&self) -> usize {
        let parts = [&self.content, &self.structured, &self.meta];
        parts.into_iter().flatten().map(|part| part.text().len()).sum()
    }

    /// A result with this value in the form of `before`: it has structured content if `before` had some.
    pub(crate) fn with_value(before: Option<&Self>, output_schema: Option<&Schema>, value: &Json) -> Self {
        let text = value.as_string().unwrap_or_else(|| value.text().to_owned());
        let has_structure =
            output_schema.is_some() || before.is_some_and(|before| before.structured.is_some());
        let structured = has_structure.then(|| {
            let is_wrapped = output_schema.is_some_and(Schema::wraps_result);
            let wrapped = is_wrapped.then(|| Json::parse(&format!(r#"{{"result":{}}}"#, value.text())).ok());
            wrapped.flatten().unwrap_or_else(|| value.clone())
        });
        let content = vec![serde_json::json!({ "type": "text", "text": text })];
        Self { structured, ..Self::content(content) }
    }

    /// The joined texts of the content if it has only text blocks; `None` if it has other blocks or
    /// none at all.
    fn joined_text(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Block<'a> {
            #[serde(borrow, rename = "type")]
            kind: Cow<'a, str>,
            #[serde(borrow)]
            text: Cow<'a, str>,
        }
        let mut joined = None::<String>;
        json::each_item(self.content.as_ref()?.text(), |block| {
            let block: Block<'_> = serde_json::from_str(block.get())?;
            if block.kind != "text" {
                return Err(serde::de::Error::custom("not a text"));
            }
            match &mut joined {
                Some(joined) => {
                    joined.push('\n');
                    joined.push_str(&block.text);
                }
                None => joined = Some(block.text.into_owned()),
            }
            Ok(())
        })
        .ok()?;
        joined
    }
}

/// Parses `text` if it is a JSON object or array. A bare number or word stays text: `007` and
/// `true` are as often prose as data.
fn parse_container(text: &str) -> Option<Json> {
    let trimmed = text.trim();
    let looks_like_a_container = (trimmed.starts_with('{') && trimmed.ends_with('}'))
        || (trimmed.starts_with('[') && trimmed.ends_with(']'));
    if !looks_like_a_container {
        return None;
    }
    // Output of Python's `json` may contain `NaN`.
    let marked = || numbers::marked_text(trimmed).and_then(|text| Json::parse_marked(&text).ok());
    Json::parse(trimmed).ok().or_else(marked)
}

/// Extracts `x` from `{"result": x}` if the output schema is such a wrapper.
fn unwrap_result(structured: Json, output_schema: Option<&Schema>) -> Json {
    // The result is checked first, because schemas can be long.
    let is_wrapped = json::lone_field(structured.text(), "result").is_some()
        && output_schema.is_some_and(Schema::wraps_result);
    let result = if is_wrapped { structured.field("result") } else { None };
    result.unwrap_or(structured)
}

#[cfg(test)]
mod tests;
