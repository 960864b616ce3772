//! What an answer says, in the terms that all wire formats share.

use serde_json::Value;

use crate::llm::model::ModelUsage;

/// What a whole answer says, or one message of a streamed one.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AnswerPart {
    /// Text of the answer. Thoughts of the model and its other content are left out.
    pub(crate) text: String,
    /// The model that gave the answer.
    pub(crate) model: Option<String>,
    /// Why the answer ends, in the provider's word.
    pub(crate) stop_reason: Option<String>,
    /// Tokens of the conversation.
    pub(crate) input_tokens: Option<u64>,
    /// Tokens of the answer, with its thoughts.
    pub(crate) output_tokens: Option<u64>,
    /// Whether nothing follows.
    pub(crate) is_last: bool,
    /// The provider's message, if this is an error.
    pub(crate) error: Option<String>,
}

impl AnswerPart {
    /// The tokens of the call, if the provider reports both numbers.
    pub(crate) fn usage(&self) -> Option<ModelUsage> {
        Some(ModelUsage { input_tokens: self.input_tokens?, output_tokens: self.output_tokens? })
    }
}

/// The text at a JSON pointer, if there is one that is not empty: some services have empty ones in place of null.
pub(crate) fn text_at(answer: &Value, pointer: &str) -> Option<String> {
    answer.pointer(pointer)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The number at a JSON pointer, if there is a natural one.
pub(crate) fn count_at(answer: &Value, pointer: &str) -> Option<u64> {
    answer.pointer(pointer)?.as_u64()
}

/// The provider's message in `error`: its `message`, or all of it.
pub(crate) fn error_in(answer: &Value) -> Option<String> {
    let error = answer.get("error").filter(|error| !error.is_null())?;
    let message = error.get("message").unwrap_or(error);
    Some(message.as_str().map_or_else(|| message.to_string(), str::to_owned))
}
