//! A server's question at the terminal: a line for each field of its form, or an address to open.

use cx::{ElicitationMode, ElicitationRequest, FieldKind, FormField, FormOption};
use serde_json::Value;

/// The text before the first question.
pub(crate) fn opening(request: &ElicitationRequest) -> String {
    let script = cx::text::one_line(&request.script);
    let mut text = format!("\nDuring the script `{script}`:\n{}\n", request.render());
    match &request.mode {
        ElicitationMode::Url(address) => {
            text.push_str(&format!("Address: {}\n", cx::text::one_line(address)));
            text.push_str("Open it in a browser if you trust it with this. Do you? [y/N] ");
        }
        _ => text.push_str("Answer it? [y/N] "),
    }
    text
}

/// Whether an answer is yes. Any answer but a clear yes counts as no.
pub(crate) fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

/// The line that asks for one field.
pub(crate) fn field(field: &FormField) -> String {
    let mut text = field.title.clone().unwrap_or_else(|| field.name.clone());
    if let Some(description) = &field.description {
        text.push_str(&format!(" ({description})"));
    }
    text.push_str(&format!(": {}\n", field.expected()));
    let numbered = |options: &[FormOption]| -> String {
        let line = |(position, option): (usize, &FormOption)| {
            let title = option.title.as_ref().map_or_else(String::new, |title| format!(" ({title})"));
            format!("  {}. {}{title}\n", position + 1, option.value)
        };
        options.iter().enumerate().map(line).collect()
    };
    match &field.kind {
        FieldKind::Choice { options } => text.push_str(&numbered(options)),
        FieldKind::Choices { options, .. } => {
            text.push_str(&numbered(options));
            text.push_str("  several are separated by commas\n");
        }
        _ => {}
    }
    let empty = match &field.default {
        Some(default) => format!(" [{}]", plain(default)),
        None if field.is_required => String::new(),
        None => " [nothing]".to_owned(),
    };
    text.push_str(&format!("{}{empty}> ", field.name));
    text
}

/// The typed value of a field; `None` for an empty line, which selects the default.
///
/// # Errors
///
/// The message to show before the field is asked for again.
pub(crate) fn typed(field: &FormField, line: &str) -> Result<Option<Value>, String> {
    if line.trim().is_empty() {
        return match field.is_required && field.default.is_none() {
            true => Err("it is required\n".to_owned()),
            false => Ok(None),
        };
    }
    field.read(line).map(Some).map_err(|error| format!("{error}\n"))
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => cx::text::one_line(text),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
