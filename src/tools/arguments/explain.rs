//! Error messages for invalid arguments, which say what to write instead.

mod alternatives;

use std::collections::BTreeSet;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::{Map, Value};

use super::render::{
    MAX_ALTERNATIVES_DEPTH, MAX_OPTIONS, at, describe, one_of, options_of, path, path_of_field, preview_text,
    preview_value, quoted, type_names,
};
use crate::tools::names::{SuggestionBudget, nearest};
use crate::tools::schema::view::SchemaView;

/// Maximum number of errors in a message. The others are counted.
const MAX_ERRORS: usize = 3;

/// Maximum number of errors that are explained to find the first ones. Explaining one takes time proportional to the
/// number of fields of its schema.
const MAX_EXPLAINED: usize = 100;

/// Maximum number of unknown fields that are compared with the name of a missing one: more are data, and no names that
/// somebody has mistaken.
const MAX_UNKNOWN_FIELDS: usize = 64;

/// The message for `errors`, which must not be empty.
pub(crate) fn explain(
    mut errors: Vec<ValidationError<'_>>,
    schema: SchemaView<'_>,
    budget: &SuggestionBudget,
) -> String {
    let not_explained = errors.len().saturating_sub(MAX_EXPLAINED);
    if not_explained > 0 {
        errors.sort_by(|a, b| location(a).cmp(&location(b)));
        errors.truncate(MAX_EXPLAINED);
    }
    let explanation = Explanation { schema, budget };
    let mut misspelt: BTreeSet<(String, &str)> = BTreeSet::new();
    for error in &errors {
        for unknown in unknown_fields(error) {
            let meant = nearest(unknown, absent_fields(error, schema), budget).into_iter().next();
            misspelt.extend(meant.map(|meant| (path(error.instance_path()), meant)));
        }
    }
    // Sorted by location and text, because the validator's own order depends on how the schema was
    // compiled.
    let mut reasons: BTreeSet<(String, String)> = BTreeSet::new();
    for error in &errors {
        // If a required field is present under a similar name, that is one mistake and is reported
        // once.
        if let Kind::Required { property } = error.kind()
            && let Some(property) = property.as_str()
            && misspelt.contains(&(path(error.instance_path()), property))
        {
            continue;
        }
        for reason in explanation.reasons_of(error, 0) {
            reasons.insert((error.instance_path().as_str().to_owned(), reason));
        }
    }
    let more = not_explained + reasons.len().saturating_sub(MAX_ERRORS);
    let mut message: Vec<String> = reasons.into_iter().take(MAX_ERRORS).map(|(_, reason)| reason).collect();
    if more > 0 {
        message.push(format!("and {more} more"));
    }
    message.join("; ")
}

/// Where an error is in the arguments and in the schema.
fn location<'e>(error: &'e ValidationError<'_>) -> (&'e str, &'e str) {
    (error.instance_path().as_str(), error.schema_path().as_str())
}

/// The inputs for explaining errors.
struct Explanation<'a> {
    schema: SchemaView<'a>,
    budget: &'a SuggestionBudget,
}

