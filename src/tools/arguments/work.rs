//! The work of one check, counted by walking the schema and the arguments together.
//!
//! [`Bounds`](super::bounds::Bounds) are computed without examining single values: the most expensive schema counts for
//! all of them. If that estimate is too high, this module counts each schema with each value that it is tried on.
//!
//! This is not part of `jsonschema`, which collects all errors before it returns the first. Errors of alternatives
//! contain copies of their values, and others copy texts of the schema: thousands of alternatives that refuse one large
//! string would take gigabytes.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::tools::schema::view::SchemaView;

/// Maximum number of steps: evaluations of one keyword for one value. Some 20 ms.
const MAX_STEPS: u64 = 200_000;

/// Maximum bytes of memory of all errors about one value. They take some milliseconds.
const MAX_ERROR_BYTES: u64 = 8 << 20;

/// Bytes of memory of one error, about, without its texts.
const ERROR_BYTES: u64 = 320;

/// Bytes of memory of one value of a copy, about.
const VALUE_BYTES: u64 = 160;

/// Bytes of an index in a JSON pointer, about.
const INDEX_BYTES: u64 = 8;

/// Bytes of text that keywords of weight 1 read in one step.
pub(super) const TEXT_UNIT: u64 = 256;

/// Maximum weight of a pattern. A pattern whose automaton would have more states is not compiled, because
/// compiled patterns have a size limit.
const MAX_PATTERN_WEIGHT: u64 = 16_384;

/// The cost per byte of reading text for the keywords of `schema` itself; 0 if none of them reads text.
pub(super) fn text_weight_of(schema: SchemaView<'_>) -> u64 {
    let reads = ["minLength", "maxLength", "uniqueItems"].iter().any(|keyword| schema.get(keyword).is_some());
    let names = schema.map("patternProperties").map(|(pattern, _)| pattern_weight(pattern));
    let pattern = schema.text("pattern").map_or(0, pattern_weight);
    names.fold(pattern.max(u64::from(reads)), u64::saturating_add)
}

/// The cost per byte of matching a pattern. For each byte of a text, all states of its automaton can be active: one for
/// each character of the pattern, and for each copy of a counted repetition. The numbers of nested repetitions are
/// multiplied.
fn pattern_weight(pattern: &str) -> u64 {
    let is_between = |character: char| character.is_whitespace() || "*+?".contains(character);
    let length = pattern.len().max(1) as u64;
    let (mut sum, mut product) = (length, length);
    // With comments, the repeated item need not be directly before its repetition.
    let mut is_nested = pattern.contains('#');
    let mut parts = pattern.split('{');
    let mut before = parts.next().unwrap_or_default();
    for part in parts {
        let counts = part.split('}').next().unwrap_or_default().split(',');
        let copies = counts.filter_map(|count| count.trim().parse::<u64>().ok()).max().unwrap_or(1).max(1);
        (sum, product) = (sum.saturating_add(copies), product.saturating_mul(copies));
        // Only a group and a repetition can contain a repetition.
        is_nested |= before.trim_end_matches(is_between).ends_with([')', '}']);
        before = part;
    }
    let weight = if is_nested { product } else { sum };
    weight.min(MAX_PATTERN_WEIGHT)
}

/// How often the alternatives of `schema` are tried: twice if a keyword needs to know which parts were evaluated.
pub(super) fn tries_of_applied(schema: SchemaView<'_>) -> u64 {
    let finds_out =
        ["unevaluatedProperties", "unevaluatedItems"].iter().any(|keyword| schema.get(keyword).is_some());
    if finds_out { 2 } else { 1 }
}

/// Whether a check of `value` with `schema` takes few steps.
pub(super) fn has_few_steps(schema: SchemaView<'_>, value: &Value) -> bool {
    is_within(schema, value, Errors::Unused)
}

/// Whether the list of all errors about `value` also takes little memory.
pub(super) fn has_small_errors(schema: SchemaView<'_>, value: &Value) -> bool {
    is_within(schema, value, Errors::Kept)
}

fn is_within(schema: SchemaView<'_>, value: &Value, errors: Errors) -> bool {
    let first = Pair { schema, part: Part::Value(value), pointer: 0, errors };
    let mut walk = Walk { references: HashMap::new(), open: vec![first], steps: 1, bytes: 0 };
    while let Some(pair) = walk.open.pop() {
        walk.visit(pair);
        if walk.is_over() {
            return false;
        }
    }
    true
}

