//! Error codes in a script's source that no failed call has: a retry on `"RATE_LIMIT"` never
//! happens.

use super::source::takes_field;
use crate::text::preview;
use crate::tools::ToolErrorCode;

/// Characters of a code that a hint shows.
const MAX_SHOWN: usize = 40;

/// The hint for a script that looks for a code that does not exist. `actual` is the code of a call
/// of its run.
pub(super) fn hint(actual: ToolErrorCode, source: &str) -> Option<String> {
    let wrong = unknown(source)?;
    let all: Vec<&str> = ToolErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    Some(format!(
        "`{}` is not a code of a failed call; this one has `{actual}`; codes: {}",
        preview(wrong, MAX_SHOWN),
        all.join(", ")
    ))
}

/// The first code that the source compares with the `code` of something, and that does not exist.
fn unknown(source: &str) -> Option<&str> {
    if !takes_field(source, "code") {
        return None;
    }
    // `switch (error.code)` and `match error.code`.
    let has_cases = source.lines().any(|line| {
        let line = line.trim_start();
        (line.starts_with("switch") || line.starts_with("match ")) && takes_field(line, "code")
    });
    source.lines().find_map(|line| {
        let may_name_codes = takes_field(line, "code")
            || has_cases && line.trim_start().starts_with("case ")
            // `const RETRYABLE = ["TIMEOUT"]`
            || line.to_ascii_lowercase().contains("retr");
        may_name_codes.then(|| unknown_in(line)).flatten()
    })
}

/// The first string of a line that is written like a code, or number that is compared, and that is
/// not a code.
fn unknown_in(line: &str) -> Option<&str> {
    strings(line)
        .find(|text| is_code_like(text) && ToolErrorCode::from_name(text).is_none())
        .or_else(|| compared_number(line))
}

/// The contents of the string literals of a line. Escapes do not matter: no code has one.
fn strings(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let start = rest.find(['"', '\''])?;
        let quote = rest[start..].chars().next()?;
        let text = &rest[start + 1..];
        let end = text.find(quote)?;
        rest = &text[end + 1..];
        Some(&text[..end])
    })
}

fn is_code_like(text: &str) -> bool {
    text.len() >= 4
        && text.starts_with(|first: char| first.is_ascii_uppercase())
        && text.chars().all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_')
}

/// The number in `.code === 429`.
fn compared_number(line: &str) -> Option<&str> {
    line.match_indices(".code").find_map(|(start, code)| {
        let after = line[start + code.len()..].trim_start();
        let number = after.trim_start_matches(['=', '!', '<', '>']);
        // One `=` is an assignment.
        if after.len() - number.len() < 2 {
            return None;
        }
        let number = number.trim_start();
        let end = number.find(|digit: char| digit != '-' && !digit.is_ascii_digit()).unwrap_or(number.len());
        (end > 0).then(|| &number[..end])
    })
}
