//! code-executor-mcp's settings of language models, before they are resolved.

use super::expand::Text;
use crate::llm::ProviderKind;

/// A provider of the program.
#[derive(Debug)]
pub(super) struct Provider {
    pub(super) name: &'static str,
    pub(super) kind: ProviderKind,
    /// Its address, if it differs from the kind's default.
    pub(super) url: Option<&'static str>,
    /// The variable with its key, if it differs from the kind's default.
    pub(super) key_variable: Option<&'static str>,
    /// The model for scripts that name none.
    pub(super) model: &'static str,
}

/// The parsed settings, until all are read: the provider determines which key, address and list apply.
#[derive(Debug, Default)]
pub(super) struct Sampling {
    pub(super) provider: Option<&'static Provider>,
    pub(super) url: Option<Text>,
    /// Keys by the provider's name.
    pub(super) api_keys: Vec<(&'static str, Text)>,
    pub(super) models: Option<Vec<String>>,
    /// Models by the provider's name. They have precedence over `models`.
    pub(super) models_of: Vec<(&'static str, Vec<String>)>,
}
