//! Checks and escapes text that is shown to users and models.

/// Whether `text` has characters that are invisible or that change how others are displayed.
pub(crate) fn hidden_text(text: &str) -> bool {
    text.chars().any(is_hidden)
}

/// Escapes every character of [`hidden_text`] in `text` as `\u{…}`, so that a user and a model read
/// the same.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_hidden(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Whether a character is hidden: control characters other than tab and line terminators, which
/// form ANSI sequences; zero-width characters; bidirectional controls; tags and variation
/// selectors, which can carry complete hidden messages; and private use.
///
/// The joiner and the variation selector of emoji count as hidden too, because they can carry
/// hidden text like the others.
pub(crate) fn is_hidden(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' => false,
        _ if character.is_control() => true,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}'..='\u{1160}' | '\u{17B4}'..='\u{17B5}' => true,
        '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' => true,
        '\u{2060}'..='\u{206F}' | '\u{2800}' | '\u{3164}' | '\u{E000}'..='\u{F8FF}' => true,
        '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF9}'..='\u{FFFB}' => true,
        '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}' => true,
        '\u{E0000}'..='\u{10FFFF}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
