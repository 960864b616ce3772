//! Masks secrets in the texts of a recording.
//!
//! Each secret becomes `***` and a number, and equal secrets get the same number: a script that passes a token from one
//! answer to the next call, or compares two, behaves as before. A script that examines a secret (its length, its parts,
//! a hash) does not; for this reason a replay reports that values were masked.
//!
//! Masking works on the text and never adds or removes a quote or a backslash outside of a value, so that
//! JSON stays JSON and a script stays a script.

use std::collections::HashMap;

use crate::json;
use crate::text::secrets::{MASK, looks_like_token, names_secret};
use crate::text::start_bytes;

/// The shortest value after a secret's name that is masked. Shorter values are mostly words such as `on`.
const MIN_NAMED: usize = 4;

/// The shortest word after `Bearer` or `Basic` that is masked.
const MIN_SCHEME: usize = 8;

/// Maximum bytes that are read to find out whether a quoted text is open, and of the space after a value in brackets.
/// Without a bound, each word of a long text without line breaks, or before much space, would be compared with all of
/// it.
const MAX_LINE: usize = 1 << 10;

/// The kind of text, which determines what is masked in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextKind {
    /// Source code: quoted values and words that look like tokens, because a program has its secrets as literals.
    Source,
    /// Other text: as for `Source`, and unquoted values that follow a secret's name.
    Data,
}

/// Masks the texts of one recording.
#[derive(Debug, Default)]
pub(crate) struct Masker {
    numbers: HashMap<String, usize>,
}

impl Masker {
    /// Number of different secrets so far.
    pub(crate) fn found(&self) -> u64 {
        self.numbers.len() as u64
    }

    /// The text with its secrets masked, or `None` if it has none.
    pub(crate) fn mask(&mut self, text: &str, kind: TextKind) -> Option<String> {
        let mut masked = String::new();
        // How much of the text was copied to `masked`.
        let mut copied = 0;
        let mut at = 0;
        let mut next_quote = 0;
        while let Some(secret) = next_secret(text, at, kind, &mut next_quote) {
            let (start, end) = secret;
            masked.push_str(&text[copied..start]);
            let next = self.numbers.len() + 1;
            let number = *self.numbers.entry(text[start..end].to_owned()).or_insert(next);
            masked.push_str(MASK);
            masked.push_str(&number.to_string());
            (copied, at) = (end, end);
        }
        if copied == 0 {
            return None;
        }
        masked.push_str(&text[copied..]);
        Some(masked)
    }
}

fn is_separator(character: char) -> bool {
    character.is_whitespace() || "\"'`,;:(){}[]<>&?|\\=".contains(character)
}

/// The byte range of the first secret from `at` on. `next_quote` is kept from one search to the next: see [`in_pair`].
fn next_secret(text: &str, at: usize, kind: TextKind, next_quote: &mut usize) -> Option<(usize, usize)> {
    let mut at = at;
    // The previous word and its end.
    let mut before: Option<(&str, usize)> = None;
    loop {
        let start = at + text[at..].find(|character| !is_separator(character))?;
        let end = text[start..].find(is_separator).map_or(text.len(), |length| start + length);
        let word = &text[start..end];
        if word.starts_with("-----BEGIN") {
            let rest = &text[start..];
            if let Some(key) = private_key(rest) {
                return Some((start, start + key));
            }
        }
        // A mask of an earlier recording is not masked again.
        let is_mask = word.strip_prefix(MASK).is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()));
        if !is_mask {
            if looks_like_token(word) {
                return Some((start, end));
            }
            if let Some((name, name_end)) = before {
                let between = &text[name_end..start];
                let found = follows(name, between, text, (start, end), kind, next_quote);
                if found.is_some() {
                    return found;
                }
            }
        }
        before = Some((word, end));
        at = end;
    }
}

/// The secret that begins at `start`, if `name` is the name of a secret.
fn follows(
    name: &str,
    between: &str,
    text: &str,
    (start, end): (usize, usize),
    kind: TextKind,
    next_quote: &mut usize,
) -> Option<(usize, usize)> {
    let word = &text[start..end];
    if is_scheme(name) && between == " " && word.len() >= MIN_SCHEME {
        return Some((start, end));
    }
    if !names_secret(name) {
        return None;
    }
    let signs: String =
        between.chars().filter(|character| *character != '\\' && !character.is_whitespace()).collect();
    let quote = signs.chars().last().filter(|last| "\"'`".contains(*last));
    let rest = signs.trim_start_matches(['"', '\'', '`']).trim_end_matches(['"', '\'', '`']);
    if rest == "," {
        return in_pair(name, between, text, start, next_quote);
    }
    if !matches!(rest, ":" | "=") {
        return None;
    }
    if let Some(quote) = quote {
        // The value ends at the closing quote, without the backslash of a quoted text within another.
        if kind == TextKind::Source && is_code(text, start, word) {
            return None;
        }
        let value = in_quotes(&text[start..], quote, between).trim_end_matches('\\');
        return (value.len() >= MIN_NAMED).then_some((start, start + value.len()));
    }
    // The secret is the next word.
    if is_scheme(word) {
        return None;
    }
    let is_literal = matches!(word, "true" | "false" | "null" | "None" | "True" | "False")
        || word.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    (kind == TextKind::Data && word.len() >= MIN_NAMED && !is_literal).then_some((start, end))
}

