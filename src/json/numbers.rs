//! Numbers that a tree of [`Value`](serde_json::Value)s cannot hold: integers beyond 64 bits, of
//! which a tree keeps the nearest `f64`, and `NaN` and the infinities, which JSON does not have.
//!
//! Python writes and reads all of them. In a text the first stay as they are written. The others
//! are *marks*: zeros of an unused spelling, which any parser of JSON accepts.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use memchr::memchr2;

/// The start of every mark.
const MARK: &str = "0E-700";

/// What Python's `json` writes, and its mark.
const MARKS: [(&str, &str); 3] = [("NaN", "0E-7001"), ("Infinity", "0E-7002"), ("-Infinity", "-0E-7002")];

/// From here on an integer may have no exact `f64`, and does not fit in 64 bits.
const BIG: f64 = 9_223_372_036_854_775_808.0;

/// The numbers of a text that is JSON, in their order, each with where it begins.
pub(super) struct Numbers<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Numbers<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }
}

impl<'a> Iterator for Numbers<'a> {
    type Item = (usize, &'a str);

    fn next(&mut self) -> Option<(usize, &'a str)> {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b'"' => self.at = end_of_string(bytes, self.at),
                b'-' | b'0'..=b'9' => {
                    let start = self.at;
                    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                    let length = bytes[start..].iter().take_while(|byte| is_part(byte)).count();
                    self.at = start + length;
                    return Some((start, &self.text[start..self.at]));
                }
                _ => self.at += 1,
            }
        }
        None
    }
}

/// The position after the string that begins at `start`.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += found;
        if bytes.get(at) == Some(&b'"') {
            return at + 1;
        }
        // The next character is no end of the string, whatever it is.
        at += 2;
    }
    bytes.len()
}

/// Whether the token is one of the marks.
pub(super) fn is_mark(token: &str) -> bool {
    MARKS.iter().any(|(_, mark)| *mark == token)
}

/// Whether the token is an integer, as it is written.
pub(super) fn is_integer(token: &str) -> bool {
    !token.contains(['.', 'e', 'E'])
}

/// Whether an integer of this size may have lost digits.
pub(super) fn is_big(value: f64) -> bool {
    value.abs() >= BIG
}

/// Whether a text may have marks.
pub(super) fn may_have_marks(text: &str) -> bool {
    text.contains(MARK)
}

/// The text with `to` of each `NaN`, `Infinity` and `-Infinity` outside of strings. `None` if there
/// are none. At most 2.4 times as long.
fn replaced(text: &[u8], to: impl Fn(usize) -> &'static str) -> Option<Vec<u8>> {
    let mut replaced: Option<Vec<u8>> = None;
    // Everything before `copied` is in `replaced` once there is one.
    let (mut at, mut copied) = (0, 0);
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => at = end_of_string(text, at),
            b'N' | b'I' | b'-' => {
                let odd = MARKS.iter().position(|(name, _)| text[at..].starts_with(name.as_bytes()));
                let Some(odd) = odd else {
                    at += 1;
                    continue;
                };
                let replaced = replaced.get_or_insert_default();
                replaced.extend_from_slice(&text[copied..at]);
                replaced.extend_from_slice(to(odd).as_bytes());
                at += MARKS[odd].0.len();
                copied = at;
            }
            _ => at += 1,
        }
    }
    if let Some(replaced) = &mut replaced {
        replaced.extend_from_slice(&text[copied..]);
    }
    replaced
}

/// The text with null in place of `NaN`, `Infinity` and `-Infinity`, which Python's `json` writes by
/// default and JSON does not have. `None` if there are none.
pub(crate) fn nulled(text: &[u8]) -> Option<Vec<u8>> {
    replaced(text, |_| "null")
}

/// The same with marks, for [`Json::parse_marked`](super::Json::parse_marked).
pub(crate) fn marked(text: &[u8]) -> Option<Vec<u8>> {
    replaced(text, |odd| MARKS[odd].1)
}

/// A text with marks as Python reads it.
pub(super) fn unmarked(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut copied = 0;
    for (at, token) in Numbers::new(text) {
        if let Some((name, mark)) = MARKS.iter().find(|(_, mark)| *mark == token) {
            shown.push_str(&text[copied..at]);
            shown.push_str(name);
            copied = at + mark.len();
        }
    }
    shown.push_str(&text[copied..]);
    shown
}

/// Whether a JSON text has a number that no `f64` can hold.
pub(super) fn has_infinite(text: &str) -> bool {
    Numbers::new(text).any(|(_, token)| token.parse().is_ok_and(f64::is_infinite))
}

/// The numbers of a JSON text that a tree may hold with fewer digits, in their order.
pub(crate) fn exact_numbers(text: &str) -> Vec<Box<str>> {
    // A shorter one without an exponent is below 2^63.
    let may_be_big = |token: &str| token.len() >= 19 || !is_integer(token);
    let is_big = |token: &str| may_be_big(token) && token.parse().is_ok_and(is_big);
    let numbers: Vec<&str> =
        Numbers::new(text).map(|(_, token)| token).filter(|token| is_big(token)).collect();
    // Floats matter only as neighbors of integers that look the same in a tree.
    if numbers.iter().any(|token| is_integer(token)) {
        numbers.into_iter().map(Box::from).collect()
    } else {
        Vec::new()
    }
}

/// The text of a tree, with the digits of `exact` that its numbers have lost. Both are in the same
/// order; numbers that are not among them stay as they are.
pub(crate) fn with_exact_numbers(text: String, exact: &[Box<str>]) -> String {
    if exact.is_empty() {
        return text;
    }
    // By their values, because a search for each could take quadratic time: where an object has a name twice, the
    // numbers of the tree are no longer in their order.
    let mut positions: HashMap<u64, VecDeque<usize>> = HashMap::new();
    for (position, digits) in exact.iter().enumerate() {
        if let Ok(value) = digits.parse::<f64>() {
            positions.entry(value.to_bits()).or_default().push_back(position);
        }
    }
    let mut restored = String::with_capacity(text.len() + exact.len() * 16);
    let (mut copied, mut first) = (0, 0);
    for (at, token) in Numbers::new(&text) {
        let Some(value) = token.parse().ok().filter(|value| is_big(*value)) else { continue };
        let Some(same) = positions.get_mut(&value.to_bits()) else { continue };
        while same.front().is_some_and(|position| *position < first) {
            same.pop_front();
        }
        if let Some(found) = same.pop_front() {
            restored.push_str(&text[copied..at]);
            restored.push_str(&exact[found]);
            copied = at + token.len();
            first = found + 1;
        }
    }
    restored.push_str(&text[copied..]);
    restored
}

/// A text with marks as text, if it is UTF-8.
pub(crate) fn marked_text(text: &str) -> Option<Cow<'static, str>> {
    marked(text.as_bytes()).and_then(|text| String::from_utf8(text).ok()).map(Cow::Owned)
}

#[cfg(test)]
mod tests;
