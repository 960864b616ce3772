//! The models that a script may name, and the system prompts that it may send.

use super::denied;
use crate::llm::{LlmOptions, ModelRequest};
use crate::run::sampling::SamplingOptions;
use crate::tools::ToolError;

/// The lists of the operator and of the run.
pub(super) struct Permitted<'a> {
    pub(super) options: &'a LlmOptions,
    pub(super) requested: &'a SamplingOptions,
}

impl Permitted<'_> {
    /// Applies the run's own options and the lists to a request.
    pub(super) fn apply(&self, request: &mut ModelRequest) -> Result<(), ToolError> {
        let Self { options, requested } = self;
        let permits = |list: &Option<Vec<String>>, value: &str| {
            list.as_ref().is_none_or(|list| list.iter().any(|permitted| permitted == value))
        };
        if request.model.is_none() {
            let own = requested.allowed_models.iter().flatten();
            request.model = own.clone().find(|model| permits(&options.allowed_models, model)).cloned();
        }
        if let Some(model) = &request.model {
            let is_default = options.provider.as_ref().is_some_and(|provider| provider.model == *model);
            let is_permitted = is_default || permits(&options.allowed_models, model);
            if !is_permitted || !permits(&requested.allowed_models, model) {
                return Err(denied(format!(
                    "the model is not on the list of those that may be asked: {model}"
                )));
            }
        } else if requested.allowed_models.is_some() {
            return Err(denied("none of the `allowedSamplingModels` may be asked here".to_owned()));
        }
        if request.system_prompt.is_none() {
            request.system_prompt.clone_from(&requested.system_prompt);
        }
        match &request.system_prompt {
            Some(prompt) if !permits(&options.allowed_system_prompts, prompt) => {
                let problem = "the system prompt is not on the list of those that may be sent; leave it out, or put \
                               what it says into the prompt";
                Err(denied(problem.to_owned()))
            }
            _ => Ok(()),
        }
    }
}
