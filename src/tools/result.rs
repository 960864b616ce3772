//! A tool's answer, and the one rule that turns it into a script's value.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Schema, ToolError, ToolErrorCode};
use crate::json::{self, Json};

/// What a tool answered, whatever protocol it came over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolResult {
    /// Content blocks as MCP writes them in JSON, an array of `{"type": "text", "text": …}` and so on. `None` is the
    /// same as an empty array.
    pub content: Option<Json>,
    /// The structured result, if there is one. An explicit `null` is one.
    pub structured: Option<Json>,
    /// Whether the tool reports that it failed.
    pub is_error: bool,
}

impl ToolResult {
    /// A result that is nothing but a JSON value: a [`Value`], or text that is JSON already ([`Json::parse`]).
    pub fn structured(value: impl Into<Json>) -> Self {
        Self { structured: Some(value.into()), ..Self::default() }
    }

    /// A result that is content blocks.
    pub fn content(blocks: Vec<Value>) -> Self {
        Self { content: Some(blocks.into()), ..Self::default() }
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

    /// The texts of the content, if it is nothing but text. No content at all is not text.
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

/// `text` as a JSON object or array. A bare number or word stays the text it is: `007` and `true`
/// are as often prose as they are data.
fn parse_container(text: &str) -> Option<Json> {
    let trimmed = text.trim();
    let looks_like_a_container = (trimmed.starts_with('{') && trimmed.ends_with('}'))
        || (trimmed.starts_with('[') && trimmed.ends_with(']'));
    looks_like_a_container.then(|| Json::parse(trimmed).ok()).flatten()
}

/// Takes the `x` out of `{"result": x}` when the schema promises an object whose one property is
/// `result`: that is how servers wrap what is not an object, because MCP wants one.
fn unwrap_result(structured: Json, output_schema: Option<&Schema>) -> Json {
    /// The value under `result`, if there is nothing else.
    fn lone_result(text: &str) -> Option<&RawValue> {
        let mut found = None;
        let mut others = 0;
        json::each_field(text, |key, value| if key == "result" { found = Some(value) } else { others += 1 })
            .ok()?;
        found.filter(|_| others == 0)
    }
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

#[cfg(test)]
mod tests;
