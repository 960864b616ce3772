//! The wire format of each kind of provider: where a question goes, what it says, and what an answer says.

use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::incoming::Framing;
use super::part::AnswerPart;
use super::{anthropic, gemini, ollama, openai};
use crate::json;
use crate::llm::model::ModelRequest;
use crate::llm::options::ProviderKind;

/// The base address, if the user sets none. Paths are added to it.
pub(crate) fn default_address(kind: ProviderKind) -> &'static str {
    match kind {
        ProviderKind::Anthropic => "https://api.anthropic.com/v1",
        ProviderKind::OpenAi => "https://api.openai.com/v1",
        ProviderKind::Gemini => "https://generativelanguage.googleapis.com/v1beta",
        ProviderKind::Mistral => "https://api.mistral.ai/v1",
        ProviderKind::Ollama => "http://localhost:11434",
    }
}

/// The address of a request. A model that a script names stays within one segment of its path.
pub(crate) fn address(kind: ProviderKind, base: &Url, model: &str, is_streamed: bool) -> Url {
    let mut url = base.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty();
        match kind {
            ProviderKind::Anthropic => path.push("messages"),
            ProviderKind::OpenAi | ProviderKind::Mistral => path.push("chat").push("completions"),
            ProviderKind::Gemini => path.push("models").push(&gemini::method(model, is_streamed)),
            ProviderKind::Ollama => path.push("api").push("chat"),
        };
    }
    if kind == ProviderKind::Gemini && is_streamed {
        url.query_pairs_mut().append_pair("alt", "sse");
    }
    url
}

/// The headers with the key, which is in no address. `None` if a header cannot have it.
pub(crate) fn headers(kind: ProviderKind, key: Option<&str>) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    if kind == ProviderKind::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static(anthropic::VERSION));
    }
    if let Some(key) = key {
        let (name, value) = match kind {
            ProviderKind::Anthropic => (HeaderName::from_static("x-api-key"), key.to_owned()),
            ProviderKind::Gemini => (HeaderName::from_static("x-goog-api-key"), key.to_owned()),
            // A local Ollama ignores it. Its cloud needs it, as does a proxy that protects one.
            ProviderKind::OpenAi | ProviderKind::Mistral | ProviderKind::Ollama => {
                (AUTHORIZATION, format!("Bearer {key}"))
            }
        };
        let mut value = HeaderValue::try_from(value).ok()?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Some(headers)
}

/// The body of a request. `base` is the address to which paths are added.
pub(crate) fn body(
    kind: ProviderKind,
    base: &Url,
    model: &str,
    request: &ModelRequest,
    is_streamed: bool,
) -> Value {
    match kind {
        ProviderKind::Anthropic => anthropic::body(model, request, is_streamed),
        ProviderKind::OpenAi | ProviderKind::Mistral => openai::body(kind, base, model, request, is_streamed),
        ProviderKind::Gemini => gemini::body(request),
        ProviderKind::Ollama => ollama::body(model, request, is_streamed),
    }
}

/// How the messages of a streamed answer follow each other.
pub(crate) fn framing(kind: ProviderKind) -> Framing {
    if kind == ProviderKind::Ollama { Framing::lines() } else { Framing::events() }
}

/// What a whole answer says. `None` if it is no JSON, or its tree would take much more memory than its text.
pub(crate) fn whole(kind: ProviderKind, text: &str) -> Option<AnswerPart> {
    let answer = json::tree(text, json::budget(text.len())).ok()?;
    Some(match kind {
        ProviderKind::Anthropic => anthropic::whole(&answer),
        ProviderKind::OpenAi | ProviderKind::Mistral => openai::whole(&answer),
        ProviderKind::Gemini => gemini::part(&answer),
        ProviderKind::Ollama => ollama::part(&answer),
    })
}

/// What a message of a streamed answer says. `name` is the name of its event. `None` as for [`whole`].
pub(crate) fn message(kind: ProviderKind, name: &str, text: &str) -> Option<AnswerPart> {
    // Services that translate to Gemini's format send it too.
    let may_be_done = matches!(kind, ProviderKind::OpenAi | ProviderKind::Mistral | ProviderKind::Gemini);
    if may_be_done && text.trim() == openai::DONE {
        return Some(AnswerPart { is_last: true, ..AnswerPart::default() });
    }
    let message = json::tree(text, json::budget(text.len())).ok()?;
    Some(match kind {
        ProviderKind::Anthropic => anthropic::message(name, &message),
        ProviderKind::OpenAi | ProviderKind::Mistral => openai::message(&message),
        ProviderKind::Gemini => gemini::part(&message),
        ProviderKind::Ollama => ollama::part(&message),
    })
}

#[cfg(test)]
mod tests;
