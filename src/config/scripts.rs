//! Saved scripts: the user's own, and those of a workspace that the user has trusted.

mod dispatcher;
pub(super) mod facts;
mod front_matter;
mod input_schema;
mod library;

pub use self::library::{SaveRequest, ScriptLibrary, ScriptProblem, ScriptsError};

#[cfg(test)]
mod tests;
