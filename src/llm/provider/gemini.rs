//! The wire format of Google's Gemini: `POST /v1beta/models/MODEL:generateContent`.

use serde_json::{Value, json};

use super::part::{AnswerPart, error_in, text_at};
use crate::llm::model::{ModelRequest, ModelRole};

/// The last segment of the path of a request: the model and the method. Google's list of models has `models/` before
/// each name.
pub(crate) fn method(model: &str, is_streamed: bool) -> String {
    let method = if is_streamed { "streamGenerateContent" } else { "generateContent" };
    format!("{}:{method}", model.strip_prefix("models/").unwrap_or(model))
}

/// The body of a request.
pub(crate) fn body(request: &ModelRequest) -> Value {
    let contents = request.messages.iter().map(|message| {
        let role = match message.role {
            ModelRole::User => "user",
            ModelRole::Assistant => "model",
        };
        json!({ "role": role, "parts": [{ "text": message.text }] })
    });
    let mut body = json!({
        "contents": contents.collect::<Vec<_>>(),
        "generationConfig": { "maxOutputTokens": request.max_tokens },
    });
    if let Some(prompt) = &request.system_prompt {
        body["systemInstruction"] = json!({ "parts": [{ "text": prompt }] });
    }
    body
}

/// What a whole answer says, or a message of a streamed one, which has the same form. None says that it is the last:
/// older models, and services that translate to this format, have a reason for the end in each.
pub(crate) fn part(answer: &Value) -> AnswerPart {
    let candidate = &answer["candidates"][0];
    let parts = candidate["content"]["parts"].as_array().into_iter().flatten();
    let texts = parts.filter(|part| part["thought"] != true).filter_map(|part| part["text"].as_str());
    let usage = &answer["usageMetadata"];
    AnswerPart {
        text: texts.collect(),
        model: text_at(answer, "/modelVersion"),
        stop_reason: text_at(candidate, "/finishReason"),
        is_last: false,
        input_tokens: sum(usage, ["promptTokenCount", "toolUsePromptTokenCount"]),
        // The first one does not include thoughts.
        output_tokens: sum(usage, ["candidatesTokenCount", "thoughtsTokenCount"]),
        error: error_in(answer).or_else(|| refusal(answer)),
    }
}

/// Why there is no candidate.
fn refusal(answer: &Value) -> Option<String> {
    let reason = answer["promptFeedback"]["blockReason"].as_str()?;
    answer["candidates"][0].is_null().then(|| format!("the prompt is blocked: {reason}"))
}

/// The sum of those numbers that there are.
fn sum(usage: &Value, names: [&str; 2]) -> Option<u64> {
    names.into_iter().filter_map(|name| usage[name].as_u64()).reduce(u64::saturating_add)
}
