//! Operations of a script on its state.

use serde::{Deserialize, Serialize};

use super::error::StateError;
use crate::json::Json;

/// Maximum length of a key in characters. The minimum is one.
const MAX_KEY_CHARACTERS: usize = 256;

/// Maximum size of one value in bytes of JSON. Larger values are data for a tool, not state.
const MAX_VALUE_BYTES: usize = 1 << 20;

/// A script's operation on its state.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) enum StateCall {
    /// Returns `[value]`, or `[]` if the key does not exist; `[value, tag]` if `tagged`.
    Get { key: String, tagged: bool },
    /// Stores JSON text. Returns `true`, or the current entry as a tagged `Get` does if that does
    /// not match `expected`: a tag, or empty text for no entry.
    Set { key: String, value: String, expected: Option<String> },
    /// Returns whether the key existed.
    Delete { key: String },
    /// Returns the keys that start with the prefix, sorted.
    Keys { prefix: String },
}

impl StateCall {
    /// Bytes that the call holds while it waits.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Get { key, .. } | Self::Delete { key } => key.len(),
            Self::Keys { prefix } => prefix.len(),
            Self::Set { key, value, expected } => {
                key.len() + value.len() + expected.as_ref().map_or(0, String::len)
            }
        }
    }

    pub(crate) fn writes(&self) -> bool {
        matches!(self, Self::Set { .. } | Self::Delete { .. })
    }

    pub(crate) fn check(&self) -> Result<(), StateError> {
        let key = match self {
            Self::Keys { .. } => return Ok(()),
            Self::Get { key, .. } | Self::Delete { key } | Self::Set { key, .. } => key,
        };
        let length = key.chars().count();
        if length == 0 || length > MAX_KEY_CHARACTERS {
            let problem = format!("a key has 1 to {MAX_KEY_CHARACTERS} characters: {length}");
            return Err(StateError::Invalid(problem));
        }
        if let Self::Set { value, .. } = self
            && value.len() > MAX_VALUE_BYTES
        {
            let problem = format!(
                "the value is {} bytes of JSON, at most {MAX_VALUE_BYTES} are kept under one key; keep less of it, \
                 or parts of it under several keys",
                value.len()
            );
            return Err(StateError::Invalid(problem));
        }
        Ok(())
    }
}

/// The stored form of a value: it is parsed by the same rules as tool arguments and serialized again, so that only
/// valid JSON is stored.
///
/// # Errors
///
/// If it is not valid JSON.
pub(crate) fn json_value(text: &str) -> Result<String, StateError> {
    let value = Json::parse(text);
    let value =
        value.map_err(|error| StateError::Invalid(format!("the value is not valid JSON: {error}")))?;
    Ok(value.into_text())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threat 818.
    #[test]
    fn v_818_everything_that_a_call_holds_counts() {
        let text = |length| "a".repeat(length);
        let calls = [
            (StateCall::Set { key: text(1), value: text(10), expected: Some(text(100)) }, 111),
            (StateCall::Set { key: text(1), value: text(10), expected: None }, 11),
            (StateCall::Get { key: text(7), tagged: true }, 7),
            (StateCall::Keys { prefix: text(7) }, 7),
        ];
        for (call, bytes) in calls {
            assert_eq!(call.bytes(), bytes, "{call:?}");
        }
    }
}
