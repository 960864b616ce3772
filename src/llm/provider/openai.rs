//! The wire format of OpenAI's chat completions, which Mistral and many other services have too:
//! `POST /v1/chat/completions`.

use reqwest::Url;
use serde_json::{Value, json};

use super::conversation::messages_after_system_prompt;
use super::part::{AnswerPart, count_at, error_in, text_at};
use crate::llm::model::ModelRequest;
use crate::llm::options::ProviderKind;

/// The data of the event after the last message.
pub(crate) const DONE: &str = "[DONE]";

/// OpenAI's own host. Those of its regions end with it.
const HOST: &str = "api.openai.com";

/// The two names of the maximum of tokens.
const OLDER_NAME: &str = "max_tokens";
pub(crate) const NEWER_NAME: &str = "max_completion_tokens";

/// How the names of OpenAI's reasoning models begin, which other services offer too.
const REASONING_MODELS: &[&str] = &["gpt-5", "gpt-6", "o1", "o3", "o4"];

/// The body of a request to `base`. It has no field that is not needed: Mistral refuses those that it does not know.
pub(crate) fn body(
    kind: ProviderKind,
    base: &Url,
    model: &str,
    request: &ModelRequest,
    is_streamed: bool,
) -> Value {
    let mut body = json!({
        "model": model,
        "stream": is_streamed,
        "messages": messages_after_system_prompt(request),
    });
    body[max_tokens_field(kind, base, model)] = request.max_tokens.into();
    if is_streamed && kind != ProviderKind::Mistral {
        // Without this a stream does not say how many tokens it took. Mistral's always does.
        body["stream_options"] = json!({ "include_usage": true });
    }
    body
}

/// The name of the maximum of tokens. OpenAI has replaced the older one, and its reasoning models refuse it; many other
/// services know no other. A name of a deployment, as Azure has it, does not tell which model it is: the service says
/// so then.
fn max_tokens_field(kind: ProviderKind, base: &Url, model: &str) -> &'static str {
    let host = base.host_str().unwrap_or_default();
    let is_openai = host.strip_suffix(HOST).is_some_and(|region| region.is_empty() || region.ends_with('.'));
    let is_reasoning = REASONING_MODELS.iter().any(|start| model.starts_with(start));
    if kind == ProviderKind::OpenAi && (is_openai || is_reasoning) { NEWER_NAME } else { OLDER_NAME }
}

/// Gives the maximum of tokens its newer name. Returns whether it had the older one.
pub(crate) fn use_newer_name(body: &mut Value) -> bool {
    let Some(fields) = body.as_object_mut() else { return false };
    let Some(max_tokens) = fields.remove(OLDER_NAME) else { return false };
    fields.insert(NEWER_NAME.to_owned(), max_tokens);
    true
}

/// What a whole answer says.
pub(crate) fn whole(answer: &Value) -> AnswerPart {
    AnswerPart {
        // Services on the user's machine often begin with a space.
        text: text_of(&answer["choices"][0]["message"]).trim().to_owned(),
        model: text_at(answer, "/model"),
        is_last: true,
        ..common(answer)
    }
}

/// What a message of a streamed answer says. The last one may have no choices, only the number of tokens.
pub(crate) fn message(message: &Value) -> AnswerPart {
    AnswerPart { text: text_of(&message["choices"][0]["delta"]), ..common(message) }
}

fn common(answer: &Value) -> AnswerPart {
    AnswerPart {
        stop_reason: text_at(answer, "/choices/0/finish_reason"),
        input_tokens: count_at(answer, "/usage/prompt_tokens"),
        output_tokens: count_at(answer, "/usage/completion_tokens"),
        error: error_in(answer),
        ..AnswerPart::default()
    }
}

/// The text of a message. Its content is a text, or of Mistral's reasoning models chunks, some of which are thoughts. A
/// model that refuses to answer says so in another field.
fn text_of(message: &Value) -> String {
    let content = &message["content"];
    if let Some(text) = content.as_str().or_else(|| message["refusal"].as_str()) {
        return text.to_owned();
    }
    let chunks = content.as_array().into_iter().flatten();
    chunks.filter(|chunk| chunk["type"] == "text").filter_map(|chunk| chunk["text"].as_str()).collect()
}
