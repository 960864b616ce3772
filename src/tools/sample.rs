//! Sample values: what a dry run returns to a script for a call that is not made.
//!
//! Generated from the tool's output schema, or from its inferred one. Always the same for the same
//! schema, of bounded size, and marked: strings are [`MARK`]. A sample has the fields that a script
//! reads; it need not satisfy every keyword of the schema.

use serde_json::{Map, Value, json};

use super::schema::view::{Limit, SchemaView};

/// The value of every sample string, and the key of the object that stands for an unknown value.
pub(crate) const MARK: &str = "dry run";

/// Maximum levels of a sample, with references followed.
const MAX_DEPTH: usize = 16;

/// Maximum number of values in one sample. References can double the number at every level.
const MAX_VALUES: usize = 1_000;

/// Maximum bytes of a constant, an example or a default that is copied. With [`MAX_VALUES`] of
/// them, 4 MB.
const MAX_CONSTANT_BYTES: usize = 4_000;

/// Maximum number of the constants and examples of a schema that are tried. References can use the same schema again
/// for each value.
const MAX_CONSTANTS: usize = 8;

/// Maximum elements of an array, and characters of a string, that a schema can require.
const MAX_ELEMENTS: u64 = 10;
const MAX_CHARACTERS: u64 = 1_000;

/// A sample value for `schema`. Without a schema, an object that only says that this is a dry run.
pub(crate) fn from_schema(schema: Option<&Value>) -> Value {
    match schema {
        Some(schema) => Sampler { values_left: MAX_VALUES }.value(SchemaView::root(schema), 0),
        None => unknown(),
    }
}

fn unknown() -> Value {
    json!({ MARK: true })
}

struct Sampler {
    values_left: usize,
}

impl Sampler {
    fn value(&mut self, schema: SchemaView<'_>, depth: usize) -> Value {
        let Some(left) = self.values_left.checked_sub(1).filter(|_| depth < MAX_DEPTH) else {
            return Value::Null;
        };
        self.values_left = left;
        if let Some(constant) = constant(schema) {
            return constant;
        }
        match schema.reference() {
            Ok(Some(target)) => return self.value(target, depth + 1),
            Err(_) => return unknown(),
            Ok(None) => {}
        }
        if schema.get("properties").is_none() {
            for mut union in schema.unions() {
                // A script is more likely to read the alternative that is not null.
                let first = union.clone().next();
                if let Some(likely) = union.find(|alternative| !alternative.is_null()).or(first) {
                    return self.value(likely, depth + 1);
                }
            }
        }
        match type_of(schema) {
            Some("object") => self.object(schema, depth),
            Some("array") => self.array(schema, depth),
            Some("string") => Value::String(text(schema)),
            Some("integer") => number(schema, true),
            Some("number") => number(schema, false),
            Some("boolean") => Value::Bool(true),
            Some("null") => Value::Null,
            _ => unknown(),
        }
    }

    fn object(&mut self, schema: SchemaView<'_>, depth: usize) -> Value {
        let mut object = Map::new();
        // Each part of `allOf` adds its own fields.
        for part in schema.list("allOf") {
            if let Value::Object(more) = self.value(part, depth + 1) {
                object.extend(more.into_iter().filter(|(name, _)| name != MARK));
            }
        }
        for (name, property) in schema.properties() {
            if self.values_left == 0 {
                break;
            }
            object.insert(name.to_owned(), self.value(property, depth + 1));
        }
        if object.is_empty()
            && let Some(values) =
                schema.one("additionalProperties").filter(|values| values.keywords().is_some())
        {
            object.insert(MARK.to_owned(), self.value(values, depth + 1));
        }
        if object.is_empty() { unknown() } else { Value::Object(object) }
    }

