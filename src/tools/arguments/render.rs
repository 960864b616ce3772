//! Renders values, names and schemas for error messages: short, on one line, with invisible characters escaped.

use jsonschema::JsonType;
use jsonschema::error::TypeKind;
use jsonschema::paths::{Location, LocationSegment};
use serde_json::Value;

use crate::text::{self, visible, visible_preview};
use crate::tools::schema::view::SchemaView;

/// Maximum number of allowed values in a message.
pub(crate) const MAX_OPTIONS: usize = 10;

/// Maximum characters of a value or a name in a message. Arguments can be secrets, and megabytes
/// long.
const MAX_PREVIEW: usize = 60;

/// Maximum depth of nested alternatives that are described or explained.
pub(crate) const MAX_ALTERNATIVES_DEPTH: usize = 8;

/// The start of a text.
pub(crate) fn preview_text(text: &str) -> String {
    visible_preview(text, MAX_PREVIEW)
}

/// A value as shortened JSON; for a container only its kind.
pub(crate) fn preview_value(value: &Value) -> String {
    match value {
        Value::Array(items) => match items.len() {
            0 => "an empty array".to_owned(),
            1 => "an array of 1 item".to_owned(),
            items => format!("an array of {items} items"),
        },
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) => {
            let start = text::start(text, MAX_PREVIEW);
            let ellipsis = if start.len() < text.len() { "…" } else { "" };
            format!("{}{ellipsis}", visible(&Value::from(start).to_string()))
        }
        _ => preview_text(&value.to_string()),
    }
}

/// A name in backticks.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", preview_text(name))
}

/// The prefix of a message about an error at the location.
pub(crate) fn at(location: &str) -> String {
    if location.is_empty() { "the arguments: ".to_owned() } else { format!("`{location}`: ") }
}

/// The location as a path, such as `paths[2].encoding`. Empty for the arguments as a whole.
pub(crate) fn path(location: &Location) -> String {
    let mut text = String::new();
    for segment in location.segments() {
        match segment {
            LocationSegment::Property(name) => push_field(&mut text, &name),
            LocationSegment::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

/// The path of the field `name` of the object at the location.
pub(crate) fn path_of_field(location: &Location, name: &str) -> String {
    let mut text = path(location);
    push_field(&mut text, name);
    text
}

fn push_field(path: &mut String, name: &str) {
    let name = preview_text(name);
    if name.is_empty()
        || name.chars().any(|character| !character.is_alphanumeric() && !"_-$…".contains(character))
    {
        path.push_str(&format!("[{}]", Value::from(name)));
    } else {
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(&name);
    }
}

/// A short description of what a schema requires: `a string`, `"utf8" or "base64"`. Empty if it requires nothing
/// specific.
pub(crate) fn describe(schema: SchemaView<'_>) -> String {
    describe_below(schema, 0)
}

fn describe_below(schema: SchemaView<'_>, above: usize) -> String {
    if above > MAX_ALTERNATIVES_DEPTH {
        return String::new();
    }
    match schema.reference() {
        Ok(Some(target)) => return describe_below(target, above + 1),
        Err(_) => return String::new(),
        Ok(None) => {}
    }
    if let Some(options) = schema.get("enum") {
        return options_of(options);
    }
    if let Some(value) = schema.get("const") {
        return preview_value(value);
    }
    let types = schema.declared_types();
    if !types.is_empty() {
        return one_of(&types.into_iter().map(type_name).collect::<Vec<_>>());
    }
    let mut wanted: Vec<String> = Vec::new();
    for alternative in schema.unions().next().into_iter().flatten().take(MAX_OPTIONS) {
        let what = describe_below(alternative, above + 1);
        if what.is_empty() {
            return String::new();
        }
        if !wanted.contains(&what) {
            wanted.push(what);
        }
    }
    one_of(&wanted)
}

/// The names of types with an article.
pub(crate) fn type_names(kind: &TypeKind) -> Vec<&'static str> {
    match kind {
        TypeKind::Single(name) => vec![type_name(name.as_str())],
        TypeKind::Multiple(names) => {
            let all = [
                JsonType::String,
                JsonType::Integer,
                JsonType::Number,
                JsonType::Boolean,
                JsonType::Array,
                JsonType::Object,
                JsonType::Null,
            ];
            let names = all.into_iter().filter(|name| names.contains(*name));
            names.map(|name| type_name(name.as_str())).collect()
        }
    }
}

fn type_name(name: &str) -> &'static str {
    match name {
        "string" => "a string",
        "integer" => "an integer",
        "number" => "a number",
        "boolean" => "a boolean",
        "array" => "an array",
        "object" => "an object",
        "null" => "null",
        _ => "another type",
    }
}

/// The values of an `enum`.
pub(crate) fn options_of(options: &Value) -> String {
    let Some(options) = options.as_array() else {
        return preview_value(options);
    };
    let named: Vec<String> = options.iter().take(MAX_OPTIONS).map(preview_value).collect();
    match options.len().saturating_sub(MAX_OPTIONS) {
        0 => one_of(&named),
        more => format!("one of {} or {more} more", named.join(", ")),
    }
}

/// The names as `a, b or c`.
pub(crate) fn one_of(names: &[impl AsRef<str>]) -> String {
    match names {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} or {}", first.join(", "), last.as_ref())
        }
    }
}
