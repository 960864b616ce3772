//! The words that a provider sends beside its answer: the model's name, and why the answer ends.

use crate::llm::FilterMode;
use crate::llm::setup::LlmSetup;
use crate::text::{preview, start};

/// Maximum characters of a word.
const MAX_WORD: usize = 200;

/// Maximum characters that are filtered: a secret may begin within the word and end after it.
const MAX_FILTERED: usize = 4 * MAX_WORD;

/// A word, shortened and without what the content filter hides. Words are no part of the answer, which is bounded and
/// filtered, but the result contains them too, and an agent reads it.
pub(super) fn filtered(word: &str, setup: &LlmSetup) -> String {
    let word = start(word, MAX_FILTERED);
    match setup.filter() {
        Some(filter) if setup.options.content_filter != FilterMode::Off => {
            preview(&filter.redact(word).0, MAX_WORD)
        }
        _ => preview(word, MAX_WORD),
    }
}
