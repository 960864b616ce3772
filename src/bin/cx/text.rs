//! Text for a terminal.

use std::fmt::Write as _;

/// `text` with control characters escaped, which could move a terminal's cursor or change its
/// title.
///
/// Unlike the library's `visible`, this keeps zero-width characters: a script's output may have
/// emoji and scripts that need them, and no decision depends on it.
pub(crate) fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        // Bidirectional overrides change the order in which text is displayed.
        let hidden = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if (character.is_control() && !matches!(character, '\n' | '\t')) || hidden {
            let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    shown
}
