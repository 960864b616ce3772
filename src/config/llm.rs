//! Applies the section `llm` and the equivalent variables, and makes the provider from them.

use std::path::Path;

use super::environment::{Environment, ORIGIN};
use super::expand::{Role, Scope};
use super::llm_settings::{LlmSettings, ProviderParts};
use super::own::OwnFile;
use super::resolved::{Config, ConfigWarningCode};
use crate::llm::{ApiKey, LlmAccess, ModelProvider, ProviderKind};

/// The default model of Anthropic, if its key and permission for scripts are all that is configured.
const DEFAULT_MODEL: &str = "claude-sonnet-4-5";

/// Applies the section of one of the user's files: it replaces earlier values.
pub(super) fn apply(config: &mut Config, path: &Path, file: &OwnFile, scope: Scope<'_>) {
    let settings = &file.settings.llm;
    if settings.is_present {
        for key in &settings.keys {
            let key = format!("llm.{key}");
            config.add_origin(key.as_str(), path, file.locate(&key));
        }
        apply_settings(config, path, settings, scope);
    }
}

/// Applies settings from variables.
pub(super) fn apply_variables(config: &mut Config, path: &Path, settings: &LlmSettings, scope: Scope<'_>) {
    for key in &settings.keys {
        config.add_origin(format!("llm.{key}"), path, None);
    }
    apply_settings(config, path, settings, scope);
}

fn apply_settings(config: &mut Config, path: &Path, settings: &LlmSettings, scope: Scope<'_>) {
    fn set<T: Clone>(target: &mut T, value: Option<&T>) {
        if let Some(value) = value {
            target.clone_from(value);
        }
    }
    fn replace<T: Clone>(target: &mut Option<T>, value: Option<&T>) {
        if value.is_some() {
            *target = value.cloned();
        }
    }
    let options = &mut config.llm;
    set(&mut options.access, settings.access.as_ref());
    set(&mut options.prefer_client, settings.prefer_client.as_ref());
    replace(&mut options.rounds, settings.rounds.as_ref());
    replace(&mut options.tokens, settings.tokens.as_ref());
    set(&mut options.call_time, settings.call_time.as_ref());
    replace(&mut options.allowed_models, settings.allowed_models.as_ref());
    replace(&mut options.allowed_system_prompts, settings.allowed_system_prompts.as_ref());
    set(&mut options.content_filter, settings.content_filter.as_ref());
    let parts = &mut config.llm_provider;
    let is_same = settings.provider == parts.kind && settings.key_variable == parts.key_variable;
    if settings.provider.is_some() && !is_same {
        // A key and an address belong to one provider.
        let (kind, key_variable) = (settings.provider, settings.key_variable);
        *parts = ProviderParts { kind, key_variable, ..ProviderParts::default() };
    }
    replace(&mut parts.default_model, settings.default_model.as_ref());
    replace(&mut parts.model, settings.model.as_ref());
    for (text, role) in [(&settings.url, Role::Address), (&settings.api_key, Role::Secret)] {
        let Some(text) = text else { continue };
        match (text.expand(role, scope), role) {
            (Ok(value), Role::Secret) => config.llm_provider.key = Some(ApiKey::new(value)),
            (Ok(value), _) => config.llm_provider.url = Some(value),
            (Err(finding), _) => config.warn_ignored(ConfigWarningCode::Unused, path, [finding]),
        }
    }
}

/// Applies the variables, and makes the provider from all that is configured.
pub(super) fn resolve(config: &mut Config, scope: Scope<'_>) {
    let mut findings = Vec::new();
    let settings = LlmSettings::of_environment(scope.environment, &mut findings);
    let path = Path::new(ORIGIN);
    apply_variables(config, path, &settings, scope);
    config.warn_ignored(ConfigWarningCode::Unused, path, findings);
    config
        .resolve_provider(&|name| scope.environment.get(name).filter(|key| !key.is_empty()).map(ApiKey::new));
}

impl Config {
    /// Lets scripts ask a language model, as `--llm` says.
    pub fn enable_llm(&mut self) {
        self.llm.access = LlmAccess::Always;
        let environment = Environment::from_process();
        self.resolve_provider(&|name| environment.get(name).filter(|key| !key.is_empty()).map(ApiKey::new));
    }

    /// Makes the provider from its parts. `key` returns the value of a variable.
    fn resolve_provider(&mut self, key: &dyn Fn(&str) -> Option<ApiKey>) {
        let parts = self.llm_provider.clone();
        let anthropic = ProviderKind::Anthropic;
        let kind = parts.kind.or_else(|| {
            // The key alone is sufficient if scripts may ask a model: the user has set the key for that, or has set
            // `enabled`.
            let is_wanted = self.llm.access == LlmAccess::Always || parts.model.is_some();
            (is_wanted && anthropic.key_variable().and_then(key).is_some()).then_some(anthropic)
        });
        let Some(kind) = kind else { return };
        let foreign_model = parts.default_model.filter(|(own, _)| *own == kind).map(|(_, model)| model);
        let default_model = || (kind == anthropic).then(|| DEFAULT_MODEL.to_owned());
        let Some(model) = parts.model.or(foreign_model).or_else(default_model) else {
            let message =
                format!("ignored: `llm.provider` is `{}`, and `llm.model` names no model", kind.as_str());
            self.warn(ConfigWarningCode::Unused, message, Path::new("llm"), None, None);
            return;
        };
        let key = parts.key.or_else(|| parts.key_variable.or(kind.key_variable()).and_then(key));
        self.llm.provider = Some(ModelProvider { kind, model, url: parts.url, key });
    }
}
