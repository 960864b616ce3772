//! Sample values: what a dry run returns to a script for a call that is not made.
//!
//! Generated from the tool's output schema, or from its inferred one. Always the same for the same
//! schema, of bounded size, and marked: strings are [`MARK`]. A sample has the fields that a script
//! reads; it need not satisfy every keyword of the schema.

use serde_json::{Map, Value, json};

use super::arguments::resolve;

/// The value of every sample string, and the key of the object that stands for an unknown value.
pub(crate) const MARK: &str = "dry run";

/// Maximum levels of a sample, with references followed.
const MAX_DEPTH: usize = 16;

/// Maximum number of values in one sample. References can double the number at every level.
const MAX_VALUES: usize = 1_000;

/// Maximum bytes of a constant, an example or a default that is copied. With [`MAX_VALUES`] of
/// them, 4 MB.
const MAX_CONSTANT_BYTES: usize = 4_000;

/// Maximum elements of an array, and characters of a string, that a schema can require.
const MAX_ELEMENTS: u64 = 10;
const MAX_CHARACTERS: u64 = 1_000;

/// A sample value for `schema`. Without a schema, an object that only says that this is a dry run.
pub(crate) fn of_schema(schema: Option<&Value>) -> Value {
    match schema {
        Some(schema) => Sampler { root: schema, values_left: MAX_VALUES }.value(schema, 0),
        None => unknown(),
    }
}

fn unknown() -> Value {
    json!({ MARK: true })
}

struct Sampler<'a> {
    root: &'a Value,
    values_left: usize,
}

impl Sampler<'_> {
    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        let Some(left) = self.values_left.checked_sub(1).filter(|_| depth < MAX_DEPTH) else {
            return Value::Null;
        };
        self.values_left = left;
        let Some(fields) = schema.as_object() else { return unknown() };
        if let Some(constant) = constant(fields) {
            return constant;
        }
        if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
            let root = self.root;
            let found = reference.strip_prefix('#').and_then(|pointer| resolve(root, pointer));
            return found.map_or_else(unknown, |found| self.value(found, depth + 1));
        }
        for union in ["anyOf", "oneOf"] {
            let listed = fields.get(union).and_then(Value::as_array);
            // A script is more likely to read the alternative that is not null.
            let is_null = |schema: &&Value| {
                schema["type"] == "null" || schema["const"].is_null() && schema.get("const").is_some()
            };
            if let Some(first) = listed.and_then(|all| all.iter().find(|one| !is_null(one)).or(all.first()))
                && !fields.contains_key("properties")
            {
                return self.value(first, depth + 1);
            }
        }
        match kind(fields) {
            Some("object") => self.object(fields, depth),
            Some("array") => self.array(fields, depth),
            Some("string") => Value::String(text(fields)),
            Some("integer" | "number") => number(fields),
            Some("boolean") => Value::Bool(true),
            Some("null") => Value::Null,
            _ => unknown(),
        }
    }

    fn object(&mut self, fields: &Map<String, Value>, depth: usize) -> Value {
        let mut object = Map::new();
        // Each part of `allOf` adds its own fields.
        for part in fields.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            if let Value::Object(more) = self.value(part, depth + 1) {
                object.extend(more.into_iter().filter(|(name, _)| name != MARK));
            }
        }
        for (name, schema) in fields.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if self.values_left == 0 {
                break;
            }
            object.insert(name.clone(), self.value(schema, depth + 1));
        }
        if object.is_empty()
            && let Some(values) = fields.get("additionalProperties").filter(|values| values.is_object())
        {
            object.insert(MARK.to_owned(), self.value(values, depth + 1));
        }
        if object.is_empty() { unknown() } else { Value::Object(object) }
    }

    fn array(&mut self, fields: &Map<String, Value>, depth: usize) -> Value {
        let mut items = Vec::new();
        let tuple = fields.get("prefixItems").or_else(|| fields.get("items")).and_then(Value::as_array);
        for schema in tuple.into_iter().flatten() {
            if self.values_left == 0 {
                break;
            }
            items.push(self.value(schema, depth + 1));
        }
        let bound = |name: &str| fields.get(name).and_then(Value::as_u64);
        let wanted =
            bound("minItems").unwrap_or(1).clamp(1, MAX_ELEMENTS).min(bound("maxItems").unwrap_or(u64::MAX));
        let element = fields.get("items").filter(|items| items.is_object());
        if tuple.is_none() && element.is_none() {
            return Value::Array(items);
        }
        while let Some(element) = element
            && (items.len() as u64) < wanted
            && self.values_left > 0
        {
            items.push(self.value(element, depth + 1));
        }
        Value::Array(items)
    }
}

