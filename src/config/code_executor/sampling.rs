//! The language models of code-executor-mcp: `sampling` in its file, and its variables.

use crate::config::document::Content;
use crate::config::error::{Finding, Key};
use crate::config::expand::Text;
use crate::config::foreign::Foreign;
use crate::config::parsed::Settings;
use crate::config::reader::At;
use crate::config::sampling_settings::{Provider, Sampling};
use crate::llm::ProviderKind;

/// The provider if none is named.
static ANTHROPIC: Provider = Provider {
    name: "anthropic",
    kind: ProviderKind::Anthropic,
    url: None,
    key_variable: None,
    model: "claude-haiku-4-5-20251001",
};

static OTHERS: [Provider; 4] = [
    Provider {
        name: "openai",
        kind: ProviderKind::OpenAi,
        url: None,
        key_variable: None,
        model: "gpt-4o-mini",
    },
    Provider {
        name: "gemini",
        kind: ProviderKind::Gemini,
        url: None,
        key_variable: None,
        model: "gemini-2.5-flash-lite",
    },
    Provider {
        name: "grok",
        kind: ProviderKind::OpenAi,
        url: Some("https://api.x.ai/v1"),
        key_variable: Some("GROK_API_KEY"),
        model: "grok-4-1-fast-non-reasoning",
    },
    Provider {
        name: "perplexity",
        kind: ProviderKind::OpenAi,
        url: Some("https://api.perplexity.ai"),
        key_variable: Some("PERPLEXITY_API_KEY"),
        model: "sonar",
    },
];

pub(super) fn provider(at: &At<'_>, settings: &mut Settings) -> Result<(), Finding> {
    let name = at.string()?;
    let all = || std::iter::once(&ANTHROPIC).chain(&OTHERS);
    let Some(provider) = all().find(|provider| provider.name == name) else {
        let names: Vec<String> = all().map(|provider| format!("`{}`", provider.name)).collect();
        let expected = format!("one of {}", names.join(", "));
        return Err(Finding::unexpected(&at.key, at.node.location, expected, "another word"));
    };
    settings.sampling.provider = Some(provider);
    Ok(())
}

pub(super) fn base_url(at: &At<'_>, settings: &mut Settings) -> Result<(), Finding> {
    settings.sampling.url = Some(at.text()?);
    Ok(())
}

pub(super) fn api_key(provider: &'static str, at: &At<'_>, settings: &mut Settings) -> Result<(), Finding> {
    settings.sampling.api_keys.push((provider, at.text()?));
    Ok(())
}

pub(super) fn models(at: &At<'_>, settings: &mut Settings) -> Result<(), Finding> {
    settings.sampling.models = Some(list(at)?);
    Ok(())
}

pub(super) fn models_of(provider: &'static str, at: &At<'_>, settings: &mut Settings) -> Result<(), Finding> {
    settings.sampling.models_of.push((provider, list(at)?));
    Ok(())
}

/// Permitted prompts, compared exactly, as for [`models`].
pub(super) fn system_prompts(at: &At<'_>, settings: &mut Settings) -> Result<(), Finding> {
    settings.llm.set_allowed_system_prompts(list(at)?);
    Ok(())
}

/// A list. In a variable its items are separated by commas, as the program itself splits it.
fn list(at: &At<'_>) -> Result<Vec<String>, Finding> {
    match &at.node.content {
        Content::String(_) if at.node.from_variable => {
            Ok(at.string()?.split(',').map(|item| item.trim().to_owned()).collect())
        }
        _ => at.strings(),
    }
}

/// Makes the settings of models from the parsed keys.
pub(super) fn finish(settings: &mut Settings, foreign: &mut Foreign) {
    let Sampling { provider: named, url, api_keys, models, models_of } =
        std::mem::take(&mut settings.sampling);
    let llm = &mut settings.llm;
    let provider = named.unwrap_or(&ANTHROPIC);
    let own_models = models_of.into_iter().find(|(name, _)| *name == provider.name);
    let models = own_models.map(|(_, models)| models).or(models);
    let key = api_keys.into_iter().find(|(name, _)| *name == provider.name).map(|(_, key)| key);
    if named.is_some() || models.is_some() {
        // Only a model on the list is asked.
        let is_allowed =
            |model: &str| models.as_ref().is_none_or(|models| models.iter().any(|own| own == model));
        let first = || models.as_ref().and_then(|models| models.first()).cloned();
        let model = if is_allowed(provider.model) { Some(provider.model.to_owned()) } else { first() };
        llm.default_model = model.map(|model| (provider.kind, model));
    }
    if named.is_some() || key.is_some() {
        llm.set_provider(provider.kind, provider.key_variable);
    }
    match (url, provider.url) {
        // The program sends its other keys to no other address, and neither does cx.
        (Some(text), _) if provider.kind != ProviderKind::OpenAi => foreign.lose(&text.key, text.location),
        (Some(text), _) => llm.set_url(text),
        (None, Some(url)) => llm.set_url(fixed(url)),
        (None, None) => {}
    }
    if let Some(models) = models {
        llm.set_allowed_models(models);
    }
    if let Some(key) = key {
        llm.set_api_key(key);
    }
}

/// A text that comes from no file.
fn fixed(text: &str) -> Text {
    Text { raw: text.to_owned(), key: Key::default().child("llm.url"), location: None }
}