/// A value that a schema is tried on.
#[derive(Clone, Copy)]
enum Part<'a> {
    Value(&'a Value),
    /// The name of a field.
    Name(&'a str),
}

impl<'a> Part<'a> {
    fn text(self) -> Option<&'a str> {
        match self {
            Self::Value(value) => value.as_str(),
            Self::Name(name) => Some(name),
        }
    }

    fn fields(self) -> Option<&'a Map<String, Value>> {
        match self {
            Self::Value(value) => value.as_object(),
            Self::Name(_) => None,
        }
    }

    fn is_container(self) -> bool {
        matches!(self, Self::Value(Value::Array(_) | Value::Object(_)))
    }

    /// The number of values in it, and the bytes of its text.
    fn weigh(self) -> (u64, u64) {
        match self {
            Self::Value(value) => weigh(value),
            Self::Name(name) => (1, name.len() as u64),
        }
    }
}

/// How the errors of a schema are used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Errors {
    /// They are not constructed, because only the validity matters.
    Unused,
    Kept,
    /// They are stored with copies of their values.
    Copied,
}

impl Errors {
    fn copied(self) -> Self {
        if self == Self::Unused { self } else { Self::Copied }
    }
}

/// A schema and a value that it is tried on.
#[derive(Clone, Copy)]
struct Pair<'a> {
    schema: SchemaView<'a>,
    part: Part<'a>,
    /// Length of the JSON pointer of the value.
    pointer: u64,
    errors: Errors,
}

/// The errors that a keyword can have about one value itself.
#[derive(Clone, Copy)]
struct Own {
    count: u64,
    /// Bytes of their copies of parts of the schema and of names.
    bytes: u64,
}

impl Own {
    const NONE: Self = Self { count: 0, bytes: 0 };

    fn one(bytes: usize) -> Self {
        Self { count: 1, bytes: bytes as u64 }
    }
}

struct Walk<'a> {
    /// The targets of references, by the address of the schema that has one.
    references: HashMap<usize, Option<SchemaView<'a>>>,
    open: Vec<Pair<'a>>,
    steps: u64,
    bytes: u64,
}

impl<'a> Walk<'a> {
    fn is_over(&self) -> bool {
        self.steps > MAX_STEPS || self.bytes > MAX_ERROR_BYTES
    }

    fn visit(&mut self, pair: Pair<'a>) {
        let Some(keywords) = pair.schema.keywords() else {
            if pair.schema.is_false() {
                self.add_errors(pair, Own::one(0));
            }
            return;
        };
        self.steps = self.steps.saturating_add(keywords.len() as u64);
        let mut own = Own::NONE;
        for (keyword, argument) in keywords {
            let errors = self.errors_of(keyword, argument, pair);
            own.count = own.count.saturating_add(errors.count);
            own.bytes = own.bytes.saturating_add(errors.bytes);
            if self.is_over() {
                return;
            }
        }
        self.add_errors(pair, own);
        self.push_applied(pair);
        match pair.part {
            Part::Value(Value::Array(items)) => self.push_items(pair, items),
            Part::Value(Value::Object(fields)) => self.push_fields(pair, fields),
            _ => {}
        }
    }

