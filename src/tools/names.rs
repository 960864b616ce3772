//! Names: camelCase forms, full names, and the nearest right name to a wrong one.

use serde_json::Value;

/// The prefix and separator of full names: `mcp__server__tool`.
const FULL_NAME_PREFIX: &str = "mcp__";
const FULL_NAME_SEPARATOR: &str = "__";

/// The camelCase form of a tool's or server's name: `read_file`, `read-file` and `read.file` all
/// become `readFile`. Capitals that are there stay. A name without separators is its own form.
pub(crate) fn camel_case(name: &str) -> String {
    let mut form = String::with_capacity(name.len());
    let mut capitalise_next = false;
    for character in name.chars() {
        if !character.is_alphanumeric() && character != '$' {
            capitalise_next = !form.is_empty();
        } else if capitalise_next {
            form.extend(character.to_uppercase());
            capitalise_next = false;
        } else {
            form.push(character);
        }
    }
    form
}

/// `mcp__server__tool`.
pub(crate) fn full_name(server: &str, tool: &str) -> String {
    format!("{FULL_NAME_PREFIX}{server}{FULL_NAME_SEPARATOR}{tool}")
}

/// Every way to read a full name as a server and a tool. There are several when a part contains
/// `__` itself; which of them exist is for the catalogue to say.
pub(crate) fn split_full_name(name: &str) -> impl Iterator<Item = (&str, &str)> {
    let rest = name.strip_prefix(FULL_NAME_PREFIX).unwrap_or("");
    rest.match_indices(FULL_NAME_SEPARATOR)
        .map(move |(at, separator)| (&rest[..at], &rest[at + separator.len()..]))
        .filter(|(server, tool)| !server.is_empty() && !tool.is_empty())
}

/// How many names a "did you mean" offers.
const NEAREST: usize = 3;

/// Longer wrong names are not compared: the distance is quadratic and the guest chose the name.
const LONGEST_COMPARED: usize = 128;

/// The candidates nearest to `wrong`, best first: alike but for case and separators, containing or
/// contained, or few edits away.
pub(crate) fn nearest<'a>(wrong: &str, candidates: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    if wrong.len() > LONGEST_COMPARED {
        return Vec::new();
    }
    let wanted = fold(wrong);
    let mut scored: Vec<(f64, &str)> = candidates
        .filter(|candidate| candidate.len() <= LONGEST_COMPARED)
        .filter_map(|candidate| {
            let score = similarity(&wanted, &fold(candidate));
            (score >= 0.6).then_some((score, candidate))
        })
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.truncate(NEAREST);
    scored.into_iter().map(|(_, candidate)| candidate).collect()
}

fn similarity(wanted: &str, candidate: &str) -> f64 {
    if wanted.len() >= 3 && candidate.len() >= 3 {
        if wanted == candidate {
            return 1.0;
        }
        if candidate.contains(wanted) || wanted.contains(candidate) {
            return 0.9;
        }
    }
    strsim::normalized_damerau_levenshtein(wanted, candidate)
}

/// Lower case without separators, so that `ReadFile` and `read_file` are alike.
fn fold(name: &str) -> String {
    name.chars().filter(|character| character.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// `: did you mean …?` or, when nothing is near, what there is.
pub(crate) fn suggestion<'a>(
    wrong: &str,
    what: &str,
    candidates: impl Iterator<Item = &'a str> + Clone,
) -> String {
    let near = nearest(wrong, candidates.clone());
    if !near.is_empty() {
        return format!("; did you mean {}?", quoted(near.into_iter()));
    }
    let count = candidates.clone().count();
    match count {
        0 => format!("; there are no {what}"),
        1..=12 => format!("; the {what} are {}", quoted(candidates)),
        _ => format!("; there are {count} {what}, `searchTools` finds the right one"),
    }
}

fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// What kind of JSON a value is, for messages that should not show the value.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;
