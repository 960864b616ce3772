//! The operator's options, with the connection to the provider that they name.

use std::fmt;
use std::sync::{Arc, OnceLock};

#[cfg(not(feature = "llm"))]
use super::absent::{ContentFilter, connect};
#[cfg(feature = "llm")]
use super::filter::ContentFilter;
use super::model::{LanguageModel, NamedModel};
use super::options::LlmOptions;
#[cfg(feature = "llm")]
use super::provider::connect;

/// What each run of an executor gets.
pub(crate) struct LlmSetup {
    pub(crate) options: LlmOptions,
    /// The embedder's own model, in place of a provider.
    own: Option<NamedModel>,
    /// Connected when it is first needed: most processes never ask a model, and reading the system's
    /// certificates takes longer than a run.
    provider: OnceLock<Result<NamedModel, String>>,
    filter: OnceLock<Option<ContentFilter>>,
}

/// The configured provider.
pub(crate) enum ProviderState<'a> {
    NotConfigured,
    Ready(&'a NamedModel),
    /// Why it cannot be used.
    Unusable(&'a str),
}

impl LlmSetup {
    pub(crate) fn new(options: LlmOptions, own: Option<NamedModel>) -> Arc<Self> {
        Arc::new(Self { options, own, provider: OnceLock::new(), filter: OnceLock::new() })
    }

    /// The configured provider. The first call connects it.
    pub(crate) fn provider(&self) -> ProviderState<'_> {
        if let Some(own) = &self.own {
            return ProviderState::Ready(own);
        }
        let Some(options) = &self.options.provider else { return ProviderState::NotConfigured };
        let connected = self.provider.get_or_init(|| connect(options).map_err(|error| error.to_string()));
        match connected {
            Ok(model) => ProviderState::Ready(model),
            Err(problem) => ProviderState::Unusable(problem),
        }
    }

    /// Whether there is a provider, which is not connected for this.
    pub(crate) fn has_provider(&self) -> bool {
        self.own.is_some() || self.options.provider.is_some()
    }

    /// The content filter; `None` in a build that has none.
    pub(crate) fn filter(&self) -> Option<&ContentFilter> {
        self.filter.get_or_init(ContentFilter::new).as_ref()
    }
}

impl NamedModel {
    pub(crate) fn new(name: &str, model: Arc<dyn LanguageModel>) -> Self {
        Self { name: name.into(), default_model: None, model }
    }
}

/// Two setups are the same if their options are: the embedder's model never changes.
impl PartialEq for LlmSetup {
    fn eq(&self, other: &Self) -> bool {
        self.options == other.options
    }
}

impl fmt::Debug for LlmSetup {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LlmSetup").field("options", &self.options).finish_non_exhaustive()
    }
}
