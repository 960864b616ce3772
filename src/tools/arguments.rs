//! Argument checks: a call whose arguments do not match the tool's own schema is not sent.
//!
//! The check is a convenience for a script's author, who gets a message that says what to write
//! instead; the server checks again. So anything that cannot be checked in bounded time is left to
//! the server. A schema that is invalid, too large, too deep or that refers to another document is
//! not compiled ([`ArgumentCheck::compile`] returns the reason). Arguments for which a recursive
//! schema could take too long are passed on unchecked.
//!
//! Supports drafts 4 to 2020-12, selected by `$schema`; the default is 2020-12. Nothing is coerced, but a null in an
//! optional field that does not allow null is left out, because scripts pass `None` and `null` for arguments that they
//! do not set.
//! `format` is not asserted: servers use it as an annotation and disagree on its meaning.
//! `pattern`s are matched in linear time; a pattern that needs look-around or back-references is
//! skipped. Nothing is ever fetched.

mod bounds;
mod explain;
pub(crate) mod partial;
mod render;
mod unchecked;
mod values;
mod work;

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::OnceLock;

use jsonschema::{PatternOptions, Retrieve, Uri, Validator};
use serde_json::{Map, Value};

use self::bounds::Bounds;
use self::explain::explain;
use self::render::preview_text;
use self::values::{count_up_to, pointers_fit};
use super::error::{ToolError, ToolErrorCode};
use super::names::SuggestionBudget;
use super::schema::Schema;
use super::schema::view::SchemaView;

/// Maximum size of a schema that is compiled, in bytes. The largest published ones are a tenth of
/// it. Validating a schema against its meta-schema takes about a millisecond per 10 KB.
const MAX_SCHEMA_BYTES: usize = 256 << 10;

/// Maximum bytes of memory of one compiled pattern. With the default of 10 MB, a schema with many
/// patterns could take gigabytes.
const MAX_PATTERN_BYTES: usize = 256 << 10;

/// Maximum size of a schema whose tree is kept, in bytes: a tree takes some ten times the memory of its text.
const MAX_KEPT_TREE_BYTES: usize = 8 << 10;

/// Arguments with more values than this are checked only up to the first error, because the list of
/// all errors has no bound.
const MAX_VALUES_FOR_ALL_ERRORS: usize = 10_000;

/// Maximum bytes of the JSON pointers of all values, for the same reason: the length of field names has no bound of its
/// own.
const MAX_POINTERS_FOR_ALL_ERRORS: usize = 1 << 20;

/// The message for such arguments if the schema has alternatives.
const TOO_LARGE: &str = "the arguments do not match the tool's schema, and are too large to say where";

/// A compiled input schema. Made once, used for every call.
#[derive(Debug)]
pub(crate) struct ArgumentCheck {
    validator: Validator,
    bounds: Bounds,
    /// Whether the schema has keywords whose errors contain lists of errors.
    has_alternatives: bool,
    schema: Schema,
    /// The schema as a tree, since it was first needed, if it is small.
    small_tree: OnceLock<Value>,
}

