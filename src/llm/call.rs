//! What scripts ask of models, as their guests send it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::extraction;
use super::model::{ModelMessage, ModelRequest, ModelRole};
use crate::json;
use crate::text::preview;

/// Maximum tokens of an answer, if the script sets none.
pub(crate) const DEFAULT_ANSWER_TOKENS: u32 = 1_000;

/// Maximum tokens that a script can ask for in one answer.
const MAX_ANSWER_TOKENS: f64 = 1_000_000.0;

/// Maximum characters of a value of the script's author in an error.
const MAX_SHOWN: usize = 100;

/// A call of `llm`. The guests make these objects; their fields come from the script.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) enum LlmCall {
    /// Answers at once. The text is a [`Question`] as JSON.
    Ask(String),
    /// Turns a value into one that fits a schema. The text is a [`Question`] as JSON.
    Extract(String),
    /// Checks the question of an answer in pieces, and returns the answer's number at once. The text is a
    /// [`Question`] as JSON.
    Open(String),
    /// Returns the next piece of an answer, or null at its end. The first one asks the model.
    Next(u64),
    /// Ends an answer that is not wanted any more.
    Close(u64),
}

impl LlmCall {
    /// Bytes of what the script wrote.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Ask(text) | Self::Extract(text) | Self::Open(text) => text.len(),
            Self::Next(_) | Self::Close(_) => 0,
        }
    }

    /// The function's name, for what a dry run plans.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Extract(_) => "extract",
            Self::Ask(_) | Self::Open(_) | Self::Next(_) | Self::Close(_) => "ask",
        }
    }
}

/// A question: a prompt, the messages of a conversation, or a value to extract from; and the
/// options of the call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Question {
    prompt: Option<String>,
    messages: Option<Vec<Message>>,
    value: Option<Value>,
    schema: Option<Value>,
    model: Option<String>,
    max_tokens: Option<f64>,
    system_prompt: Option<String>,
}

/// A question that was read.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) request: ModelRequest,
    /// What the answer must fit.
    pub(crate) schema: Option<Value>,
    /// Whether an answer of fewer tokens will do.
    pub(crate) may_shrink: bool,
}

/// A message as scripts write it.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    role: Role,
    content: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    System,
    User,
    Assistant,
}

impl Question {
    /// Reads the text that a guest sent.
    ///
    /// # Errors
    ///
    /// What is wrong with it, for the script's author.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let fields = json::tree(text, json::budget(text.len())).map_err(|error| error.to_string())?;
        let Value::Object(fields) = fields else { return Err("expected an object with options".to_owned()) };
        let mut question = Self::default();
        for (name, value) in fields {
            match name.as_str() {
                "prompt" => question.prompt = string(&name, value)?,
                "messages" => question.messages = messages(value)?,
                "value" => question.value = Some(value).filter(|value| !value.is_null()),
                "schema" => question.schema = Some(value).filter(|value| !value.is_null()),
                "model" => question.model = string(&name, value)?,
                "maxTokens" | "max_tokens" => question.max_tokens = number(&name, &value)?,
                "systemPrompt" | "system_prompt" => question.system_prompt = string(&name, value)?,
                _ => {
                    return Err(format!(
                        "there is no option `{}`; there are `schema`, `model`, `maxTokens`, `systemPrompt` and \
                         `stream`",
                        preview(&name, MAX_SHOWN)
                    ));
                }
            }
        }
        Ok(question)
    }

    /// The value of an extraction, and the schema that it has to fit.
    ///
    /// # Errors
    ///
    /// If there is no schema.
    pub(crate) fn take_extraction(&mut self) -> Result<(Value, Value), String> {
        let value = self.value.take().unwrap_or_default();
        let schema = self.schema.clone().filter(|schema| !schema.is_null());
        let schema = schema.ok_or("expected a JSON Schema: llm.extract(value, schema)")?;
        self.prompt = Some(extraction::extraction_prompt(&value));
        Ok((value, schema))
    }

    /// The request for the model.
    ///
    /// # Errors
    ///
    /// What is wrong with the question, for the script's author.
    pub(crate) fn prepare(self) -> Result<Prepared, String> {
        let max_tokens = self.max_tokens.map(answer_tokens).transpose()?;
        let mut system_prompt = self.system_prompt.filter(|prompt| !prompt.is_empty());
        if self.value.is_some() {
            return Err("`value` is for llm.extract".to_owned());
        }
        let messages = match (self.prompt, self.messages) {
            (Some(_), Some(_)) => return Err("expected a prompt or `messages`, not both".to_owned()),
            (Some(prompt), None) => vec![ModelMessage { role: ModelRole::User, text: prompt }],
            (None, Some(messages)) => conversation(messages, &mut system_prompt)?,
            (None, None) => {
                return Err("expected `messages`: [{ role: \"user\", content: \"…\" }]".to_owned());
            }
        };
        let request = ModelRequest {
            model: self.model.filter(|model| !model.is_empty()),
            system_prompt,
            messages,
            max_tokens: max_tokens.unwrap_or(DEFAULT_ANSWER_TOKENS),
        };
        let schema = self.schema.filter(|schema| !schema.is_null());
        Ok(Prepared { request, schema, may_shrink: max_tokens.is_none() })
    }
}