impl Explanation<'_> {
    /// The reasons of one error, `above` levels of alternatives deep.
    fn reasons_of(&self, error: &ValidationError<'_>, above: usize) -> Vec<String> {
        let at = || at(&path(error.instance_path()));
        let expected = |what: String| {
            vec![format!("{}expected {what}, found {}", at(), preview_value(error.instance()))]
        };
        let size =
            |what: String| vec![format!("{}expected {what}, found {}", at(), length(error.instance()))];
        match error.kind() {
            Kind::Required { property } => {
                vec![self.missing_field(error, property.as_str().unwrap_or_default())]
            }
            Kind::AdditionalProperties { .. } | Kind::UnevaluatedProperties { .. } => {
                unknown_fields(error).map(|unknown| self.unknown_field(error, unknown)).collect()
            }
            Kind::Type { kind } => expected(one_of(&type_names(kind))),
            Kind::Enum { options } => expected(options_of(options)),
            Kind::Constant { expected_value } => expected(preview_value(expected_value)),
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                match alternatives::meant(error, context).filter(|_| above < MAX_ALTERNATIVES_DEPTH) {
                    Some(errors) => {
                        let errors = errors.iter().take(MAX_EXPLAINED);
                        let reasons = errors.flat_map(|error| self.reasons_of(error, above + 1));
                        reasons.collect::<BTreeSet<_>>().into_iter().take(MAX_ERRORS).collect()
                    }
                    None => vec![alternatives::expected(error, context)],
                }
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
            Kind::Pattern { pattern } => {
                expected(format!("a string that matches `{}`", preview_text(pattern)))
            }
            Kind::PropertyNames { error: inner } => {
                let reasons = self.reasons_of(inner, above + 1);
                vec![format!("{}a field's name is not allowed: {}", at(), reasons.join("; "))]
            }
            Kind::FalseSchema => vec![format!("{}must not be given", at())],
            Kind::Not { .. } => vec![format!("{}{} is not allowed", at(), preview_value(error.instance()))],
            _ => {
                let found = preview_value(error.instance());
                vec![format!("{}is refused by `{}`, found {found}", at(), error.kind().keyword())]
            }
        }
    }

    /// The reason of an error about a required field that is absent.
    fn missing_field(&self, error: &ValidationError<'_>, name: &str) -> String {
        let parent = parent_schema(error, self.schema);
        let declared = |name: &str| parent.and_then(|parent| parent.property(name));
        let what = match declared(name).map(describe) {
            Some(what) if !what.is_empty() => format!(" ({what})"),
            _ => String::new(),
        };
        let others = error.instance().as_object().into_iter().flat_map(Map::keys).map(String::as_str);
        let unknown: Vec<&str> =
            others.filter(|other| declared(other).is_none()).take(MAX_UNKNOWN_FIELDS).collect();
        let meant = match unknown[..] {
            // The only one is what was meant, whatever it is called.
            [single] if declared(name).is_some() => Some(single),
            _ => nearest(name, unknown.iter().copied(), self.budget).first().copied(),
        };
        let hint = meant.map_or_else(String::new, |meant| {
            format!("; there is an unknown field {}, is it meant?", quoted(meant))
        });
        format!("missing `{}`{what}{hint}", path_of_field(error.instance_path(), name))
    }

    /// The reason of an error about a field that is not allowed.
    fn unknown_field(&self, error: &ValidationError<'_>, unknown: &str) -> String {
        // One more than a message names, to detect that there are more.
        let declared: Vec<&str> = declared_fields(error, self.schema).take(MAX_OPTIONS + 1).collect();
        let hint = match nearest(unknown, absent_fields(error, self.schema), self.budget).first() {
            Some(meant) => format!("; did you mean {}?", quoted(meant)),
            None if declared.is_empty() => "; there are no fields here".to_owned(),
            None if declared.len() <= MAX_OPTIONS => {
                let names: Vec<String> = declared.into_iter().map(quoted).collect();
                format!("; the fields are {}", names.join(", "))
            }
            None => String::new(),
        };
        format!("unknown field `{}`{hint}", path_of_field(error.instance_path(), unknown))
    }
}

/// The number of characters, items or fields.
fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        _ => 0,
    }
}

/// The fields of an error about fields that are not allowed; the first ones, if there are many.
fn unknown_fields<'a>(error: &'a ValidationError<'_>) -> impl Iterator<Item = &'a str> {
    let names: &[String] = match error.kind() {
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => unexpected,
        _ => &[],
    };
    names.iter().take(MAX_OPTIONS).map(String::as_str)
}

/// The schema object that contains the failed keyword.
fn parent_schema<'a>(error: &ValidationError<'_>, schema: SchemaView<'a>) -> Option<SchemaView<'a>> {
    let keyword = error.schema_path().as_str();
    schema.at_pointer(keyword.rsplit_once('/')?.0)
}

/// The names of the fields that the schema of the failed object declares.
fn declared_fields<'a>(
    error: &ValidationError<'_>,
    schema: SchemaView<'a>,
) -> impl Iterator<Item = &'a str> + use<'a> {
    parent_schema(error, schema).into_iter().flat_map(SchemaView::properties).map(|(name, _)| name)
}

/// The names of those fields that the failed object does not have.
fn absent_fields<'a>(error: &ValidationError<'_>, schema: SchemaView<'a>) -> impl Iterator<Item = &'a str> {
    let present = error.instance().as_object();
    let is_absent = move |name: &&str| present.is_none_or(|fields| !fields.contains_key(*name));
    declared_fields(error, schema).filter(is_absent)
}