    fn array(&mut self, schema: SchemaView<'_>, depth: usize) -> Value {
        let elements = schema.elements();
        let mut items = Vec::new();
        for element in elements.tuple.into_iter().flatten() {
            if self.values_left == 0 {
                break;
            }
            items.push(self.value(schema.at(element), depth + 1));
        }
        let bound = |name: &str| schema.get(name).and_then(Value::as_u64);
        let wanted =
            bound("minItems").unwrap_or(1).clamp(1, MAX_ELEMENTS).min(bound("maxItems").unwrap_or(u64::MAX));
        while let Some(element) = elements.rest.filter(|element| element.keywords().is_some())
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
fn constant(schema: SchemaView<'_>) -> Option<Value> {
    let listed = |name: &str| schema.get(name).and_then(Value::as_array).into_iter().flatten();
    let named = schema.get("const").into_iter();
    let named = named.chain(listed("enum")).chain(schema.get("default")).chain(listed("examples"));
    named.take(MAX_CONSTANTS).find(|value| is_short(value)).cloned()
}

fn is_short(value: &Value) -> bool {
    is_within(value, &mut { MAX_CONSTANT_BYTES })
}

/// Whether a value has at most about `left` bytes as JSON. Reads no more than that.
fn is_within(value: &Value, left: &mut usize) -> bool {
    let own = match value {
        Value::String(text) => text.len(),
        Value::Object(fields) => fields.keys().take(*left).map(String::len).sum(),
        _ => 1,
    };
    let Some(rest) = left.checked_sub(own) else { return false };
    *left = rest;
    match value {
        Value::Array(items) => items.iter().all(|item| is_within(item, left)),
        Value::Object(fields) => fields.values().all(|field| is_within(field, left)),
        _ => true,
    }
}

/// The type, or the type that the keywords imply. If several are listed, the first; if that is
/// null, the second.
fn type_of(schema: SchemaView<'_>) -> Option<&str> {
    match schema.declared_types()[..] {
        ["null", second, ..] => Some(second),
        [first, ..] => Some(first),
        [] if schema.get("allOf").is_some() => Some("object"),
        [] => schema.implied_type(),
    }
}

fn text(schema: SchemaView<'_>) -> String {
    let formatted = match schema.text("format") {
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
            let bound = |name: &str| schema.get(name).and_then(Value::as_u64);
            let least = bound("minLength").unwrap_or(0).min(MAX_CHARACTERS);
            let most = bound("maxLength").unwrap_or(u64::MAX).max(least);
            let wanted = least.max(MARK.len() as u64).min(most);
            return MARK.chars().cycle().take(usize::try_from(wanted).unwrap_or(MARK.len())).collect();
        }
    };
    formatted.to_owned()
}

/// One, or a number near it that is within the limits and a multiple of `multipleOf`. If there is
/// none nearby, the limit that is nearest to one.
fn number(schema: SchemaView<'_>, is_whole: bool) -> Value {
    let (minimum, maximum) = (schema.minimum(), schema.maximum());
    let is_allowed = |number: &f64| {
        let is_above = |limit: Limit| *number > limit.value || *number == limit.value && !limit.is_exclusive;
        let is_below = |limit: Limit| *number < limit.value || *number == limit.value && !limit.is_exclusive;
        number.is_finite()
            && (!is_whole || number.fract() == 0.0)
            && minimum.is_none_or(is_above)
            && maximum.is_none_or(is_below)
    };
    let nearest = 1.0_f64
        .max(minimum.map_or(f64::MIN, |limit| limit.value))
        .min(maximum.map_or(f64::MAX, |limit| limit.value));
    let multiple = schema.get("multipleOf").and_then(Value::as_f64).filter(|step| *step > 0.0);
    let candidates = match multiple.or(is_whole.then_some(1.0)) {
        Some(step) => {
            let (above, below) = ((nearest / step).ceil() * step, (nearest / step).floor() * step);
            [above, below, above + step, below - step]
        }
        None => {
            let middle = minimum
                .zip(maximum)
                .map_or(nearest, |(minimum, maximum)| minimum.value.midpoint(maximum.value));
            [nearest, nearest + 1.0, nearest - 1.0, middle]
        }
    };
    let sample = candidates.into_iter().find(is_allowed).unwrap_or(nearest);
    // Beyond 2^53 a double cannot represent every integer, and scripts could not tell the
    // difference.
    if sample.fract() == 0.0 && sample.abs() < 9_007_199_254_740_992.0 {
        #[expect(clippy::cast_possible_truncation, reason = "it is a whole number within 53 bits")]
        return Value::from(sample as i64);
    }
    serde_json::Number::from_f64(sample).map_or(Value::from(1), Value::Number)
}

#[cfg(test)]
mod tests;