impl ArgumentCheck {
    /// Compiles `schema`.
    ///
    /// # Errors
    ///
    /// Why the schema cannot be used for a check, as a fragment for a warning. The tool can be
    /// called nevertheless.
    pub(crate) fn compile(schema: &Schema) -> Result<Self, String> {
        let bytes = schema.text().len();
        if bytes > MAX_SCHEMA_BYTES {
            return Err(format!("it has {bytes} bytes, more than {MAX_SCHEMA_BYTES}"));
        }
        // The parser refuses more than 128 levels.
        let mut value: Value =
            serde_json::from_str(schema.text()).map_err(|error| format!("it cannot be read: {error}"))?;
        let bounds = Bounds::new(&value)?;
        unchecked::leave_out(&mut value);
        let validator = jsonschema::options()
            .with_retriever(NothingFetched)
            .should_validate_formats(false)
            .with_pattern_options(
                PatternOptions::regex().size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES),
            )
            .build(&value)
            .map_err(|error| {
                let location = error.instance_path().as_str();
                let at = if location.is_empty() { String::new() } else { format!("at `{location}`: ") };
                format!("{at}{}", preview_text(&error.masked().to_string()))
            })?;
        Ok(Self {
            validator,
            bounds,
            has_alternatives: has_alternatives(&value),
            schema: schema.clone(),
            small_tree: OnceLock::new(),
        })
    }

    /// Returns `arguments` if they match the schema. Takes ownership because the check needs them
    /// as one value, and a copy would cost more than the check.
    ///
    /// # Errors
    ///
    /// `InvalidArguments` with up to three reasons, always the same ones for the same arguments.
    pub(crate) fn check(&self, arguments: Map<String, Value>) -> Result<Map<String, Value>, ToolError> {
        let mut arguments = Value::Object(arguments);
        if self.allows(&arguments)
            && !self.validator.is_valid(&arguments)
            && !self.leave_out_nulls(&mut arguments)
            && let Some(message) = self.explain(&arguments)
        {
            return Err(ToolError::new(ToolErrorCode::InvalidArguments, message));
        }
        match arguments {
            Value::Object(arguments) => Ok(arguments),
            _ => Ok(Map::new()),
        }
    }

    /// Whether [`check`](Self::check) accepts arguments. Unlike that it does not explain why not.
    pub(crate) fn accepts(&self, arguments: &Value) -> bool {
        !self.allows(arguments)
            || self.validator.is_valid(arguments)
            || self.leave_out_nulls(&mut arguments.clone())
    }

    /// Why a value of any kind does not match the schema; `None` if it does, or if a recursive schema
    /// could take too long.
    pub(crate) fn problem(&self, value: &Value) -> Option<String> {
        let is_valid = !self.allows(value) || self.validator.is_valid(value);
        if is_valid { None } else { self.explain(value) }
    }

    /// An upper bound on the number of schema evaluations that [`accepts`](Self::accepts) takes, as far as it is known
    /// without performing them.
    pub(crate) fn steps(&self, arguments: &Value) -> u64 {
        self.bounds.steps(arguments)
    }

    /// Whether a check of the value takes a bounded time.
    fn allows(&self, value: &Value) -> bool {
        let walk = || work::has_few_steps(SchemaView::root(&self.tree()), value);
        self.bounds.allow(value, walk)
    }

    /// Removes optional fields that are null although the schema does not allow null. Returns whether the arguments are
    /// valid then; otherwise they are unchanged.
    fn leave_out_nulls(&self, arguments: &mut Value) -> bool {
        let Value::Object(fields) = &*arguments else { return false };
        if !fields.values().any(Value::is_null) || !self.may_have_all_errors(arguments) {
            return false;
        }
        let schema = self.tree();
        let required: HashSet<&str> = SchemaView::root(&schema).required().collect();
        let mut without = fields.clone();
        for error in self.validator.iter_errors(arguments) {
            let path = error.instance_path().as_str();
            let Some(name) = path.strip_prefix('/').map(|name| name.replace("~1", "/").replace("~0", "~"))
            else {
                return false;
            };
            if required.contains(&*name) || !fields.get(&name).is_some_and(Value::is_null) {
                return false;
            }
            without.remove(&name);
        }
        let without = Value::Object(without);
        let is_valid = self.validator.is_valid(&without);
        if is_valid {
            *arguments = without;
        }
        is_valid
    }

    fn explain(&self, arguments: &Value) -> Option<String> {
        let errors = if self.may_have_all_errors(arguments) {
            self.validator.iter_errors(arguments).collect()
        } else if self.has_alternatives {
            // The error of a union contains the errors of all its alternatives.
            return (!self.validator.is_valid(arguments)).then(|| TOO_LARGE.to_owned());
        } else {
            vec![self.validator.validate(arguments).err()?]
        };
        let schema = self.tree();
        let budget = SuggestionBudget::of_message();
        (!errors.is_empty()).then(|| explain(errors, SchemaView::root(&schema), &budget))
    }

    /// Whether all errors about the arguments may be collected.
    fn may_have_all_errors(&self, arguments: &Value) -> bool {
        count_up_to(arguments, MAX_VALUES_FOR_ALL_ERRORS).is_some()
            && pointers_fit(arguments, MAX_POINTERS_FOR_ALL_ERRORS)
            && work::has_small_errors(SchemaView::root(&self.tree()), arguments)
    }

    /// The schema as a tree. It is needed for arguments that do not match, and for those with unknown parts or nulls.
    fn tree(&self) -> Cow<'_, Value> {
        match self.schema.text().len() {
            ..=MAX_KEPT_TREE_BYTES => Cow::Borrowed(self.small_tree.get_or_init(|| self.schema.to_value())),
            _ => Cow::Owned(self.schema.to_value()),
        }
    }
}

/// Whether a schema has a union anywhere.
fn has_alternatives(schema: &Value) -> bool {
    match schema {
        Value::Array(items) => items.iter().any(has_alternatives),
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| matches!(name.as_str(), "anyOf" | "oneOf") || has_alternatives(value)),
        _ => false,
    }
}

/// Refuses every reference to another document. The crate is built without its fetching code, but
/// that is a Cargo feature which another crate could enable.
struct NothingFetched;

impl Retrieve for NothingFetched {
    fn retrieve(&self, _uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err("nothing outside of the schema is read".into())
    }
}

#[cfg(test)]
mod tests;
