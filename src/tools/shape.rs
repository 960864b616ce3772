//! Inferred output schemas, learned from a tool's results.
//!
//! Most MCP servers declare no output schema, so an author has to call a tool once to see what it
//! returns. A [`Shape`] collects this from calls that are made anyway: which fields there are,
//! their types, and which of them can be missing.
//!
//! A shape never holds a value: no text, no number, no constant. Field names are kept. An object's
//! keys can be data too (`{"ada@example.com": …}`). So an object with more than 64 keys, or with a
//! key that does not look like a field name, is kept only as a map, without its keys.
//!
//! Shapes form a semilattice: [`Shape::merge`] is commutative, associative and, except for the
//! count of calls, idempotent. So the order in which calls are recorded, and by which process, does
//! not matter. One exception: beyond the bound of 500 nodes, the order can affect the depth of the
//! shape.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::json::{Json, Key};

/// Maximum levels of a shape. Deeper values are unknown.
const MAX_DEPTH: usize = 8;

/// Maximum nodes of a shape: more than a person or a model reads, and some 20 KB on disk.
const MAX_NODES: usize = 500;

/// Maximum fields of an object. An object with more is a map, whose keys are data.
const MAX_FIELDS: usize = 64;

/// Maximum bytes of a field name. Longer keys are data.
const MAX_NAME_BYTES: usize = 64;

/// Number of elements sampled at the start and at the end of an array, by the number of enclosing
/// arrays. The last ones are included because sorted lists differ most at their ends.
const SAMPLES: [(usize, usize); 3] = [(100, 10), (20, 4), (5, 1)];

/// Maximum number of values visited in one result: some tenths of a millisecond.
const MAX_VALUES: usize = 8_000;

/// The inferred shape of a tool's results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Shape {
    /// The number of results it is based on.
    calls: u64,
    root: Node,
}

impl Shape {
    /// The shape of one result. Visits a bounded number of its values, however large it is.
    pub(crate) fn of(result: &Value) -> Self {
        let mut root = Node::default();
        root.observe(result, &mut Place { depth: 0, arrays: 0, values_left: MAX_VALUES });
        root.bound();
        Self { calls: 1, root }
    }

    /// The shape of a result in text form. Deserializes only the values that [`Shape::of`] visits.
    pub(crate) fn of_text(result: &Json) -> Self {
        let mut values_left = MAX_VALUES;
        let part = Part { depth: 0, arrays: 0, values_left: &mut values_left };
        let mut deserializer = serde_json::Deserializer::from_str(result.text());
        // The text is known to be JSON, so it can be deserialized.
        Self::of(&part.deserialize(&mut deserializer).unwrap_or_default())
    }

    /// Merges another shape into this one. Returns whether anything except the count of calls has
    /// changed.
    pub(crate) fn merge(&mut self, other: Self) -> bool {
        self.calls = self.calls.saturating_add(other.calls);
        if self.root == other.root {
            return false;
        }
        let before = self.root.clone();
        self.root.join(other.root);
        self.root.bound();
        self.root != before
    }

    /// The number of results it is based on.
    pub(crate) fn calls(&self) -> u64 {
        self.calls
    }

    /// Whether both are equal except for the number of calls.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn is_same_as(&self, other: &Self) -> bool {
        self.root == other.root
    }

    /// The shape as a JSON Schema, with `"x-observed": {"calls": n}` to distinguish it from a
    /// schema that a server declares.
    pub(crate) fn to_schema(&self) -> Value {
        let mut schema = self.root.to_schema();
        schema.insert("x-observed".to_owned(), json!({ "calls": self.calls }));
        Value::Object(schema)
    }
}

/// Bit flags for the kinds of values without parts: compact, and joined by `|`.
mod kind {
    pub(super) const NULL: u8 = 1;
    pub(super) const BOOLEAN: u8 = 2;
    pub(super) const INTEGER: u8 = 4;
    pub(super) const FRACTION: u8 = 8;
    pub(super) const STRING: u8 = 16;
    /// A value that is not described. It excludes all other information.
    pub(super) const UNKNOWN: u8 = 32;
}