    /// Counts the steps of one keyword, and returns the errors that it can have.
    fn errors_of(&mut self, keyword: &str, argument: &'a Value, pair: Pair<'a>) -> Own {
        let part = pair.part;
        match keyword {
            // These keywords have no errors of their own.
            "$ref" | "$dynamicRef" | "$schema" | "$id" | "id" | "$anchor" | "$dynamicAnchor" | "$comment"
            | "$defs" | "definitions" | "title" | "description" | "default" | "examples" | "example"
            | "format" | "deprecated" | "readOnly" | "writeOnly" | "nullable" | "properties" | "items"
            | "prefixItems" | "propertyNames" | "allOf" | "if" | "then" | "else" | "dependentSchemas" => {
                Own::NONE
            }
            "type" if is_of_type(argument, part) => Own::NONE,
            "required" => self.missing(argument, part),
            "dependentRequired" | "dependencies" => {
                let (Some(lists), Some(fields)) = (argument.as_object(), part.fields()) else {
                    return Own::NONE;
                };
                let mut own = Own::NONE;
                for (_, list) in lists.iter().filter(|(name, _)| fields.contains_key(*name)) {
                    let missing = self.missing(list, part);
                    own.count = own.count.saturating_add(missing.count);
                    own.bytes = own.bytes.saturating_add(missing.bytes);
                }
                self.steps = self.steps.saturating_add(lists.len() as u64);
                own
            }
            "not" => {
                let (values, text) = weigh(argument);
                self.steps = self.steps.saturating_add(values);
                Own { count: 1, bytes: values * VALUE_BYTES + text }
            }
            "pattern" => {
                let (Some(text), Some(pattern)) = (part.text(), argument.as_str()) else { return Own::NONE };
                self.read(text.len() as u64, pattern_weight(pattern));
                Own::one(pattern.len())
            }
            "minLength" | "maxLength" => {
                let Some(text) = part.text() else { return Own::NONE };
                self.read(text.len() as u64, 1);
                Own::one(0)
            }
            "uniqueItems" if part.is_container() => {
                let (values, text) = part.weigh();
                self.steps = self.steps.saturating_add(values);
                self.read(text, 1);
                Own::one(0)
            }
            "const" | "enum" => {
                // Lists and objects are compared with everything in the schema's value.
                let compared = if part.is_container() {
                    weigh(argument).0
                } else {
                    argument.as_array().map_or(0, |options| options.len() as u64 / 16)
                };
                self.steps = self.steps.saturating_add(compared);
                Own::one(0)
            }
            "additionalProperties" | "unevaluatedProperties" => {
                let Some(fields) = part.fields() else { return Own::NONE };
                let names = fields.keys().filter(|name| pair.schema.property(name).is_none());
                let bytes: usize = names.map(|name| name.len() + size_of::<String>()).sum();
                self.steps = self.steps.saturating_add(fields.len() as u64 / 4);
                if bytes == 0 { Own::NONE } else { Own::one(bytes) }
            }
            "patternProperties" => {
                let Some(fields) = part.fields() else { return Own::NONE };
                let names: usize = fields.keys().map(|name| name.len() + 1).sum();
                self.read(names as u64, text_weight_of(pair.schema));
                Own::NONE
            }
            _ => Own::one(0),
        }
    }

    /// Counts the steps of reading text.
    fn read(&mut self, bytes: u64, weight: u64) {
        self.steps = self.steps.saturating_add(bytes.saturating_mul(weight) / TEXT_UNIT);
    }

    /// The errors about names of a list that are missing in an object.
    fn missing(&mut self, list: &Value, part: Part<'_>) -> Own {
        let (Some(names), Some(fields)) = (list.as_array(), part.fields()) else { return Own::NONE };
        self.steps = self.steps.saturating_add(names.len() as u64);
        let missing = names.iter().filter_map(Value::as_str).filter(|name| !fields.contains_key(*name));
        missing.fold(Own::NONE, |own, name| Own {
            count: own.count + 1,
            bytes: own.bytes.saturating_add(name.len() as u64),
        })
    }

