//! Scripts whose value is lost: one with a `return` at its top level has no other value than what that returns.

use super::source::has_word;

pub(super) const LOST: &str = "the script's value is null: a script with a `return` at its top level has no other \
    value, so write `return` before its last expression too";

/// Words that are no value, although they look like a name.
const WORDS: &[&str] = &["break", "continue", "debugger", "pass", "return"];

/// Whether a script has a `return` at its top level, and ends in an expression that is written for its value.
pub(super) fn is_lost(source: &str) -> bool {
    returns_at_top(source) && ends_in_value(source)
}

fn returns_at_top(source: &str) -> bool {
    let mut before = "";
    source.lines().filter(|line| !line.trim().is_empty()).any(|line| {
        let is_inner = line.starts_with(char::is_whitespace);
        let is_of_top = match is_inner {
            // Not one of a function that is written in the branch.
            true => begins_branch(before) && line.trim_start().starts_with("return"),
            false => line.starts_with("return") || begins_branch(line),
        };
        before = line;
        is_of_top && has_word(line, "return")
    })
}

/// Whether a line begins a branch at the top level.
fn begins_branch(line: &str) -> bool {
    ["if ", "if(", "else", "} else", "elif "].iter().any(|word| line.starts_with(word))
}

fn ends_in_value(source: &str) -> bool {
    let is_code =
        |line: &&str| !line.is_empty() && !["```", "//", "#"].iter().any(|start| line.starts_with(start));
    let closes = |line: &str| line.starts_with(['}', ')', ']']);
    let mut lines = source.lines().map(str::trim_end).filter(is_code).rev();
    let Some(last) = lines.next().map(|line| line.trim_end_matches(';')) else { return false };
    if closes(last) {
        // An object or a list over several lines.
        let first = lines.find(|line| !line.starts_with(char::is_whitespace) && !closes(line));
        return first
            .is_some_and(|line| line.starts_with(['(', '[', '{']) && line.ends_with(['(', '[', '{']));
    }
    let is_enclosed = [('(', ')'), ('[', ']'), ('{', '}')]
        .iter()
        .any(|(open, close)| last.starts_with(*open) && last.ends_with(*close));
    is_enclosed || is_path(last)
}

/// Whether a line is a name, or a field of one: `total`, `rows[0].id`.
fn is_path(line: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || "_$.[]'\"".contains(letter);
    line.starts_with(|letter: char| letter.is_alphabetic() || letter == '_' || letter == '$')
        && line.chars().all(is_part)
        && !WORDS.contains(&line)
}

/// Whether the JSON of a value is `null`, or lists and objects with nothing but that: `[null,null]`,
/// `{}`. A list without entries is data.
pub(super) fn has_no_data(json: &str) -> bool {
    let mut rest = json.trim_start_matches(['[', ']', '{', '}', ',']);
    while let Some(after) = rest.strip_prefix("null") {
        rest = after.trim_start_matches(['[', ']', '{', '}', ',']);
    }
    rest.is_empty() && !json.contains("[]")
}
