//! Argument checks: a call that the tool's own schema refuses never leaves for the server.
//!
//! The check is a convenience for the author of a script, who gets a message that says what to write instead;
//! the server checks again. So whatever cannot be checked in bounded time is left to the server: a schema that is
//! broken, too large, too deep or that refers to anything outside itself has no check
//! ([`ArgumentCheck::compile`] says why), and arguments for which a recursive schema could take too long pass.
//!
//! Drafts 4 to 2020-12 by `$schema`, 2020-12 without. Nothing is coerced. `format` is not asserted: servers write
//! it as a remark and disagree on what it means. `pattern`s run in linear time; one that needs look-around or
//! back-references is skipped. Nothing is ever fetched.

mod bounds;
mod explain;

use jsonschema::{PatternOptions, Retrieve, Uri, Validator};
use serde_json::{Map, Value};

use self::bounds::Bounds;
pub(super) use self::bounds::resolve;
use super::{Schema, ToolError, ToolErrorCode};

/// The longest schema that is compiled, in bytes. The largest of published servers have a tenth of it; checking a
/// schema against its meta-schema costs about a millisecond for each 10 KB.
const MAX_SCHEMA_BYTES: usize = 256 << 10;

/// What one compiled pattern may take, in bytes. The default of 10 MB would let a schema of many take gigabytes.
const MAX_PATTERN_BYTES: usize = 256 << 10;

/// Arguments with more values than this are checked up to the first error: the list of all of them has no bound.
const MAX_VALUES_FOR_ALL_ERRORS: usize = 10_000;

/// A tool's input schema, compiled. Made once, used for every call.
#[derive(Debug)]
pub(crate) struct ArgumentCheck {
    validator: Validator,
    bounds: Bounds,
    /// Parsed again only to explain a refusal.
    schema: Schema,
}

impl ArgumentCheck {
    /// Compiles `schema`.
    ///
    /// # Errors
    ///
    /// Why there can be no check, as a fragment for a warning. The tool can be called nevertheless.
    pub(crate) fn compile(schema: &Schema) -> Result<Self, String> {
        let bytes = schema.text().len();
        if bytes > MAX_SCHEMA_BYTES {
            return Err(format!("it has {bytes} bytes, more than {MAX_SCHEMA_BYTES}"));
        }
        // The parser refuses more than 128 levels.
        let mut value: Value =
            serde_json::from_str(schema.text()).map_err(|error| format!("it cannot be read: {error}"))?;
        let bounds = Bounds::of(&value)?;
        bounds::leave_out_unchecked(&mut value);
        let validator = jsonschema::options()
            .with_retriever(NothingFetched)
            .should_validate_formats(false)
            .with_pattern_options(
                PatternOptions::regex().size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES),
            )
            .build(&value)
            .map_err(|error| {
                let place = error.instance_path().as_str();
                let place = if place.is_empty() { String::new() } else { format!("at `{place}`: ") };
                format!("{place}{}", explain::shortened(&error.masked().to_string()))
            })?;
        Ok(Self { validator, bounds, schema: schema.clone() })
    }

    /// Gives `arguments` back if the schema allows them. Takes them because the check needs them as one value, and
    /// a copy of them would cost more than the check.
    ///
    /// # Errors
    ///
    /// `InvalidArguments` with up to three of the reasons, always the same ones for the same arguments.
    pub(crate) fn check(&self, arguments: Map<String, Value>) -> Result<Map<String, Value>, ToolError> {
        let arguments = Value::Object(arguments);
        if self.bounds.allow(&arguments)
            && !self.validator.is_valid(&arguments)
            && let Some(message) = self.explain(&arguments)
        {
            return Err(ToolError::new(ToolErrorCode::InvalidArguments, message));
        }
        match arguments {
            Value::Object(arguments) => Ok(arguments),
            _ => Ok(Map::new()),
        }
    }

    fn explain(&self, arguments: &Value) -> Option<String> {
        let errors = if bounds::values_up_to(arguments, MAX_VALUES_FOR_ALL_ERRORS).is_some() {
            self.validator.iter_errors(arguments).collect()
        } else {
            vec![self.validator.validate(arguments).err()?]
        };
        // The text is the one that was compiled, so it can be read.
        let schema = self.schema.to_value();
        (!errors.is_empty()).then(|| explain::explain(&errors, &schema, arguments))
    }
}

/// Refuses every reference to another document. The crate is built without the code that fetches, but that is a
/// feature which another crate could turn on.
struct NothingFetched;

impl Retrieve for NothingFetched {
    fn retrieve(&self, _uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err("nothing outside of the schema is read".into())
    }
}

#[cfg(test)]
mod tests;
