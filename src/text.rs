//! Text that users and models are shown: what may not be shown raw, how much is shown, and ids.

use std::any::Any;
use std::borrow::Cow;

pub(crate) mod ids;
pub(crate) mod secrets;
#[cfg(any(feature = "mcp", feature = "audit", feature = "server"))]
mod time;

#[cfg(feature = "audit")]
pub use self::time::start_of_day;
#[cfg(any(feature = "mcp", feature = "audit", feature = "server"))]
pub use self::time::{rfc3339, rfc3339_seconds};

/// `text` on one line, with every hidden character and every line end written out as `\u{…}`. For prompts on
/// which a user decides, so that nothing in them can move a cursor, reverse text, or stay unseen.
pub fn one_line(text: &str) -> String {
    escaped(text, |character| matches!(character, '\n' | '\t' | '\r') || is_hidden(character))
}

/// `text` as one word of a command that a message tells a user or an agent to run: as [`one_line`] shows it, and in
/// single quotes if a POSIX shell or zsh would read it otherwise. One that begins with `-` is still an option to the
/// command.
pub fn shell_word(text: &str) -> String {
    let word = one_line(text);
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_./:=@%+,".contains(character);
    // In zsh `=name` is the path of a command.
    if !word.is_empty() && !word.starts_with('=') && word.chars().all(is_plain) {
        return word;
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The lines of a source as [`one_line`] shows them. A line ends wherever it does in a language of scripts: in
/// TypeScript, code can follow a comment after a carriage return or a separator of lines or paragraphs.
pub(crate) fn code_lines(source: &str) -> impl Iterator<Item = String> {
    source.lines().flat_map(|line| {
        let empty = line.is_empty().then_some(line);
        line.split_inclusive(['\r', '\u{2028}', '\u{2029}']).chain(empty).map(one_line)
    })
}

/// `text` with every hidden character written out as `\u{…}`, so that a user and a model read the same.
pub(crate) fn visible(text: &str) -> String {
    escaped(text, is_hidden)
}

/// Whether `text` has characters that a user does not see, or that change how others are seen.
pub(crate) fn hidden_text(text: &str) -> bool {
    text.chars().any(is_hidden)
}

/// Maximum characters of a tenant's name.
#[cfg(any(feature = "http", all(feature = "nats", target_os = "linux")))]
pub(crate) const MAX_TENANT_NAME: usize = 32;

/// Whether `name` can be that of a tenant: 1 to 32 lower-case letters, digits and hyphens, because it becomes part of
/// other names.
#[cfg(any(feature = "http", all(feature = "nats", target_os = "linux")))]
pub(crate) fn is_tenant_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=MAX_TENANT_NAME).contains(&name.len()) && name.bytes().all(is_allowed)
}

/// Maximum characters of a name or a value of the author of a call that a message shows: the names of saved scripts and
/// of servers are never longer.
pub(crate) const MAX_SHOWN_NAME: usize = 64;

/// The first `max` characters of `text`.
pub fn start(text: &str, max: usize) -> &str {
    // A text of no more bytes has no more characters.
    if text.len() <= max {
        return text;
    }
    text.char_indices().nth(max).map_or(text, |(end, _)| &text[..end])
}

/// The first `max` bytes of `text`, or a few less where a character would be cut.
pub fn start_bytes(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// The first `max` characters of `text`, and `…` if there are more.
pub fn preview(text: &str, max: usize) -> String {
    let start = start(text, max);
    if start.len() < text.len() { format!("{start}…") } else { text.to_owned() }
}

/// The first `max` characters of an untrusted text in a message, with its hidden characters written out, and `…` if
/// there are more.
pub(crate) fn visible_preview(text: &str, max: usize) -> String {
    visible(&preview(text, max))
}

/// The first `max` bytes of `text`, or a few less where a character would be cut, and `…` if there
/// are more.
pub(crate) fn preview_bytes(text: &str, max: usize) -> Cow<'_, str> {
    if text.len() <= max {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}…", start_bytes(text, max)))
}

/// The message of a panic that was caught.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_escaped(character) {
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
