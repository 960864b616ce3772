//! What other modules need of the parts that a build without the feature `llm` does not have.

use super::model::NamedModel;
use super::options::{FilterMode, ModelProvider};
use crate::error::{Error, OptionName};

/// Has no value: without a filter no answer reaches a script.
#[derive(Debug)]
pub(crate) enum ContentFilter {}

/// What a filter would have found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Violations {
    pub(crate) found: Vec<(&'static str, u32)>,
}

impl Violations {
    pub(crate) fn merge(&mut self, _more: Self) {}

    pub(crate) fn is_empty(&self) -> bool {
        true
    }
}

impl ContentFilter {
    pub(crate) fn new() -> Option<Self> {
        None
    }

    pub(crate) fn redact(&self, _text: &str) -> (String, Violations) {
        match *self {}
    }

    pub(crate) fn apply(&self, _mode: FilterMode, _text: String) -> Result<(String, Violations), Violations> {
        match *self {}
    }
}

/// As [`ContentFilter`].
#[derive(Debug, Default)]
pub(crate) struct StreamFilter {}

impl StreamFilter {
    pub(crate) fn push(&mut self, filter: &ContentFilter, _piece: &str) -> String {
        match *filter {}
    }

    pub(crate) fn finish(&mut self) -> String {
        String::new()
    }
}

/// Refuses: this build has no providers.
pub(crate) fn connect(_provider: &ModelProvider) -> Result<NamedModel, Error> {
    let problem = "this build has no language models: its feature `llm` is off".to_owned();
    Err(Error::InvalidOptions { option: OptionName::LlmProvider, problem })
}
