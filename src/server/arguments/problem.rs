//! What is wrong with the arguments of a call. The model reads it and corrects its call.

use std::fmt;

use serde_json::Value;

use super::foreign::ForeignParameter;
use super::parameters::RunParameter;
use crate::text::{MAX_SHOWN_NAME, preview};
use crate::tools::names::{self, SuggestionBudget, kind};

/// Maximum number of problems that are described. A call may have thousands of unknown parameters;
/// a longer message does not help.
const MAX_PROBLEMS: usize = 20;

/// Everything that is wrong with the arguments of a call.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct InvalidArguments {
    /// The first problems, in the order of the arguments.
    problems: Vec<ArgumentProblem>,
    /// How many further problems there are.
    more: usize,
}

/// One problem. Each names the parameter, and for a wrong value also the expected type and the received value.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum ArgumentProblem {
    #[error("`{}`: expected {}: {received}", .parameter.name(), .parameter.expected())]
    WrongValue { parameter: RunParameter, received: String },
    /// The value has the right type, but is not one that the parameter can have.
    #[error("`{}`: {problem}", .parameter.name())]
    Invalid { parameter: RunParameter, problem: String },
    #[error("`{}`: {}", .0.name(), .0.refusal())]
    Unsupported(ForeignParameter),
    #[error("unknown parameter `{name}`{}", did_you_mean(.near))]
    Unknown { name: String, near: Vec<&'static str> },
    #[error("`{}` is missing: expected the script's source, a string", RunParameter::Code.name())]
    CodeMissing,
    #[error("`code` and `script` are both given: a call runs one of the two")]
    CodeAndScript,
}

impl ArgumentProblem {
    /// `value` is not one that the parameter takes.
    pub(super) fn wrong_value(parameter: RunParameter, value: &Value) -> Self {
        // Scalars are shown as they were received, arrays and objects as their type.
        let received = match value {
            Value::Array(_) | Value::Object(_) => kind(value).to_owned(),
            scalar => preview(&scalar.to_string(), MAX_SHOWN_NAME),
        };
        Self::WrongValue { parameter, received }
    }

    /// There is no parameter of this name.
    pub(super) fn unknown(name: &str) -> Self {
        let name = preview(name, MAX_SHOWN_NAME);
        let near = names::nearest(&name, parameter_names(), &SuggestionBudget::of_message());
        Self::Unknown { name, near }
    }

    /// Whether it is an unknown parameter whose name is like that of none.
    fn is_like_none(&self) -> bool {
        matches!(self, Self::Unknown { near, .. } if near.is_empty())
    }
}

impl InvalidArguments {
    pub(super) fn push(&mut self, problem: ArgumentProblem) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        } else {
            self.more += 1;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.problems.is_empty()
    }
}

impl fmt::Display for InvalidArguments {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(formatter, "{separator}{problem}")?;
        }
        // Once, however many of them are unknown.
        if self.problems.iter().any(ArgumentProblem::is_like_none) {
            write!(formatter, "; the parameters are {}", names::quoted(parameter_names()))?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(formatter, "; and {more} more"),
        }
    }
}

impl std::error::Error for InvalidArguments {}

fn parameter_names() -> impl Iterator<Item = &'static str> {
    RunParameter::ALL.into_iter().map(RunParameter::name)
}

fn did_you_mean(near: &[&'static str]) -> String {
    match near {
        [] => String::new(),
        near => format!("; did you mean {}?", names::quoted(near.iter().copied())),
    }
}