    fn add_errors(&mut self, pair: Pair<'_>, own: Own) {
        if pair.errors == Errors::Unused || own.count == 0 {
            return;
        }
        let mut each = ERROR_BYTES.saturating_add(pair.pointer);
        if pair.errors == Errors::Copied {
            let (values, text) = pair.part.weigh();
            self.steps = self.steps.saturating_add(values);
            each = each.saturating_add(values.saturating_mul(VALUE_BYTES)).saturating_add(text);
        }
        let bytes = own.count.saturating_mul(each).saturating_add(own.bytes);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn push(&mut self, pair: Pair<'a>) {
        self.steps = self.steps.saturating_add(1);
        if !self.is_over() {
            self.open.push(pair);
        }
    }

    /// The schemas that apply to the same value.
    fn push_applied(&mut self, pair: Pair<'a>) {
        let schema = pair.schema;
        if let Some(target) = self.target_of(schema) {
            self.push(Pair { schema: target, ..pair });
        }
        let unused = Pair { errors: Errors::Unused, ..pair };
        let second_try = (tries_of_applied(schema) > 1).then_some(unused);
        for pair in [Some(pair), second_try].into_iter().flatten() {
            let copied = Pair { errors: pair.errors.copied(), ..pair };
            let valid_only = ["not", "if"].into_iter().filter_map(|keyword| schema.one(keyword));
            valid_only.for_each(|schema| self.push(Pair { schema, ..unused }));
            let one = ["then", "else"].into_iter().filter_map(|keyword| schema.one(keyword));
            one.for_each(|schema| self.push(Pair { schema, ..pair }));
            schema.list("allOf").for_each(|schema| self.push(Pair { schema, ..pair }));
            for keyword in ["dependentSchemas", "dependencies"] {
                schema.map(keyword).for_each(|(_, schema)| self.push(Pair { schema, ..pair }));
            }
            for keyword in ["anyOf", "oneOf"] {
                schema.list(keyword).for_each(|schema| self.push(Pair { schema, ..copied }));
            }
        }
    }

    /// The target of a reference. It is searched once, because an anchor can be anywhere in the document.
    fn target_of(&mut self, schema: SchemaView<'a>) -> Option<SchemaView<'a>> {
        if schema.get("$ref").is_none() && schema.get("$dynamicRef").is_none() {
            return None;
        }
        let find = || schema.reference().ok().flatten();
        *self.references.entry(schema.address()).or_insert_with(find)
    }

    fn push_items(&mut self, pair: Pair<'a>, items: &'a [Value]) {
        let elements = pair.schema.elements();
        let contains = pair.schema.one("contains");
        let unevaluated = pair.schema.one("unevaluatedItems").filter(|schema| !schema.is_false());
        let pointer = pair.pointer + INDEX_BYTES;
        for (index, item) in items.iter().enumerate() {
            let of_tuple = elements.tuple.and_then(|tuple| tuple.get(index));
            let own = of_tuple.map(|schema| pair.schema.at(schema)).or(elements.rest);
            for schema in own.into_iter().chain(unevaluated) {
                self.push(Pair { schema, part: Part::Value(item), pointer, errors: pair.errors });
            }
            if let Some(schema) = contains {
                self.push(Pair { schema, part: Part::Value(item), pointer, errors: Errors::Unused });
            }
            if self.is_over() {
                return;
            }
        }
    }

    fn push_fields(&mut self, pair: Pair<'a>, fields: &'a Map<String, Value>) {
        let not_false = |keyword: &str| pair.schema.one(keyword).filter(|schema| !schema.is_false());
        let additional = not_false("additionalProperties");
        let unevaluated = not_false("unevaluatedProperties");
        let names = pair.schema.one("propertyNames");
        for (name, value) in fields {
            let pointer = pair.pointer + 1 + name.len() as u64;
            let own = pair.schema.property(name).or(additional);
            for schema in own.into_iter().chain(unevaluated) {
                self.push(Pair { schema, part: Part::Value(value), pointer, errors: pair.errors });
            }
            for (_, schema) in pair.schema.map("patternProperties") {
                self.push(Pair { schema, part: Part::Value(value), pointer, errors: pair.errors });
            }
            if let Some(schema) = names {
                let (part, errors) = (Part::Name(name), pair.errors.copied());
                self.push(Pair { schema, part, pointer: pair.pointer, errors });
            }
            if self.is_over() {
                return;
            }
        }
    }
}

/// The number of values in `value`, including itself, and the bytes of its strings and names.
fn weigh(value: &Value) -> (u64, u64) {
    let (mut values, mut text) = (0, 0);
    let mut rest = vec![value];
    while let Some(value) = rest.pop() {
        values += 1;
        match value {
            Value::String(string) => text += string.len() as u64,
            Value::Array(items) => rest.extend(items),
            Value::Object(fields) => {
                text += fields.keys().map(|name| name.len() as u64).sum::<u64>();
                rest.extend(fields.values());
            }
            _ => {}
        }
    }
    (values, text)
}

/// Whether a value certainly has a type that `type` declares.
fn is_of_type(declared: &Value, part: Part<'_>) -> bool {
    let is = |name: &str| match part {
        Part::Name(_) | Part::Value(Value::String(_)) => name == "string",
        Part::Value(Value::Null) => name == "null",
        Part::Value(Value::Bool(_)) => name == "boolean",
        Part::Value(Value::Array(_)) => name == "array",
        Part::Value(Value::Object(_)) => name == "object",
        Part::Value(Value::Number(number)) => {
            name == "number" || (name == "integer" && (number.is_i64() || number.is_u64()))
        }
    };
    match declared {
        Value::String(name) => is(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
