//! The section `llm` of the user's file, before it is resolved.

use std::time::Duration;

use super::document::Node;
use super::environment::Environment;
use super::error::{Finding, Key};
use super::expand::Text;
use super::reader::{At, Fields};
use crate::llm::{ApiKey, FilterMode, LlmAccess, LlmOptions, ProviderKind};

/// Every key of `llm`.
pub(super) const LLM_KEYS: &[&str] = &[
    "enabled",
    "provider",
    "model",
    "url",
    "apiKey",
    "prefer",
    "rounds",
    "tokens",
    "callTimeoutMs",
    "allowedModels",
    "allowedSystemPrompts",
    "contentFilter",
];

/// The variables that have precedence over files, with the key of each.
const VARIABLES: &[(&str, &str)] = &[
    ("CX_LLM", "enabled"),
    ("CX_LLM_PROVIDER", "provider"),
    ("CX_LLM_MODEL", "model"),
    ("CX_LLM_URL", "url"),
    ("CX_LLM_ROUNDS", "rounds"),
    ("CX_LLM_TOKENS", "tokens"),
];

/// The settings of a file or of the environment.
#[derive(Clone, Debug, Default)]
pub(super) struct LlmSettings {
    pub(super) access: Option<LlmAccess>,
    pub(super) provider: Option<ProviderKind>,
    pub(super) model: Option<String>,
    pub(super) url: Option<Text>,
    pub(super) api_key: Option<Text>,
    /// The variable with the provider's key, if it differs from the kind's default.
    pub(super) key_variable: Option<&'static str>,
    /// The model from another program's settings, used for this kind of provider if no model is configured.
    pub(super) default_model: Option<(ProviderKind, String)>,
    pub(super) prefer_client: Option<bool>,
    pub(super) rounds: Option<u32>,
    pub(super) tokens: Option<u64>,
    pub(super) call_time: Option<Duration>,
    pub(super) allowed_models: Option<Vec<String>>,
    pub(super) allowed_system_prompts: Option<Vec<String>>,
    pub(super) content_filter: Option<FilterMode>,
    /// The keys that it sets.
    pub(super) keys: Vec<&'static str>,
    /// Whether the section is there.
    pub(super) is_present: bool,
}

/// The provider as far as it is known.
#[derive(Clone, Debug, Default)]
pub(super) struct ProviderParts {
    pub(super) kind: Option<ProviderKind>,
    /// The variable with its key, if it differs from the kind's default. One provider's key is never sent to another.
    pub(super) key_variable: Option<&'static str>,
    /// The model if none is configured, for a provider of this kind.
    pub(super) default_model: Option<(ProviderKind, String)>,
    pub(super) model: Option<String>,
    pub(super) url: Option<String>,
    pub(super) key: Option<ApiKey>,
}

/// Reads the section.
pub(super) fn section(fields: &mut Fields<'_, '_>, settings: &mut LlmSettings) {
    fields.check_names(LLM_KEYS);
    settings.is_present = true;
    for key in LLM_KEYS {
        fields.read(&[key], |at| settings.set(key, at));
    }
}

impl LlmSettings {
    /// Sets the value of a key.
    pub(super) fn set(&mut self, key: &'static str, at: &At<'_>) -> Result<(), Finding> {
        match key {
            "enabled" => {
                self.access = Some(if at.boolean()? { LlmAccess::Always } else { LlmAccess::Never });
            }
            "provider" => {
                let names = ProviderKind::ALL.map(|kind| format!("`{}`", kind.as_str())).join(", ");
                self.provider = Some(word(at, &names, ProviderKind::from_name)?);
            }
            "model" => self.model = Some(at.string()?),
            "url" => self.url = Some(at.text()?),
            "apiKey" => self.api_key = Some(at.text()?),
            "prefer" => {
                let is_client = |word: &str| match word {
                    "client" => Some(true),
                    "provider" => Some(false),
                    _ => None,
                };
                self.prefer_client = Some(word(at, "`provider`, `client`", is_client)?);
            }
            "rounds" => {
                let rounds = at.number(1, LlmOptions::MAX_ROUNDS.into(), "calls")?;
                self.rounds = u32::try_from(rounds).ok();
            }
            "tokens" => self.tokens = Some(at.number(1, LlmOptions::MAX_TOKENS, "tokens")?),
            "callTimeoutMs" => self.call_time = Some(at.milliseconds(LlmOptions::MAX_CALL_TIME)?),
            "allowedModels" => self.allowed_models = Some(at.strings()?),
            "allowedSystemPrompts" => self.allowed_system_prompts = Some(at.strings()?),
            "contentFilter" => {
                let names = FilterMode::ALL.map(|mode| format!("`{}`", mode.as_str())).join(", ");
                self.content_filter = Some(word(at, &names, FilterMode::from_name)?);
            }
            _ => {}
        }
        self.add_key(key);
        Ok(())
    }

    pub(super) fn set_content_filter(&mut self, mode: FilterMode) {
        self.content_filter = Some(mode);
        self.add_key("contentFilter");
    }

    /// Sets the provider, and the variable with its key if that differs from the kind's default.
    pub(super) fn set_provider(&mut self, kind: ProviderKind, key_variable: Option<&'static str>) {
        self.provider = Some(kind);
        self.key_variable = key_variable;
        self.add_key("provider");
    }

    pub(super) fn set_url(&mut self, url: Text) {
        self.url = Some(url);
        self.add_key("url");
    }

    pub(super) fn set_api_key(&mut self, key: Text) {
        self.api_key = Some(key);
        self.add_key("apiKey");
    }

    pub(super) fn set_allowed_models(&mut self, models: Vec<String>) {
        self.allowed_models = Some(models);
        self.add_key("allowedModels");
    }

    pub(super) fn set_allowed_system_prompts(&mut self, prompts: Vec<String>) {
        self.allowed_system_prompts = Some(prompts);
        self.add_key("allowedSystemPrompts");
    }

    fn add_key(&mut self, key: &'static str) {
        self.is_present = true;
        self.keys.push(key);
    }

    /// The settings in variables. A value that cannot be parsed is a finding.
    pub(super) fn of_environment(environment: &Environment, findings: &mut Vec<Finding>) -> Self {
        let mut settings = Self::default();
        for (name, key) in VARIABLES {
            let Some(value) = environment.get(name).filter(|value| !value.is_empty()) else { continue };
            let node = Node::of_variable(value, None);
            let at = At { key: Key::default().child(name), node: &node };
            if let Err(finding) = settings.set(key, &at) {
                findings.push(finding);
            }
        }
        settings
    }
}

fn word<T>(at: &At<'_>, names: &str, read: impl Fn(&str) -> Option<T>) -> Result<T, Finding> {
    let text = at.string()?;
    let expected = format!("one of {names}");
    read(&text).ok_or_else(|| Finding::unexpected(&at.key, at.node.location, expected, "another word"))
}