/// What was seen at one location. The serialized names are short because they are written for every
/// node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Node {
    #[serde(default, rename = "k", skip_serializing_if = "is_zero")]
    kinds: u8,
    /// The elements of the arrays that were seen. An empty node if all arrays were empty.
    #[serde(default, rename = "e", skip_serializing_if = "Option::is_none")]
    elements: Option<Box<Self>>,
    /// The fields of the objects that were seen. Never set together with `values`.
    #[serde(default, rename = "f", skip_serializing_if = "Option::is_none")]
    fields: Option<BTreeMap<String, Field>>,
    /// The values of the objects that were seen and that are maps.
    #[serde(default, rename = "m", skip_serializing_if = "Option::is_none")]
    values: Option<Box<Self>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Field {
    #[serde(rename = "n")]
    node: Node,
    /// Whether an object without this field was seen.
    #[serde(default, rename = "o", skip_serializing_if = "std::ops::Not::not")]
    optional: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(kinds: &u8) -> bool {
    *kinds == 0
}

/// Deserializes the part of a text that is visited: the first and last elements of arrays, enough
/// fields of objects to tell whether they are maps, and only the type of strings.
struct Part<'a> {
    depth: usize,
    arrays: usize,
    values_left: &'a mut usize,
}

impl Part<'_> {
    fn inside(&mut self, is_array: bool) -> Part<'_> {
        Part {
            depth: self.depth + 1,
            arrays: self.arrays + usize::from(is_array),
            values_left: &mut *self.values_left,
        }
    }

    fn again(&mut self, raw: &RawValue) -> Value {
        let part = Part { depth: self.depth, arrays: self.arrays, values_left: &mut *self.values_left };
        part.deserialize(&mut serde_json::Deserializer::from_str(raw.get())).unwrap_or_default()
    }
}

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        *self.values_left = self.values_left.saturating_sub(1);
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, _value: &str) -> Result<Value, E> {
        Ok(Value::String(String::new()))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        let mut kept = Vec::new();
        let mut tail = VecDeque::<&RawValue>::new();
        let (first, last) = SAMPLES[self.arrays.min(SAMPLES.len() - 1)];
        let last = if self.depth < MAX_DEPTH { last } else { 0 };
        while self.depth < MAX_DEPTH && kept.len() < first && *self.values_left > 0 {
            let Some(item) = items.next_element_seed(self.inside(true))? else {
                return Ok(Value::Array(kept));
            };
            kept.push(item);
        }
        while let Some(item) = items.next_element()? {
            tail.push_back(item);
            if tail.len() > last {
                tail.pop_front();
            }
        }
        let mut inside = self.inside(true);
        kept.extend(tail.into_iter().map(|item| inside.again(item)));
        Ok(Value::Array(kept))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<Value, A::Error> {
        let mut kept = Map::new();
        let mut tail = VecDeque::<(Cow<'de, str>, &RawValue)>::new();
        let (first, last) = SAMPLES[self.arrays.min(SAMPLES.len() - 1)];
        // An object with one more than the maximum number of fields is a map.
        let first = first.max(MAX_FIELDS + 1);
        let last = if self.depth < MAX_DEPTH { last } else { 0 };
        while self.depth < MAX_DEPTH && kept.len() < first && *self.values_left > 0 {
            let Some(Key(key)) = fields.next_key()? else { return Ok(Value::Object(kept)) };
            // The values of a map are sampled like the elements of an array. Whether the object is
            // a map is known only later.
            let value = fields.next_value_seed(self.inside(false))?;
            kept.insert(short_key(&key), value);
        }
        while let Some((Key(key), value)) = fields.next_entry()? {
            tail.push_back((key, value));
            if tail.len() > last {
                tail.pop_front();
            }
        }
        let mut inside = self.inside(false);
        for (key, value) in tail {
            kept.insert(short_key(&key), inside.again(value));
        }
        Ok(Value::Object(kept))
    }
}

/// The start of a key, long enough to show that it is too long for a field name.
fn short_key(key: &str) -> String {
    key[..key.floor_char_boundary(2 * MAX_NAME_BYTES)].to_owned()
}

/// The current position in a result, and how many values may still be visited.
struct Place {
    depth: usize,
    arrays: usize,
    values_left: usize,
}

impl Node {
    fn unknown() -> Self {
        Self { kinds: kind::UNKNOWN, ..Self::default() }
    }

    fn is_unknown(&self) -> bool {
        self.kinds & kind::UNKNOWN != 0
    }

    /// Adds one value. In place, because most elements of an array add nothing new and should cost
    /// no allocation.
    fn observe(&mut self, value: &Value, place: &mut Place) {
        place.values_left = place.values_left.saturating_sub(1);
        if self.is_unknown() {
            return;
        }
        match value {
            Value::Null => self.kinds |= kind::NULL,
            Value::Bool(_) => self.kinds |= kind::BOOLEAN,
            Value::Number(number) if number.is_f64() => self.kinds |= kind::FRACTION,
            Value::Number(_) => self.kinds |= kind::INTEGER,
            Value::String(_) => self.kinds |= kind::STRING,
            Value::Array(_) | Value::Object(_) if place.depth >= MAX_DEPTH => *self = Self::unknown(),
            Value::Array(items) => {
                let (first, last) = SAMPLES[place.arrays.min(SAMPLES.len() - 1)];
                let elements = self.elements.get_or_insert_default();
                place.depth += 1;
                place.arrays += 1;
                let tail = items.len().saturating_sub(last).max(first);
                for item in items.iter().take(first).chain(items.iter().skip(tail)) {
                    // Elements that are not visited could only add information; what is known
                    // remains correct.
                    if place.values_left == 0 {
                        break;
                    }
                    elements.observe(item, place);
                }
                place.depth -= 1;
                place.arrays -= 1;
            }
            Value::Object(object) => {
                place.depth += 1;
                self.observe_object(object, place);
                place.depth -= 1;
            }
        }
    }

    fn observe_object(&mut self, object: &Map<String, Value>, place: &mut Place) {
        let known =
            |node: &Self, key: &String| node.fields.as_ref().is_some_and(|fields| fields.contains_key(key));
        let is_map = self.values.is_some()
            || object.len() > MAX_FIELDS
            || object.keys().any(|key| !known(self, key) && looks_like_data(key));
        if is_map {
            self.become_map();
            let values = self.values.get_or_insert_default();
            // The keys of a map carry no information, so its values are sampled like the elements
            // of an array.
            let (first, last) = SAMPLES[place.arrays.min(SAMPLES.len() - 1)];
            place.arrays += 1;
            let tail = object.len().saturating_sub(last).max(first);
            for value in object.values().take(first).chain(object.values().skip(tail)) {
                if place.values_left == 0 {
                    break;
                }
                values.observe(value, place);
            }
            place.arrays -= 1;
            return;
        }
        let first = self.fields.is_none();
        let fields = self.fields.get_or_insert_default();
        for (key, field) in fields.iter_mut() {
            field.optional |= !object.contains_key(key);
        }
        for (key, value) in object {
            // Fields that are not visited are left out of this shape, so merging makes them
            // optional in other shapes.
            if place.values_left == 0 {
                break;
            }
            if let Some(field) = fields.get_mut(key) {
                field.node.observe(value, place);
            } else {
                let mut field = Field { node: Self::default(), optional: !first };
                field.node.observe(value, place);
                fields.insert(key.clone(), field);
            }
        }
        if fields.len() > MAX_FIELDS {
            self.become_map();
        }
    }

    /// Merges the node `other` into this one.
    fn join(&mut self, other: Self) {
        if self.is_unknown() || other.is_unknown() {
            *self = Self::unknown();
            return;
        }
        self.kinds |= other.kinds;
        if let Some(elements) = other.elements {
            self.elements.get_or_insert_default().join(*elements);
        }
        if let Some(values) = other.values {
            self.become_map();
            self.values.get_or_insert_default().join(*values);
        }
        let Some(others) = other.fields else {
            return;
        };
        if let Some(values) = &mut self.values {
            for field in others.into_values() {
                values.join(field.node);
            }
            return;
        }
        let first = self.fields.is_none();
        let fields = self.fields.get_or_insert_default();
        for (key, field) in fields.iter_mut() {
            field.optional |= !others.contains_key(key);
        }
        for (key, other) in others {
            if let Some(field) = fields.get_mut(&key) {
                field.optional |= other.optional;
                field.node.join(other.node);
            } else {
                fields.insert(key, Field { optional: other.optional || !first, ..other });
            }
        }
        if fields.len() > MAX_FIELDS {
            self.become_map();
        }
    }

    /// Drops the names of the fields, if there are any.
    fn become_map(&mut self) {
        if let Some(fields) = self.fields.take() {
            let values = self.values.get_or_insert_default();
            for field in fields.into_values() {
                values.join(field.node);
            }
        }
    }

    /// Drops the deepest levels until the number of nodes is within the bound.
    fn bound(&mut self) {
        let mut depth = MAX_DEPTH;
        while depth > 0 && self.count() > MAX_NODES {
            depth -= 1;
            self.cut(depth);
        }
    }

    fn count(&self) -> usize {
        1 + self.children().map(Self::count).sum::<usize>()
    }

    fn children(&self) -> impl Iterator<Item = &Self> {
        let fields = self.fields.iter().flat_map(BTreeMap::values).map(|field| &field.node);
        fields.chain(self.elements.as_deref()).chain(self.values.as_deref())
    }

    fn cut(&mut self, depth: usize) {
        if depth == 0 {
            if self.children().next().is_some() || self.fields.is_some() {
                *self = Self::unknown();
            }
            return;
        }
        let fields = self.fields.iter_mut().flat_map(BTreeMap::values_mut).map(|field| &mut field.node);
        for child in fields.chain(self.elements.as_deref_mut()).chain(self.values.as_deref_mut()) {
            child.cut(depth - 1);
        }
    }

    fn to_schema(&self) -> Map<String, Value> {
        let mut alternatives: Vec<Map<String, Value>> = Vec::new();
        if self.is_unknown() {
            return Map::new();
        }
        let mut types: Vec<&str> = Vec::new();
        let number = if self.kinds & kind::FRACTION == 0 { "integer" } else { "number" };
        for (bits, name) in [
            (kind::BOOLEAN, "boolean"),
            (kind::INTEGER | kind::FRACTION, number),
            (kind::STRING, "string"),
            (kind::NULL, "null"),
        ] {
            if self.kinds & bits != 0 {
                types.push(name);
            }
        }
        if let Some(fields) = &self.fields {
            let properties: Map<String, Value> =
                fields.iter().map(|(key, field)| (key.clone(), field.node.to_schema().into())).collect();
            let required: Vec<&String> =
                fields.iter().filter(|(_, field)| !field.optional).map(|(key, _)| key).collect();
            let mut schema = typed("object");
            schema.insert("properties".to_owned(), properties.into());
            if !required.is_empty() {
                schema.insert("required".to_owned(), json!(required));
            }
            alternatives.push(schema);
        }
        if let Some(values) = &self.values {
            let mut schema = typed("object");
            schema.insert("additionalProperties".to_owned(), values.to_schema().into());
            alternatives.push(schema);
        }
        if let Some(elements) = &self.elements {
            let mut schema = typed("array");
            if **elements != Self::default() {
                schema.insert("items".to_owned(), elements.to_schema().into());
            }
            alternatives.push(schema);
        }
        match types[..] {
            [] => {}
            [one] => alternatives.push(typed(one)),
            _ => alternatives.push(Map::from_iter([("type".to_owned(), json!(types))])),
        }
        if alternatives.len() > 1 {
            return Map::from_iter([("anyOf".to_owned(), json!(alternatives))]);
        }
        alternatives.pop().unwrap_or_default()
    }
}

fn typed(name: &str) -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), Value::from(name))])
}