/// The first value of `const`, `enum`, `default` and `examples`, in this order, that is not too
/// long.
fn constant(fields: &Map<String, Value>) -> Option<Value> {
    let listed = |name: &str| fields.get(name).and_then(Value::as_array).into_iter().flatten();
    let named = fields.get("const").into_iter();
    let mut named = named.chain(listed("enum")).chain(fields.get("default")).chain(listed("examples"));
    named.find(|value| is_short(value)).cloned()
}

fn is_short(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() <= MAX_CONSTANT_BYTES,
        Value::Array(_) | Value::Object(_) => value.to_string().len() <= MAX_CONSTANT_BYTES,
        _ => true,
    }
}

/// The type, or the type that the keywords imply. If several are listed, the first; if that is
/// null, the second.
fn kind(fields: &Map<String, Value>) -> Option<&str> {
    match fields.get("type") {
        Some(Value::String(name)) => Some(name),
        Some(Value::Array(names)) => {
            let mut names = names.iter().filter_map(Value::as_str);
            let first = names.next();
            if first == Some("null") { names.next().or(first) } else { first }
        }
        _ if ["properties", "additionalProperties", "allOf"]
            .iter()
            .any(|name| fields.contains_key(*name)) =>
        {
            Some("object")
        }
        _ if ["items", "prefixItems"].iter().any(|name| fields.contains_key(*name)) => Some("array"),
        _ => None,
    }
}

fn text(fields: &Map<String, Value>) -> String {
    let formatted = match fields.get("format").and_then(Value::as_str) {
        Some("date-time") => "2000-01-01T00:00:00Z",
        Some("date") => "2000-01-01",
        Some("time") => "00:00:00Z",
        Some("duration") => "PT1S",
        Some("email") => "dry-run@example.com",
        Some("hostname") => "dry-run.example.com",
        Some("uri" | "url" | "iri") => "https://example.com/dry-run",
        Some("uuid") => "00000000-0000-4000-8000-000000000000",
        Some("ipv4") => "192.0.2.1",
        Some("ipv6") => "2001:db8::1",
        _ => {
            let bound = |name: &str| fields.get(name).and_then(Value::as_u64);
            let least = bound("minLength").unwrap_or(0).min(MAX_CHARACTERS);
            let most = bound("maxLength").unwrap_or(u64::MAX).max(least);
            let wanted = least.max(MARK.len() as u64).min(most);
            return MARK.chars().cycle().take(usize::try_from(wanted).unwrap_or(MARK.len())).collect();
        }
    };
    formatted.to_owned()
}

/// One, or the nearest number within the bounds, rounded up to a multiple of `multipleOf`.
fn number(fields: &Map<String, Value>) -> Value {
    let bound = |name: &str| fields.get(name).and_then(Value::as_f64);
    let is_whole = fields.get("type").is_some_and(|name| name == "integer");
    let least = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|bound| bound + 1.0));
    let most = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|bound| bound - 1.0));
    let mut sample = 1.0_f64.max(least.unwrap_or(f64::MIN)).min(most.unwrap_or(f64::MAX));
    if let Some(step) = bound("multipleOf").filter(|step| *step > 0.0) {
        sample = (sample / step).ceil() * step;
    }
    // Beyond 2^53 a double cannot represent every integer, and scripts could not tell the
    // difference.
    if (is_whole || sample.fract() == 0.0) && sample.abs() < 9_007_199_254_740_992.0 {
        #[expect(clippy::cast_possible_truncation, reason = "it is within 53 bits")]
        return Value::from(sample.ceil() as i64);
    }
    serde_json::Number::from_f64(sample).map_or(Value::from(1), Value::Number)
}

#[cfg(test)]
mod tests;
