//! Hints about the run's input.

use super::failure::Failure;
use super::source::{has_word, is_part};
use crate::json::Json;
use crate::run::context::ExecutionContext;
use crate::run::script::Language;

/// The hint for a script whose input, of this name, was not given.
pub(super) fn none(name: &str) -> String {
    format!(
        "the run was given no input, so `{name}` is null: pass `input` beside `code`, or `cx run --input JSON`"
    )
}

/// Whether an input is a text with an object or an array in it, as models write it that take the input for text.
pub(super) fn is_text_of_json(input: &Json) -> bool {
    let inner = input.text().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner.is_some_and(|inner| {
        inner.starts_with('{') && inner.ends_with('}') || inner.starts_with('[') && inner.ends_with(']')
    })
}

/// The hint for a script that takes such a text, of this name, for what is in it. `parse` is the expression for that: a
/// script that has it knows.
pub(super) fn of_text(failure: &Failure<'_>, name: &str, parse: &str) -> Option<String> {
    let message = failure.message;
    let takes_for_object = match failure.name {
        "TypeError" => {
            [
                "Cannot read properties of undefined",
                "Cannot destructure property",
                "string indices must be integers",
            ]
            .iter()
            .any(|start| message.starts_with(start))
                || [" is not a function", " is not iterable"].iter().any(|end| message.ends_with(end))
        }
        "AttributeError" => message.starts_with("'str' object has no attribute "),
        _ => false,
    };
    let reads = failure.source.contains(parse);
    (failure.has_text && takes_for_object && has_word(failure.line, name) && !reads).then(|| text_of(parse))
}

fn text_of(parse: &str) -> String {
    format!(
        "the run's input is a text, and not what is in it: pass that as `input`, or read it with `{parse}`"
    )
}

/// What a text of TypeScript has itself.
const MEMBERS: &[&str] = &[
    "at",
    "charAt",
    "charCodeAt",
    "codePointAt",
    "concat",
    "endsWith",
    "includes",
    "indexOf",
    "lastIndexOf",
    "length",
    "localeCompare",
    "match",
    "matchAll",
    "normalize",
    "padEnd",
    "padStart",
    "repeat",
    "replace",
    "replaceAll",
    "search",
    "slice",
    "split",
    "startsWith",
    "substr",
    "substring",
    "toLocaleLowerCase",
    "toLocaleUpperCase",
    "toLowerCase",
    "toString",
    "toUpperCase",
    "trim",
    "trimEnd",
    "trimStart",
    "valueOf",
];

/// The warning for a script of TypeScript that takes such a text for what is in it, and has no value therefore:
/// `input.a` of a text is no error. A script that passes the text on, as to a file, is right.
pub(super) fn unread(context: &ExecutionContext) -> Option<String> {
    let script = &context.script;
    let is_text = script.input.as_ref().is_some_and(is_text_of_json);
    let is_typescript = script.language == Language::TypeScript;
    let is_meant = || !script.source.contains("JSON.parse(") && takes_field_of_input(&script.source);
    (is_text && is_typescript && is_meant()).then(|| text_of("JSON.parse(input)"))
}

/// Whether a script takes a field of `input` that a text does not have: `input.a`, `input?.["a"]`, `{ a } = input`.
fn takes_field_of_input(source: &str) -> bool {
    const INPUT: &str = "input";
    source.match_indices(INPUT).any(|(start, _)| {
        let (before, after) = (&source[..start], &source[start + INPUT.len()..]);
        // A part of another name, or of a text such as `"/tmp/input.json"`.
        let is_other = before.ends_with(is_part) || before.ends_with(['.', '/', '-', '"', '\'', '`']);
        if is_other || after.starts_with(is_part) {
            return false;
        }
        let after = after.trim_start_matches(['?', '!']);
        let member = after.strip_prefix('.').unwrap_or_default();
        let name = member.split(|letter: char| !is_part(letter)).next().unwrap_or_default();
        let is_in_brackets =
            [after, member].iter().any(|rest| ["[\"", "['"].iter().any(|start| rest.starts_with(start)));
        let is_taken_out =
            before.trim_end().strip_suffix('=').is_some_and(|left| left.trim_end().ends_with('}'));
        !name.is_empty() && !MEMBERS.contains(&name) || is_in_brackets || is_taken_out
    })
}
