//! Hints for scripts that wait for what nothing can bring about.

use crate::run::result::{ErrorCode, ScriptError};

/// How the messages of such errors begin, in both languages.
const WAITS: &str = "the script waits for ";

const OF_ITSELF: &str = "if the function of a `state.update` awaits another one of the same key, each waits for the \
                         other: compute the new value in one function";

/// What a script waits for that updates state more than once. Which keys it means is not known.
pub(super) fn hint(error: &ScriptError, source: &str) -> Option<String> {
    let is_stalled = error.code == ErrorCode::RuntimeError && error.message.starts_with(WAITS);
    let updates_again = || source.matches("state.update(").nth(1).is_some();
    (is_stalled && updates_again()).then(|| OF_ITSELF.to_owned())
}
