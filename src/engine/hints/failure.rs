//! What is known of the failure of a script when hints are looked for.

use crate::run::ledger::CallFacts;

/// How a script has failed.
pub(super) struct Failure<'a> {
    pub(super) name: &'a str,
    pub(super) message: &'a str,
    /// The line that failed.
    pub(super) line: &'a str,
    pub(super) source: &'a str,
    pub(super) facts: CallFacts,
    /// Whether the run was given an input.
    pub(super) has_input: bool,
    /// Whether that is a text with JSON.
    pub(super) has_text: bool,
}
