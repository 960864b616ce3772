//! Python names, literals and docstrings that text from a server cannot terminate.

use std::fmt::Write as _;

use serde_json::Value;

use crate::text::{self, is_hidden, preview, visible};
use crate::tools::declarations::model::MAX_DESCRIPTION;
use crate::tools::declarations::types::MAX_NAME;
use crate::tools::names::is_python_identifier;

/// Whether a name can be an attribute and a global. Only ASCII is accepted, because Python normalizes other letters.
pub(super) fn is_name(name: &str) -> bool {
    let is_plain = name.is_ascii() && is_python_identifier(name) && !name.starts_with('_');
    is_plain && !["None", "True", "False"].contains(&name) && name.len() <= MAX_NAME
}

pub(super) fn constant(value: &Value) -> String {
    match value {
        Value::String(text) => format!("_t.Literal[{}]", string(text)),
        Value::Bool(true) => "_t.Literal[True]".to_owned(),
        Value::Bool(false) => "_t.Literal[False]".to_owned(),
        Value::Number(number) if number.is_f64() => "_b.float".to_owned(),
        Value::Number(number) => format!("_t.Literal[{number}]"),
        _ => "_t.Any".to_owned(),
    }
}

/// The name without characters other than ASCII letters and digits, each part capitalized.
pub(super) fn pascal(name: &str) -> String {
    let mut text = String::new();
    let mut begins = true;
    for character in text::start(name, MAX_NAME).chars() {
        if !character.is_ascii_alphanumeric() {
            begins = true;
        } else if text.is_empty() && character.is_ascii_digit() {
            text.push('N');
            text.push(character);
            begins = false;
        } else if begins {
            text.push(character.to_ascii_uppercase());
            begins = false;
        } else {
            text.push(character);
        }
    }
    text
}

/// `text` as a string literal of Python, on one line.
pub(super) fn string(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for character in text.chars() {
        match character {
            '"' => literal.push_str("\\\""),
            '\\' => literal.push_str("\\\\"),
            character if character.is_control() || is_hidden(character) => {
                let _ = write!(literal, "\\U{:08x}", u32::from(character));
            }
            character => literal.push(character),
        }
    }
    literal.push('"');
    literal
}

/// A description as the docstring of the item before it, on separate lines; empty if there is none. The text can
/// neither contain an escape nor end the docstring.
pub(super) fn documentation(text: &str, indent: usize) -> String {
    let start = preview(text, MAX_DESCRIPTION);
    let shown = visible(&start.replace("\r\n", "\n").replace('\r', "\n"));
    let shown = shown.trim().replace('\\', "\\\\").replace('"', "\\\"");
    if shown.is_empty() {
        return String::new();
    }
    let margin = " ".repeat(indent);
    let lines: Vec<String> = shown.lines().map(|line| format!("{margin}{}", line.trim_end())).collect();
    let lines = lines.join("\n");
    format!("\n{margin}\"\"\"{}\"\"\"", lines.trim_start())
}
