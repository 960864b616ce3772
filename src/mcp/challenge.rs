//! Reads `WWW-Authenticate` (RFC 9110, section 11.6.1): the challenges of a refused request.
//!
//! rmcp's reader searches for `error=` anywhere in the header, so it also finds it in the quoted text of another
//! parameter. The published parsers are small crates of one author each, a larger risk than these lines.

use http::{HeaderMap, header};

/// One way to authenticate.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Challenge<'a> {
    /// Its name, such as `Bearer`. Case does not matter.
    pub(crate) scheme: &'a str,
    /// Its parameters in order. Case does not matter in names; values are without quotes and escapes.
    pub(crate) parameters: Vec<(&'a str, String)>,
}

impl Challenge<'_> {
    /// The value of the first parameter of that name.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        let mut parameters = self.parameters.iter();
        parameters.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

/// The first result of `find` for a challenge of a response, in the order of its headers. Bytes that are no UTF-8 are
/// replaced: a description in another encoding must not hide the parameters beside it.
pub(crate) fn find_challenge<T>(
    headers: &HeaderMap,
    mut find: impl FnMut(&Challenge<'_>) -> Option<T>,
) -> Option<T> {
    headers.get_all(header::WWW_AUTHENTICATE).iter().find_map(|value| {
        let value = String::from_utf8_lossy(value.as_bytes());
        let challenges = challenges(&value);
        challenges.iter().find_map(&mut find)
    })
}

/// Reads the challenges of one header value. Skips what is not well formed, and credentials without
/// names (`Negotiate YWJj`), which nothing here uses. The time is linear in the length of the value.
fn challenges(value: &str) -> Vec<Challenge<'_>> {
    let mut found: Vec<Challenge<'_>> = Vec::new();
    for element in elements(value) {
        // Either a parameter of the previous challenge, or a scheme with its first parameter: both
        // lists have commas.
        let mut text = trimmed_start(element);
        if parameter(text).is_none() {
            let (scheme, rest) = token(text);
            text = trimmed_start(rest);
            let is_scheme = !scheme.is_empty() && (text.len() < rest.len() || text.is_empty());
            if !is_scheme || text.starts_with('=') {
                continue;
            }
            found.push(Challenge { scheme, parameters: Vec::new() });
        }
        let Some(challenge) = found.last_mut() else { continue };
        // Some servers separate parameters by spaces only.
        while let Some((name, value, rest)) = parameter(text) {
            challenge.parameters.push((name, value));
            text = trimmed_start(rest);
        }
    }
    found
}

/// Splits at commas outside of quotes.
fn elements(value: &str) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    value.split(move |character: char| {
        if std::mem::take(&mut is_escaped) {
            return false;
        }
        match character {
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ',' => return !is_quoted,
            _ => {}
        }
        false
    })
}

/// Reads `name=value` or `name="value"` at the start of `text`. Returns name, value, and the rest.
fn parameter(text: &str) -> Option<(&str, String, &str)> {
    let (name, rest) = token(text);
    if name.is_empty() {
        return None;
    }
    let rest = trimmed_start(trimmed_start(rest).strip_prefix('=')?);
    if let Some(quoted) = rest.strip_prefix('"') {
        let (value, rest) = unquoted(quoted)?;
        return Some((name, value, rest));
    }
    let (value, rest) = token(rest);
    (!value.is_empty()).then(|| (name, value.to_owned(), rest))
}

/// Reads up to the closing quote. Returns the text without escapes, and the rest.
fn unquoted(quoted: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((position, character)) = characters.next() {
        match character {
            '"' => return Some((value, &quoted[position + 1..])),
            '\\' => value.push(characters.next()?.1),
            _ => value.push(character),
        }
    }
    None
}

/// Splits after the token (RFC 9110, section 5.6.2) at the start of `text`, which may be empty.
fn token(text: &str) -> (&str, &str) {
    text.split_at(text.find(|character: char| !is_token(character)).unwrap_or(text.len()))
}

fn is_token(character: char) -> bool {
    character.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(character)
}

fn trimmed_start(text: &str) -> &str {
    text.trim_start_matches([' ', '\t'])
}

#[cfg(any(test, fuzzing))]
#[path = "../../fuzz/entries/challenges.rs"]
pub(crate) mod fuzzing;
#[cfg(test)]
mod tests;
