//! Text that people and models are shown.

/// Whether `text` has characters that a person does not see, or that change how others are seen.
pub(crate) fn hidden_text(text: &str) -> bool {
    text.chars().any(is_hidden)
}

/// `text` with every character of [`hidden_text`] written out as `\u{…}`, so that a person and a model read the same.
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

/// Controls but for tab and line ends, of which ANSI sequences are made; what has no width; what turns the direction
/// of text; tags and variation selectors, which carry whole hidden messages; and private use.
///
/// The joiner and the selector of emoji are hidden characters too: what they hide in is no better for them.
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
