//! Error messages for invalid arguments, which say what to write instead.

use std::collections::BTreeSet;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{JsonType, ValidationError};
use serde_json::{Map, Value};

use super::bounds::resolve;
use crate::text::{preview, visible};
use crate::tools::names::nearest;

/// Maximum number of errors in a message. The others are counted.
const MAX_ERRORS: usize = 3;

/// Maximum number of allowed values in a message.
const MAX_OPTIONS: usize = 10;

/// Maximum characters shown of a value or a name. Arguments can be secrets, and megabytes long.
const MAX_SHOWN: usize = 60;

/// Maximum depth of nested alternatives that are explained.
const MAX_BRANCHES_DEEP: usize = 8;

/// The message for `errors`, which must not be empty.
pub(super) fn explain(errors: &[ValidationError<'_>], schema: &Value, arguments: &Value) -> String {
    // Sorted by location and text, because the validator's own order depends on how the schema was
    // compiled.
    let mut reasons: BTreeSet<(String, String)> = BTreeSet::new();
    let mut misspelt: BTreeSet<(String, String)> = BTreeSet::new();
    for error in errors {
        let place = path(error.instance_path());
        for unknown in unknown_fields(error) {
            let known = known_fields(error, schema);
            let present = error.instance().as_object();
            let absent =
                known.iter().copied().filter(|name| present.is_none_or(|fields| !fields.contains_key(*name)));
            if let Some(meant) = nearest(unknown, absent).first() {
                misspelt.insert((place.clone(), (*meant).to_owned()));
            }
        }
    }
    for error in errors {
        // If a required field is present under a similar name, that is one mistake and is reported
        // once.
        if let ValidationErrorKind::Required { property } = error.kind()
            && let Some(property) = property.as_str()
            && misspelt.contains(&(path(error.instance_path()), property.to_owned()))
        {
            continue;
        }
        for reason in reasons_of(error, schema, arguments, 0) {
            reasons.insert((error.instance_path().as_str().to_owned(), reason));
        }
    }
    let more = reasons.len().saturating_sub(MAX_ERRORS);
    let mut message: Vec<String> = reasons.into_iter().take(MAX_ERRORS).map(|(_, reason)| reason).collect();
    if more > 0 {
        message.push(format!("and {more} more"));
    }
    message.join("; ")
}

fn reasons_of(error: &ValidationError<'_>, schema: &Value, arguments: &Value, above: usize) -> Vec<String> {
    let found = || format!("found {}", shown(error.instance()));
    let at = || match path(error.instance_path()).as_str() {
        "" => "the arguments: ".to_owned(),
        path => format!("`{path}`: "),
    };
    let expected = |what: String| vec![format!("{}expected {what}, {}", at(), found())];
    let length = || {
        let length = match error.instance().as_ref() {
            Value::String(text) => text.chars().count(),
            Value::Array(items) => items.len(),
            Value::Object(fields) => fields.len(),
            _ => 0,
        };
        format!("found {length}")
    };
    let size = |what: String| vec![format!("{}expected {what}, {}", at(), length())];
    use ValidationErrorKind as Kind;
    match error.kind() {
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let parent = parent_schema(error, schema);
            let what = parent
                .and_then(|parent| parent.get("properties"))
                .and_then(|properties| properties.get(name))
                .map(|property| describe(property, schema, 0))
                .filter(|what| !what.is_empty())
                .map_or_else(String::new, |what| format!(" ({what})"));
            let known = known_fields(error, schema);
            let others = error.instance().as_object().into_iter().flat_map(Map::keys).map(String::as_str);
            let near = nearest(name, others.filter(|other| !known.contains(other)));
            let hint = near.first().map_or_else(String::new, |near| {
                format!("; there is an unknown field {}, is it meant?", quoted(near))
            });
            vec![format!("missing `{}`{what}{hint}", inside(error.instance_path(), name))]
        }
        Kind::AdditionalProperties { .. } | Kind::UnevaluatedProperties { .. } => {
            let known = known_fields(error, schema);
            let present = error.instance().as_object();
            let absent = || {
                known.iter().copied().filter(|name| present.is_none_or(|fields| !fields.contains_key(*name)))
            };
            let hint = |unknown: &str| match nearest(unknown, absent()).first() {
                Some(meant) => format!("; did you mean {}?", quoted(meant)),
                None if known.is_empty() => "; there are no fields here".to_owned(),
                None if known.len() <= MAX_OPTIONS => {
                    let names: Vec<String> = known.iter().map(|name| quoted(name)).collect();
                    format!("; the fields are {}", names.join(", "))
                }
                None => String::new(),
            };
            unknown_fields(error)
                .map(|unknown| {
                    format!("unknown field `{}`{}", inside(error.instance_path(), unknown), hint(unknown))
                })
                .collect()
        }
        Kind::Type { kind } => expected(one_of(&type_names(kind))),
        Kind::Enum { options } => expected(options_of(options)),
        Kind::Constant { expected_value } => expected(shown(expected_value)),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            alternatives(error, context, schema, arguments, above)
        }
        Kind::OneOfMultipleValid { .. } => vec![format!(
            "{}fits several of the allowed forms and may fit only one; leave out fields of the others",
            at()
        )],
        Kind::Minimum { limit } => expected(format!("a number of at least {limit}")),
        Kind::Maximum { limit } => expected(format!("a number of at most {limit}")),
        Kind::ExclusiveMinimum { limit } => expected(format!("a number greater than {limit}")),
        Kind::ExclusiveMaximum { limit } => expected(format!("a number less than {limit}")),
        Kind::MultipleOf { multiple_of } => expected(format!("a multiple of {multiple_of}")),
        Kind::MinLength { limit } => size(format!("at least {limit} characters")),
        Kind::MaxLength { limit } => size(format!("at most {limit} characters")),
        Kind::MinItems { limit } => size(format!("at least {limit} items")),
        Kind::MaxItems { limit } => size(format!("at most {limit} items")),
        Kind::AdditionalItems { limit } => size(format!("at most {limit} items")),
        Kind::UnevaluatedItems { .. } => vec![format!("{}has more items than are allowed", at())],
        Kind::MinProperties { limit } => size(format!("at least {limit} fields")),
        Kind::MaxProperties { limit } => size(format!("at most {limit} fields")),
        Kind::UniqueItems => vec![format!("{}the items must differ from one another", at())],
        Kind::Contains => vec![format!("{}none of the items is what one of them must be", at())],
        Kind::Pattern { pattern } => expected(format!("a string that matches `{}`", shortened(pattern))),
        Kind::PropertyNames { error: inner } => {
            let reasons = reasons_of(inner, schema, arguments, above + 1);
            vec![format!("{}a field's name is not allowed: {}", at(), reasons.join("; "))]
        }
        Kind::FalseSchema => vec![format!("{}must not be given", at())],
        Kind::Not { .. } => vec![format!("{}{} is not allowed", at(), shown(error.instance()))],
        _ => vec![format!("{}is refused by `{}`, {}", at(), error.kind().keyword(), found())],
    }
}

