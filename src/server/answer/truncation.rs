//! Truncation of texts to a number of characters.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::text;

/// Tenths of a truncated text that are kept from its end. The end shows how the run went.
const TAIL_TENTHS: usize = 4;

/// Says where the full text of a part can be read, as the end of a sentence. Empty if the run is not
/// recorded.
pub(crate) fn record_note(run: Option<&str>, part: &str) -> String {
    run.map_or_else(String::new, |run| {
        format!("; the next script gets the whole `{part}` with {}", record_call(run))
    })
}

/// The expression with which a later script, of either language, gets the record of a run.
pub(crate) fn record_call(run: &str) -> String {
    format!("await mcp.run(\"{run}\")")
}

/// The text, truncated if it is longer than `max` characters.
pub(crate) fn whole_or_cut<'a>(text: &'a str, max: usize, note: &str) -> Cow<'a, str> {
    cut(text, max, note).map_or(Cow::Borrowed(text), |(kept, _)| Cow::Owned(kept))
}

/// Truncates a text that is longer than `max` characters: keeps its head and tail, with a line
/// between them that counts the omitted characters. Also returns that count. `None` if the text
/// fits.
pub(crate) fn cut(text: &str, max: usize, note: &str) -> Option<(String, usize)> {
    if !is_longer(text, max) {
        return None;
    }
    let length = text.chars().count();
    let marker = |omitted: usize| format!("\n[… {omitted} characters left out{note} …]\n");
    // The number of omitted characters has at most as many digits as the length of the whole text.
    let room = max.saturating_sub(marker(length).chars().count());
    let tail = room * TAIL_TENTHS / 10;
    let head = room - tail;
    let omitted = length - room;
    Some((format!("{}{}{}", text::start(text, head), marker(omitted), last(text, tail)), omitted))
}

/// Whether a text has more than this many characters.
pub(crate) fn is_longer(text: &str, characters: usize) -> bool {
    // The characters are only counted if the length in bytes does not decide.
    text.len() > characters && text.chars().nth(characters).is_some()
}

/// The last characters of a text.
pub(crate) fn last(text: &str, characters: usize) -> &str {
    match characters.checked_sub(1) {
        Some(before) => text.char_indices().nth_back(before).map_or(text, |(start, _)| &text[start..]),
        None => "",
    }
}

/// Truncates a field, if it is a text.
pub(crate) fn shorten(fields: &mut Map<String, Value>, name: &str, max: usize) {
    if let Some(Value::String(text)) = fields.get_mut(name)
        && let Some((kept, _)) = cut(text, max, "")
    {
        *text = kept;
    }
}
