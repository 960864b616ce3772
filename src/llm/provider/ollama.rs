//! The wire format of Ollama's own interface: `POST /api/chat`. A streamed answer is lines of JSON.

use serde_json::{Value, json};

use super::conversation::messages_after_system_prompt;
use super::part::{AnswerPart, count_at, error_in, text_at};
use crate::llm::model::ModelRequest;

/// The body of a request.
pub(crate) fn body(model: &str, request: &ModelRequest, is_streamed: bool) -> Value {
    json!({
        "model": model,
        "stream": is_streamed,
        "options": { "num_predict": request.max_tokens },
        "messages": messages_after_system_prompt(request),
    })
}

/// What a whole answer says, or a message of a streamed one, which has the same form. Thoughts are in another field.
pub(crate) fn part(answer: &Value) -> AnswerPart {
    AnswerPart {
        text: text_at(answer, "/message/content").unwrap_or_default(),
        model: text_at(answer, "/model"),
        stop_reason: text_at(answer, "/done_reason"),
        input_tokens: count_at(answer, "/prompt_eval_count"),
        output_tokens: count_at(answer, "/eval_count"),
        is_last: answer["done"] == true,
        error: error_in(answer),
    }
}
