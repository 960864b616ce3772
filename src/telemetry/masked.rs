//! Text of arguments and results with masked secrets, for records.

use serde_json::Value;

use crate::run::recording::mask_data;
use crate::text::secrets::{MASK, looks_like_token, names_secret};
use crate::text::{preview_bytes, start_bytes};

/// JSON text with secrets masked, truncated to `max` bytes. Text that is not JSON is masked as plain text.
pub(super) fn json_text(text: &str, max: usize) -> String {
    // Text far beyond the bound is not parsed: a result may be as large as a run's limit.
    if text.len() > 4 * max {
        let start = start_bytes(text, max);
        // Truncated at a separator, because half of a token does not look like one.
        let end = start.rfind(is_separator);
        return format!("{}…", words(&start[..end.unwrap_or_default()]));
    }
    let masked = match serde_json::from_str::<Value>(text) {
        Ok(mut value) => {
            mask(&mut value, false);
            value.to_string()
        }
        Err(_no_json) => words(text),
    };
    preview_bytes(&masked, max).into_owned()
}

fn mask(value: &mut Value, is_secret: bool) {
    match value {
        Value::Object(fields) => {
            fields.iter_mut().for_each(|(name, value)| mask(value, is_secret || names_secret(name)));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, is_secret)),
        Value::String(text) if is_secret => MASK.clone_into(text),
        Value::Number(_) if is_secret => *value = MASK.into(),
        Value::String(text) => *text = words(text),
        _ => {}
    }
}

/// Masks words that look like a token, and words that follow the name of a secret.
fn words(text: &str) -> String {
    if text.contains("PRIVATE KEY-----") {
        return MASK.to_owned();
    }
    // JSON within a text, and truncated JSON, is not parsed into fields: quoted values after a name are masked instead.
    let known = mask_data(text);
    let text = known.as_deref().unwrap_or(text);
    let mut masked = String::with_capacity(text.len());
    let mut follows = false;
    for piece in text.split_inclusive(is_separator) {
        let word = piece.trim_end_matches(is_separator);
        let rest = &piece[word.len()..];
        // `name=value`, as in URLs and command lines.
        let (name, value) = word.split_once('=').map_or(("", word), |(name, value)| (name, value));
        let is_secret = !value.is_empty()
            && (follows || looks_like_token(value) || (!name.is_empty() && names_secret(name)));
        if is_secret && !names_secret(value) {
            if !name.is_empty() {
                masked.push_str(name);
                masked.push('=');
            }
            masked.push_str(MASK);
            follows = false;
        } else {
            masked.push_str(word);
            if !word.is_empty() {
                follows = names_secret(word) && (rest.starts_with([':', ' ']) || word.ends_with('='));
            }
        }
        masked.push_str(rest);
    }
    masked
}

/// Whether a character separates the words of a text.
fn is_separator(character: char) -> bool {
    character.is_whitespace() || "\"'`,;:(){}[]<>&?|\\".contains(character)
}

#[cfg(test)]
mod tests;
