//! What was seen at each location of a tool's results, and how it is merged.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::keys::looks_like_data;
use super::sampling::{Ends, MAX_DEPTH, MAX_FIELDS, MAX_VALUES};

/// Maximum nodes of a shape: more than a person or a model reads, and some 20 KB on disk.
pub(crate) const MAX_NODES: usize = 500;

/// Bit flags for the kinds of values without parts: compact, and joined by `|`.
pub(crate) mod kind {
    pub(crate) const NULL: u8 = 1;
    pub(crate) const BOOLEAN: u8 = 2;
    pub(crate) const INTEGER: u8 = 4;
    pub(crate) const FRACTION: u8 = 8;
    pub(crate) const STRING: u8 = 16;
    /// A value that is not described. It excludes all other information.
    pub(crate) const UNKNOWN: u8 = 32;
}

/// What was seen at one location. The serialized names are short because they are written for every
/// node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Node {
    #[serde(default, rename = "k", skip_serializing_if = "is_zero")]
    pub(crate) kinds: u8,
    /// The elements of the arrays that were seen. An empty node if all arrays were empty.
    #[serde(default, rename = "e", skip_serializing_if = "Option::is_none")]
    pub(crate) elements: Option<Box<Self>>,
    /// The fields of the objects that were seen. `None` beside `values` if the objects are maps, whose
    /// keys are data.
    #[serde(default, rename = "f", skip_serializing_if = "Option::is_none")]
    pub(crate) fields: Option<BTreeMap<String, Field>>,
    /// The values of maps. If `fields` is set too, the values of the keys that are not field names.
    #[serde(default, rename = "m", skip_serializing_if = "Option::is_none")]
    pub(crate) values: Option<Box<Self>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Field {
    #[serde(rename = "n")]
    pub(crate) node: Node,
    /// Whether an object without this field was seen.
    #[serde(default, rename = "o", skip_serializing_if = "std::ops::Not::not")]
    pub(crate) optional: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(kinds: &u8) -> bool {
    *kinds == 0
}

/// A position in a result, and how many values may still be visited.
struct Visit {
    depth: usize,
    arrays: usize,
    values_left: usize,
}

impl Node {
    /// What was seen in one result. Visits a bounded number of its values, however large it is.
    pub(crate) fn new(result: &Value) -> Self {
        let mut node = Self::default();
        node.observe(result, &mut Visit { depth: 0, arrays: 0, values_left: MAX_VALUES });
        node.bound();
        node
    }

    /// Merges what was seen elsewhere at the same location.
    pub(crate) fn merge(&mut self, other: Self) {
        self.join(other);
        self.bound();
    }

    fn unknown() -> Self {
        Self { kinds: kind::UNKNOWN, ..Self::default() }
    }

    pub(crate) fn is_unknown(&self) -> bool {
        self.kinds & kind::UNKNOWN != 0
    }

    /// Adds one value. In place, because most elements of an array add nothing new and should cost
    /// no allocation.
    fn observe(&mut self, value: &Value, visit: &mut Visit) {
        visit.values_left = visit.values_left.saturating_sub(1);
        if self.is_unknown() {
            return;
        }
        match value {
            Value::Null => self.kinds |= kind::NULL,
            Value::Bool(_) => self.kinds |= kind::BOOLEAN,
            Value::Number(number) if number.is_f64() => self.kinds |= kind::FRACTION,
            Value::Number(_) => self.kinds |= kind::INTEGER,
            Value::String(_) => self.kinds |= kind::STRING,
            Value::Array(_) | Value::Object(_) if visit.depth >= MAX_DEPTH => *self = Self::unknown(),
            Value::Array(items) => {
                let ends = Ends::inside(visit.arrays);
                let elements = self.elements.get_or_insert_default();
                visit.depth += 1;
                visit.arrays += 1;
                for item in ends.select(items.iter(), items.len()) {
                    // Elements that are not visited could only add information; what is known
                    // remains correct.
                    if visit.values_left == 0 {
                        break;
                    }
                    elements.observe(item, visit);
                }
                visit.depth -= 1;
                visit.arrays -= 1;
            }
            Value::Object(object) => {
                visit.depth += 1;
                self.observe_object(object, visit);
                visit.depth -= 1;
            }
        }
    }

    fn observe_object(&mut self, object: &Map<String, Value>, visit: &mut Visit) {
        let is_odd = |node: &Self, key: &String| {
            !node.fields.as_ref().is_some_and(|fields| fields.contains_key(key)) && looks_like_data(key)
        };
        let odd = object.keys().filter(|key| is_odd(self, key)).count();
        let is_map = self.is_map() || object.len() > MAX_FIELDS || (odd > 0 && !is_record(object, odd));
        if is_map {
            self.become_map();
            let values = self.values.get_or_insert_default();
            // The keys of a map carry no information, so its values are sampled like the elements
            // of an array.
            let ends = Ends::inside(visit.arrays);
            visit.arrays += 1;
            for value in ends.select(object.values(), object.len()) {
                if visit.values_left == 0 {
                    break;
                }
                values.observe(value, visit);
            }
            visit.arrays -= 1;
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
            if visit.values_left == 0 {
                break;
            }
            if let Some(field) = fields.get_mut(key) {
                field.node.observe(value, visit);
            } else if odd > 0 && looks_like_data(key) {
                self.values.get_or_insert_default().observe(value, visit);
            } else {
                let mut field = Field { node: Self::default(), optional: !first };
                field.node.observe(value, visit);
                fields.insert(key.clone(), field);
            }
        }
        if fields.len() > MAX_FIELDS {
            self.become_map();
        }
    }

    fn join(&mut self, other: Self) {
        if self.is_unknown() || other.is_unknown() {
            *self = Self::unknown();
            return;
        }
        self.kinds |= other.kinds;
        if let Some(elements) = other.elements {
            self.elements.get_or_insert_default().join(*elements);
        }
        if other.values.is_some() && other.fields.is_none() {
            self.become_map();
        }
        if let Some(values) = other.values {
            let is_first = self.values.is_none() && self.fields.is_none();
            self.values.get_or_insert_default().join(*values);
            // Not a map: the fields that follow are kept.
            if is_first && other.fields.is_some() {
                self.fields = other.fields;
                return;
            }
        }
        let Some(others) = other.fields else {
            return;
        };
        if self.is_map() {
            let values = self.values.get_or_insert_default();
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

    /// Whether the objects that were seen are maps.
    fn is_map(&self) -> bool {
        self.values.is_some() && self.fields.is_none()
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

    /// The number of nodes.
    pub(crate) fn count(&self) -> usize {
        1 + self.children().map(Self::count).sum::<usize>()
    }

    /// Whether an object here or below has a field of this name.
    pub(crate) fn has_field(&self, name: &str) -> bool {
        self.fields.as_ref().is_some_and(|fields| fields.contains_key(name))
            || self.children().any(|child| child.has_field(name))
    }

    /// The name of the only field, if this is an object with one field in all cases.
    pub(crate) fn only_field(&self) -> Option<&str> {
        let fields = self.fields.as_ref().filter(|fields| fields.len() == 1)?;
        let is_object = self.elements.is_none() && self.values.is_none();
        fields.keys().next().filter(|_| is_object).map(String::as_str)
    }

    /// The names of the fields, if this is an object in all cases, and all its fields are known.
    pub(crate) fn object_fields(&self) -> Option<Vec<&str>> {
        let is_object = self.kinds == 0 && self.elements.is_none() && self.values.is_none();
        let fields = self.fields.as_ref().filter(|_| is_object)?;
        Some(fields.keys().map(String::as_str).collect())
    }

    /// Whether objects here or below have fields whose names are not known.
    pub(crate) fn hides_fields(&self) -> bool {
        self.is_unknown() || self.is_map() || self.children().any(Self::hides_fields)
    }

    /// Adds the names of all fields, until there are `max`.
    pub(crate) fn collect_fields(&self, fields: &mut BTreeSet<String>, max: usize) {
        for name in self.fields.iter().flat_map(BTreeMap::keys) {
            if fields.len() >= max {
                return;
            }
            fields.insert(name.clone());
        }
        for child in self.children() {
            child.collect_fields(fields, max);
        }
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
}

/// Whether an object with `odd` keys that look like data is nevertheless a record: most of its keys are field names,
/// and its values are of more than one kind, unlike those of a map.
fn is_record(object: &Map<String, Value>, odd: usize) -> bool {
    let kinds = object.values().fold(0_u8, |kinds, value| {
        kinds
            | match value {
                Value::Null => 0,
                Value::Bool(_) => 1,
                Value::Number(_) => 2,
                Value::String(_) => 4,
                Value::Array(_) => 8,
                Value::Object(_) => 16,
            }
    });
    kinds.count_ones() > 1 && object.len() > 2 * odd
}