/// The value at the beginning of `text`, which ends at `quote` or at the end of its line. `before`, the text in front
/// of it, ends with the opening quote. The number of backslashes before the opening quote tells how deep the text is
/// nested in others; a quote with more backslashes is part of the value.
fn in_quotes<'a>(text: &'a str, quote: char, before: &str) -> &'a str {
    let near = start_bytes(text, MAX_LINE);
    let near = near.lines().next().unwrap_or_default();
    let backslashes = |before: &str| before.len() - before.trim_end_matches('\\').len();
    let level = before.rfind(quote).map_or(0, |at| backslashes(&before[..at]));
    let ends = |at: usize| {
        let more = backslashes(&near[..at]).checked_sub(level);
        more.is_some_and(|more| more % (2 * (level + 1)) == 0)
    };
    let end = near.match_indices(quote).map(|(at, _)| at).find(|&at| ends(at));
    // If there is no such quote, the text was truncated or is not a quoted value.
    &text[..end.or_else(|| text.find([quote, '\n'])).unwrap_or(text.len())]
}

/// Operators that may follow a quoted text: `if 'password:' in line`.
const OPERATORS: [&str; 10] = ["in", "not", "is", "and", "or", "if", "for", "else", "as", "instanceof"];

/// Whether the word at `start` is code after the quoted text that contains the secret's name: `'client_secret=' +
/// password`.
fn is_code(text: &str, start: usize, word: &str) -> bool {
    (word.starts_with(['+', '%', '.']) || OPERATORS.contains(&word)) && is_outside_of_texts(&text[..start])
}

/// Whether no quoted text is open at the end of `before`. Returns `false` if that is unknown, because the beginning is
/// too far away; the value is then masked.
fn is_outside_of_texts(before: &str) -> bool {
    let end = &before[before.ceil_char_boundary(before.len().saturating_sub(MAX_LINE))..];
    let known =
        if end.len() == before.len() { Some(end) } else { end.split_once('\n').map(|(_, lines)| lines) };
    let Some(known) = known else { return false };
    let mut open = None;
    let mut characters = known.chars();
    while let Some(character) = characters.next() {
        match (open, character) {
            (_, '\\') => {
                characters.next();
            }
            (Some(quote), _) if character == quote => open = None,
            // Only templates have several lines; an apostrophe in a comment ends with its line.
            (Some('"' | '\''), '\n') => open = None,
            (None, '"' | '\'' | '`') => open = Some(character),
            _ => {}
        }
    }
    open.is_none()
}

/// The secret that begins at `start`, if it is the second of two quoted texts in brackets, as in a list of headers:
/// `["authorization","abc"]`. `next_quote` is a position before which no quote follows the current word. Words are
/// visited in order, so the text before that position need not be searched again.
fn in_pair(
    name: &str,
    between: &str,
    text: &str,
    start: usize,
    next_quote: &mut usize,
) -> Option<(usize, usize)> {
    let quotes = ['"', '\\'];
    let before = text[..start].strip_suffix(between)?.strip_suffix(name)?.trim_end_matches(quotes);
    if !before.ends_with('[') {
        return None;
    }
    if *next_quote < start {
        *next_quote = text[start..].find('"').map_or(text.len(), |length| start + length);
    }
    let value = &text[start..*next_quote];
    let behind = text.get(*next_quote + 1..)?;
    let is_pair = start_bytes(behind, MAX_LINE).trim_start().starts_with(']');
    let value = value.trim_end_matches('\\');
    (is_pair && value.len() >= MIN_NAMED).then_some((start, start + value.len()))
}

/// Whether a credential follows this word in a header.
fn is_scheme(word: &str) -> bool {
    word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic")
}

/// The length of the private key at the beginning of the text.
fn private_key(text: &str) -> Option<usize> {
    const LAST: &str = "PRIVATE KEY-----";
    const MAX_FIRST_LINE: usize = 64 + LAST.len();
    let first_line = start_bytes(text, MAX_FIRST_LINE).find(LAST)? + LAST.len();
    let rest = &text[first_line..];
    Some(
        first_line
            + rest.find(LAST).map_or_else(|| rest.find('"').unwrap_or(rest.len()), |end| end + LAST.len()),
    )
}

/// The text with what looks like a secret masked, or `None` if nothing does.
pub(crate) fn mask_data(text: &str) -> Option<String> {
    Masker::default().mask(text, TextKind::Data)
}

/// Whether two texts are equal, or equal as JSON, apart from masked secrets: a secret of the recorded run is a mask in
/// the replay, or what the script made of that mask.
pub(crate) fn looks_equal(text: &str, recorded: &str) -> bool {
    if is_same_text(text, recorded) {
        return true;
    }
    let tree = |text: &str| json::tree(text, json::budget(text.len())).ok();
    let is_same_tree = |text: &str, recorded: &str| {
        tree(text).zip(tree(recorded)).is_some_and(|(text, recorded)| text == recorded)
    };
    if recorded.contains(MASK) {
        is_same_tree(&without_secrets(text), &without_secrets(recorded))
    } else {
        is_same_tree(text, recorded)
    }
}

/// As [`looks_equal`], without comparing as JSON: equal to the byte, apart from masked secrets.
pub(crate) fn is_same_text(text: &str, recorded: &str) -> bool {
    text == recorded || (recorded.contains(MASK) && without_secrets(text) == without_secrets(recorded))
}

/// The text with the same mask in place of every secret and of every mask.
fn without_secrets(text: &str) -> String {
    let masked = Masker::default().mask(text, TextKind::Data);
    let masked = masked.as_deref().unwrap_or(text);
    let mut parts = masked.split(MASK);
    let mut folded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        folded.push_str(MASK);
        folded.push_str(part.trim_start_matches(|character: char| character.is_ascii_digit()));
    }
    folded
}
