//! The models that a script may name, and the system prompts that it may send.

use std::collections::BTreeSet;

use super::denied;
use crate::llm::{LlmOptions, ModelRequest};
use crate::run::sampling::SamplingOptions;
use crate::text::{MAX_SHOWN_NAME, visible_preview};
use crate::tools::ToolError;

/// Maximum number of models that a message names. A list of more would take too much of a context.
const MAX_NAMED: usize = 10;

/// The lists of the operator and of the run.
pub(super) struct Permitted<'a> {
    pub(super) options: &'a LlmOptions,
    pub(super) requested: &'a SamplingOptions,
}

impl Permitted<'_> {
    /// Applies the run's own options and the lists to a request.
    pub(super) fn apply(&self, request: &mut ModelRequest) -> Result<(), ToolError> {
        let Self { options, requested } = self;
        let of_run = requested.allowed_models.as_ref();
        if request.model.is_none() {
            request.model = of_run.into_iter().flatten().find(|model| self.allows(model)).cloned();
        }
        if let Some(model) = &request.model {
            if !self.allows(model) || !is_listed(of_run, model) {
                let (model, models) = (visible_preview(model, MAX_SHOWN_NAME), self.models(of_run));
                return Err(denied(format!(
                    "the model `{model}` is not on the list of those that may be asked: {models}"
                )));
            }
        } else if of_run.is_some() {
            let models = self.models(None);
            return Err(denied(format!(
                "none of the `allowedSamplingModels` is on the list of those that may be asked: {models}"
            )));
        }
        if request.system_prompt.is_none() {
            request.system_prompt.clone_from(&requested.system_prompt);
        }
        match &request.system_prompt {
            Some(prompt) if !is_listed(options.allowed_system_prompts.as_ref(), prompt) => {
                let problem = "the system prompt is not on the list of those that may be sent; leave it out, or put \
                               what it says into the prompt";
                Err(denied(problem.to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Whether the operator allows a model: one on the list, or the provider's own.
    fn allows(&self, model: &str) -> bool {
        let provider = self.options.provider.as_ref();
        provider.is_some_and(|provider| provider.model == model)
            || is_listed(self.options.allowed_models.as_ref(), model)
    }

    /// The models that the operator allows, for a message: those of them that are on the list of the run, if it has
    /// one.
    fn models(&self, of_run: Option<&Vec<String>>) -> String {
        let own = self.options.provider.iter().map(|provider| &provider.model);
        let listed = self.options.allowed_models.as_ref().or(of_run).into_iter().flatten();
        let models: BTreeSet<&String> = own.chain(listed).filter(|model| is_listed(of_run, model)).collect();
        if models.is_empty() {
            return "it is empty".to_owned();
        }
        let shown = models.iter().take(MAX_NAMED).map(|model| visible_preview(model, MAX_SHOWN_NAME));
        let shown = shown.collect::<Vec<_>>().join(", ");
        match models.len().saturating_sub(MAX_NAMED) {
            0 => shown,
            more => format!("{shown} and {more} more"),
        }
    }
}

/// Whether a value is on a list; without a list every value is.
fn is_listed(list: Option<&Vec<String>>, value: &str) -> bool {
    list.is_none_or(|list| list.iter().any(|listed| listed == value))
}
