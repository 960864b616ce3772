//! What code-executor-mcp's settings say about language models, as they are read.

use super::expand::Text;
use crate::llm::ProviderKind;

/// A provider, as the program knows it.
#[derive(Debug)]
pub(super) struct Provider {
    pub(super) name: &'static str,
    pub(super) kind: ProviderKind,
    /// Its address, where the kind has another one.
    pub(super) url: Option<&'static str>,
    /// The variable with its key, where the kind has another one.
    pub(super) key_variable: Option<&'static str>,
    /// The model that is asked where a script names none.
    pub(super) model: &'static str,
}

/// What was read, until all of it is known: which key, address and list counts depends on the provider.
#[derive(Debug, Default)]
pub(super) struct Sampling {
    pub(super) provider: Option<&'static Provider>,
    pub(super) url: Option<Text>,
    /// By the provider's name.
    pub(super) api_keys: Vec<(&'static str, Text)>,
    pub(super) models: Option<Vec<String>>,
    /// By the provider's name. They come before `models`.
    pub(super) models_of: Vec<(&'static str, Vec<String>)>,
}
