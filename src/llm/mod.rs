//! Language models for scripts: their interface, providers, budgets, the content filter, and values out of answers.
//!
//! This module knows nothing of runs and clients. `src/run/llm.rs` decides about a script's calls;
//! a client's sampling is a [`LanguageModel`] of `src/server`.

#[cfg(not(feature = "llm"))]
mod absent;
pub(crate) mod budget;
pub(crate) mod call;
pub(crate) mod estimate;
pub(crate) mod extraction;
#[cfg(feature = "llm")]
mod filter;
mod model;
mod options;
#[cfg(feature = "llm")]
mod provider;
pub(crate) mod setup;

#[cfg(not(feature = "llm"))]
pub(crate) use self::absent::{ContentFilter, StreamFilter, Violations};
#[cfg(feature = "llm")]
pub(crate) use self::filter::{ContentFilter, StreamFilter, Violations};
pub(crate) use self::model::NamedModel;
pub use self::model::{
    LanguageModel, ModelAnswer, ModelError, ModelErrorKind, ModelMessage, ModelPiece, ModelRequest,
    ModelRole, ModelStream, ModelUsage,
};
pub use self::options::{ApiKey, FilterMode, LlmAccess, LlmOptions, ModelProvider, ProviderKind};