/// What is wrong with a value of the script's author.
fn wrong(name: &str, expected: &str, value: &Value) -> String {
    format!("`{name}` must be {expected}: {}", preview(&value.to_string(), MAX_SHOWN))
}

fn string(name: &str, value: Value) -> Result<Option<String>, String> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        other => Err(wrong(name, "a string", &other)),
    }
}

fn number(name: &str, value: &Value) -> Result<Option<f64>, String> {
    match value.as_f64() {
        None if !value.is_null() => Err(wrong(name, "a number", value)),
        number => Ok(number),
    }
}

fn messages(value: Value) -> Result<Option<Vec<Message>>, String> {
    let items = match value {
        Value::Null => return Ok(None),
        Value::Array(items) => items,
        other => return Err(wrong("messages", "a list of { role, content }", &other)),
    };
    let messages = items.into_iter().enumerate();
    messages
        .map(|(index, item)| message(&format!("messages[{index}]"), item))
        .collect::<Result<_, _>>()
        .map(Some)
}

fn message(name: &str, value: Value) -> Result<Message, String> {
    let mut fields = match value {
        Value::Object(fields) => fields,
        other => return Err(wrong(name, "{ role, content }", &other)),
    };
    let role = fields.shift_remove("role").unwrap_or_default();
    let role = match role.as_str() {
        Some("system") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        _ => return Err(wrong(&format!("{name}.role"), "`system`, `user` or `assistant`", &role)),
    };
    let content = match fields.shift_remove("content").unwrap_or_default() {
        Value::String(content) => content,
        other => return Err(wrong(&format!("{name}.content"), "a string", &other)),
    };
    match fields.keys().next() {
        Some(other) => {
            Err(format!("`{name}` has `role` and `content`, and no `{}`", preview(other, MAX_SHOWN)))
        }
        None => Ok(Message { role, content }),
    }
}

fn answer_tokens(tokens: f64) -> Result<u32, String> {
    if tokens.fract() != 0.0 || !(1.0..=MAX_ANSWER_TOKENS).contains(&tokens) {
        return Err(format!("`maxTokens` must be a whole number from 1 to {MAX_ANSWER_TOKENS}: {tokens}"));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to fit")]
    Ok(tokens as u32)
}

/// The messages without the system prompt, which may be the first one.
fn conversation(
    messages: Vec<Message>,
    system_prompt: &mut Option<String>,
) -> Result<Vec<ModelMessage>, String> {
    let mut conversation = Vec::with_capacity(messages.len());
    for Message { role, content } in messages {
        let role = match role {
            Role::User => ModelRole::User,
            Role::Assistant => ModelRole::Assistant,
            Role::System if conversation.is_empty() && system_prompt.is_none() => {
                *system_prompt = Some(content);
                continue;
            }
            Role::System => {
                return Err("expected one system prompt: `systemPrompt`, or the first message".to_owned());
            }
        };
        conversation.push(ModelMessage { role, text: content });
    }
    match conversation.last() {
        Some(ModelMessage { role: ModelRole::User, .. }) => Ok(conversation),
        _ => Err("expected a message of the role `user` at the end of `messages`".to_owned()),
    }
}

#[cfg(test)]
mod tests;
