//! The wire format of Anthropic's messages: `POST /v1/messages`.

use serde_json::{Value, json};

use super::conversation::messages;
use super::part::{AnswerPart, count_at, error_in, text_at};
use crate::llm::model::ModelRequest;

/// The version of the interface, which each request names.
pub(crate) const VERSION: &str = "2023-06-01";

/// The body of a request.
pub(crate) fn body(model: &str, request: &ModelRequest, is_streamed: bool) -> Value {
    let mut body = json!({
        "model": model,
        "stream": is_streamed,
        "messages": messages(request).collect::<Vec<_>>(),
        "max_tokens": request.max_tokens,
    });
    if let Some(prompt) = &request.system_prompt {
        body["system"] = prompt.as_str().into();
    }
    body
}

/// What a whole answer says.
pub(crate) fn whole(answer: &Value) -> AnswerPart {
    let blocks = answer["content"].as_array().into_iter().flatten();
    let texts = blocks.filter(|block| block["type"] == "text").filter_map(|block| block["text"].as_str());
    AnswerPart {
        text: texts.collect(),
        model: text_at(answer, "/model"),
        stop_reason: text_at(answer, "/stop_reason"),
        input_tokens: input_tokens(&answer["usage"]),
        output_tokens: count_at(answer, "/usage/output_tokens"),
        is_last: true,
        error: error_in(answer),
    }
}

/// What a message of a streamed answer says. `name` is the name of its event, which it usually repeats.
pub(crate) fn message(name: &str, message: &Value) -> AnswerPart {
    let mut part = AnswerPart { error: error_in(message), ..AnswerPart::default() };
    match message["type"].as_str().unwrap_or(name) {
        "message_start" => {
            part.input_tokens = input_tokens(&message["message"]["usage"]);
            part.output_tokens = count_at(message, "/message/usage/output_tokens");
        }
        // Blocks of thoughts and tools have no field of that name.
        "content_block_start" => part.text = text_at(message, "/content_block/text").unwrap_or_default(),
        "content_block_delta" => part.text = text_at(message, "/delta/text").unwrap_or_default(),
        // Its numbers are sums, which replace the earlier ones.
        "message_delta" => {
            part.stop_reason = text_at(message, "/delta/stop_reason");
            part.input_tokens = input_tokens(&message["usage"]);
            part.output_tokens = count_at(message, "/usage/output_tokens");
        }
        "message_stop" => part.is_last = true,
        _ => {}
    }
    part
}

/// All tokens of the conversation: `input_tokens` has none of those that were written to a cache or read from one.
fn input_tokens(usage: &Value) -> Option<u64> {
    let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"];
    let cached = cached.into_iter().filter_map(|name| usage[name].as_u64());
    Some(cached.fold(usage["input_tokens"].as_u64()?, u64::saturating_add))
}
