//! A tool's result, and its conversion to a script's value.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::error::{ToolError, ToolErrorCode};
use super::schema::Schema;
use crate::json::{self, Json};

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
    ///    exactly such a wrapper.
    /// 3. All text, joined by newlines, and parsed if the whole is a JSON object or array.
    /// 4. The content blocks unchanged.
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
            return Ok(self.content.unwrap_or_else(|| Vec::new().into()));
        };
        Ok(parse_container(&text).unwrap_or_else(|| Json::from(text)))
    }

    /// Whether only the output schema says if the value is `{"result": x}` or `x`.
    pub(crate) fn may_be_wrapped(&self) -> bool {
        let structured = if self.is_error { None } else { self.structured.as_ref() };
        structured.is_some_and(|structured| lone_result(structured.text()).is_some())
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
    looks_like_a_container.then(|| Json::parse(trimmed).ok()).flatten()
}

/// Extracts `x` from `{"result": x}` if the output schema declares an object whose only property is
/// `result`. Servers wrap values that are not objects in this way, because MCP requires an object.
fn unwrap_result(structured: Json, output_schema: Option<&Schema>) -> Json {
    #[derive(Deserialize)]
    struct Promise<'a> {
        #[serde(borrow)]
        properties: Option<&'a RawValue>,
    }
    let promised = output_schema.is_some_and(|schema| {
        let promise = serde_json::from_str::<Promise<'_>>(schema.text()).ok();
        promise.and_then(|promise| lone_result(promise.properties?.get())).is_some()
    });
    let result = if promised { lone_result(structured.text()) } else { None };
    result.and_then(|result| Json::parse(result.get()).ok()).unwrap_or(structured)
}

/// The value of `result`, if there are no other fields.
fn lone_result(text: &str) -> Option<&RawValue> {
    let mut found = None;
    let mut others = 0;
    json::each_field(text, |key, value| if key == "result" { found = Some(value) } else { others += 1 })
        .ok()?;
    found.filter(|_| others == 0)
}

#[cfg(test)]
mod tests;