/// Explains the alternative that was meant, or lists all of them.
fn alternatives(
    error: &ValidationError<'_>,
    branches: &[Vec<ValidationError<'static>>],
    schema: &Value,
    arguments: &Value,
    above: usize,
) -> Vec<String> {
    let here = depth_of(error.instance_path());
    // A branch was not meant if it requires another type, or another value of a field that
    // distinguishes the branches.
    let meant = |branch: &&Vec<ValidationError<'static>>| {
        !branch.is_empty()
            && !branch.iter().any(|error| match error.kind() {
                ValidationErrorKind::Type { .. } | ValidationErrorKind::FalseSchema => {
                    depth_of(error.instance_path()) == here
                }
                ValidationErrorKind::Constant { .. } | ValidationErrorKind::Enum { .. } => {
                    depth_of(error.instance_path()) <= here + 1
                }
                _ => false,
            })
    };
    let nearest = branches.iter().filter(meant).min_by_key(|branch| branch.len());
    if let Some(branch) = nearest
        && above < MAX_BRANCHES_DEEP
    {
        let mut reasons: Vec<String> = branch
            .iter()
            .flat_map(|error| reasons_of(error, schema, arguments, above + 1))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        reasons.truncate(MAX_ERRORS);
        return reasons;
    }
    // The tag that all branches require, if there is one: `kind`: expected "a" or "b".
    let mut tags: Vec<(String, String, String)> = Vec::new();
    let mut types: Vec<String> = Vec::new();
    for error in branches.iter().flatten() {
        let options = match error.kind() {
            ValidationErrorKind::Constant { expected_value } => shown(expected_value),
            ValidationErrorKind::Enum { options } => options_of(options),
            ValidationErrorKind::Type { kind } if depth_of(error.instance_path()) == here => {
                for name in type_names(kind) {
                    if !types.contains(&name) {
                        types.push(name);
                    }
                }
                continue;
            }
            _ => continue,
        };
        let place = path(error.instance_path());
        if !tags.iter().any(|(tag, known, _)| *tag == place && *known == options) {
            tags.push((place, options, shown(error.instance())));
        }
    }
    if let Some((place, _, found)) = tags.first().cloned()
        && (types.is_empty() || depth_of(error.instance_path()) < tag_depth(branches))
    {
        let same: Vec<String> =
            tags.iter().filter(|(tag, _, _)| *tag == place).map(|(_, options, _)| options.clone()).collect();
        return vec![format!("`{place}`: expected {}, found {found}", one_of(&same))];
    }
    let mut wanted = types;
    let place = path(error.instance_path());
    wanted.extend(tags.into_iter().filter(|(tag, _, _)| *tag == place).map(|(_, options, _)| options));
    let wanted =
        if wanted.is_empty() { format!("one of {} allowed forms", branches.len()) } else { one_of(&wanted) };
    let at = if place.is_empty() { "the arguments: ".to_owned() } else { format!("`{place}`: ") };
    vec![format!("{at}expected {wanted}, found {}", shown(error.instance()))]
}