/// Whether an object's key is likely to be data and not a field name: an id, a date, a path, an
/// address, a hash, a number, a sentence. One such key makes the object a map, so doubtful keys
/// count as data.
fn looks_like_data(key: &str) -> bool {
    let digits = key.chars().filter(char::is_ascii_digit).count();
    // Paths, addresses, host and file names, times, JSON, queries. A leading `@` or `$` is allowed,
    // because JSON-LD and others use it in field names.
    let has_syntax = key.char_indices().any(|(at, character)| {
        !(character.is_alphanumeric() || "_- ".contains(character) || at == 0 && "@$".contains(character))
    });
    let words = key.split([' ', '_', '-']).filter(|word| !word.is_empty());
    // `deadbeef`, but not `feedback` or `added`: words made of hexadecimal letters have few digits
    // and are short.
    let is_hash = |word: &str| {
        word.len() >= 8
            && word.chars().all(|character| character.is_ascii_hexdigit())
            && word.contains(|character: char| character.is_ascii_digit())
    };
    // `dQw4w9WgXcQ`: letters alternate between cases and digits more often than in any word.
    let is_token = |word: &str| {
        let classes: Vec<u8> = word
            .chars()
            .map(|character| u8::from(character.is_ascii_digit()) + 2 * u8::from(character.is_uppercase()))
            .collect();
        let changes = classes.windows(2).filter(|pair| pair[0] != pair[1]).count();
        word.len() >= 8 && digits > 0 && changes * 2 >= word.len() - 1
    };
    key.is_empty()
        || key.len() > MAX_NAME_BYTES
        || has_syntax
        || digits >= 4
        || key
            .starts_with(|character: char| character.is_ascii_digit() || character == '-' || character == ' ')
        || words.clone().count() > 8
        || key.split(' ').count() > 4
        || words.clone().any(|word| is_hash(word) || is_token(word))
}

#[cfg(test)]
mod tests;