/// The depth of the deepest error about a constant.
fn tag_depth(branches: &[Vec<ValidationError<'static>>]) -> usize {
    branches
        .iter()
        .flatten()
        .filter(|error| {
            matches!(error.kind(), ValidationErrorKind::Constant { .. } | ValidationErrorKind::Enum { .. })
        })
        .map(|error| depth_of(error.instance_path()))
        .max()
        .unwrap_or(0)
}

fn depth_of(location: &Location) -> usize {
    location.segments().count()
}

fn unknown_fields<'a>(error: &'a ValidationError<'_>) -> impl Iterator<Item = &'a str> {
    let names: &[String] = match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => unexpected,
        _ => &[],
    };
    names.iter().take(MAX_OPTIONS).map(String::as_str)
}

/// The schema object that contains the failed keyword.
fn parent_schema<'a>(error: &ValidationError<'_>, schema: &'a Value) -> Option<&'a Value> {
    let keyword = error.schema_path().as_str();
    schema.pointer(keyword.rsplit_once('/')?.0)
}

/// The fields that the schema of the failed object declares.
fn known_fields<'a>(error: &ValidationError<'_>, schema: &'a Value) -> Vec<&'a str> {
    let properties = parent_schema(error, schema).and_then(|parent| parent.get("properties"));
    properties.and_then(Value::as_object).into_iter().flat_map(Map::keys).map(String::as_str).collect()
}

/// The location as a path, such as `paths[2].encoding`.
fn path(location: &Location) -> String {
    let mut text = String::new();
    for segment in location.segments() {
        match segment {
            LocationSegment::Property(name) => push_field(&mut text, &name),
            LocationSegment::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

fn inside(location: &Location, name: &str) -> String {
    let mut text = path(location);
    push_field(&mut text, name);
    text
}

fn push_field(path: &mut String, name: &str) {
    let name = shortened(name);
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

fn quoted(name: &str) -> String {
    format!("`{}`", shortened(name))
}

/// What a schema requires, in a few words: `a string`, `"utf8" or "base64"`. Empty if it requires
/// nothing in particular.
fn describe(schema: &Value, root: &Value, above: usize) -> String {
    if above > MAX_BRANCHES_DEEP {
        return String::new();
    }
    if let Some(target) =
        schema.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix('#'))
    {
        return resolve(root, target).map_or_else(String::new, |target| describe(target, root, above + 1));
    }
    if let Some(options) = schema.get("enum") {
        return options_of(options);
    }
    if let Some(value) = schema.get("const") {
        return shown(value);
    }
    match schema.get("type") {
        Some(Value::String(name)) => type_name(name).to_owned(),
        Some(Value::Array(names)) => one_of(
            &names
                .iter()
                .filter_map(Value::as_str)
                .map(|name| type_name(name).to_owned())
                .collect::<Vec<_>>(),
        ),
        _ => {
            let branches = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array);
            let mut wanted: Vec<String> = Vec::new();
            for branch in branches.into_iter().flatten().take(MAX_OPTIONS) {
                let what = describe(branch, root, above + 1);
                if what.is_empty() {
                    return String::new();
                }
                if !wanted.contains(&what) {
                    wanted.push(what);
                }
            }
            one_of(&wanted)
        }
    }
}

fn type_names(kind: &TypeKind) -> Vec<String> {
    match kind {
        TypeKind::Single(name) => vec![type_name(name.as_str()).to_owned()],
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
            names.map(|name| type_name(name.as_str()).to_owned()).collect()
        }
    }
}

/// A type's name with an article. An unknown name from a server is returned unchanged; the caller
/// shortens it.
fn type_name(name: &str) -> &str {
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

fn options_of(options: &Value) -> String {
    let Some(options) = options.as_array() else {
        return shown(options);
    };
    let named: Vec<String> = options.iter().take(MAX_OPTIONS).map(shown).collect();
    match options.len().saturating_sub(MAX_OPTIONS) {
        0 => one_of(&named),
        more => format!("one of {} or {more} more", named.join(", ")),
    }
}

/// The names as `a, b or c`.
fn one_of(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// A value as shortened JSON; for a container only its kind.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) => match items.len() {
            0 => "an empty array".to_owned(),
            1 => "an array of 1 item".to_owned(),
            items => format!("an array of {items} items"),
        },
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) => {
            let start: String = text.chars().take(MAX_SHOWN).collect();
            let ellipsis = if start.len() < text.len() { "…" } else { "" };
            format!("{}{ellipsis}", visible(&Value::from(start).to_string()))
        }
        _ => shortened(&value.to_string()),
    }
}

/// The start of a text, on one line and with invisible characters escaped.
pub(super) fn shortened(text: &str) -> String {
    visible(&preview(text, MAX_SHOWN))
}
