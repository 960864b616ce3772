//! Inferred output schemas, learned from a tool's results.
//!
//! Most MCP servers declare no output schema, so an author has to call a tool once to see what it
//! returns. A [`Shape`] collects this from calls that are made anyway: which fields there are,
//! their types, and which of them can be missing.
//!
//! A shape never holds a value: no text, no number, no constant. Field names are kept. An object's keys can be data too
//! (`{"ada@example.com": …}`). So an object with more than 64 keys is kept only as a map, without its keys, and so is
//! one with a key that does not look like a field name. The exception is an object most of whose keys look like names
//! and whose values are of several kinds: it is a record, and only its unusual keys are dropped.
//!
//! Shapes form a semilattice: [`Shape::merge`] is commutative, associative and, except for the
//! count of calls, idempotent. So the order in which calls are recorded, and by which process, does
//! not matter. One exception: beyond the bound of 500 nodes, the order can affect the depth of the
//! shape.

mod keys;
mod node;
mod part;
mod render;
mod sampling;
mod schema;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::node::Node;
use self::sampling::MAX_VALUES;
use crate::json::Json;

/// The inferred shape of a tool's results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Shape {
    /// The number of results it is based on.
    calls: u64,
    root: Node,
}

impl Shape {
    /// Maximum bytes of a result of which surely every field of the outermost object is visited: each value takes two
    /// or more.
    pub(crate) const MAX_WHOLE_BYTES: u64 = 2 * MAX_VALUES as u64;

    /// The shape of one result. Visits a bounded number of its values, however large it is.
    pub(crate) fn from_value(result: &Value) -> Self {
        Self { calls: 1, root: Node::new(result) }
    }

    /// The shape of a result in text form. Deserializes only the values that [`Shape::from_value`]
    /// visits.
    pub(crate) fn from_text(result: &Json) -> Self {
        Self::from_value(&part::visited_part(result))
    }

    /// Merges another shape into this one. Returns whether anything except the count of calls has
    /// changed.
    pub(crate) fn merge(&mut self, other: Self) -> bool {
        self.calls = self.calls.saturating_add(other.calls);
        if self.root == other.root {
            return false;
        }
        let before = self.root.clone();
        self.root.merge(other.root);
        self.root != before
    }

    /// The shape as a text of at most `max` characters, in the notation of TypeScript:
    /// `{content: string}`. Field names and types, no values.
    pub(crate) fn render(&self, max: usize) -> String {
        render::render(&self.root, max)
    }

    /// Whether an object at any level has a field of this name.
    pub(crate) fn has_field(&self, name: &str) -> bool {
        self.root.has_field(name)
    }

    /// The name of the only field, if all results are objects with this field only.
    pub(crate) fn only_field(&self) -> Option<&str> {
        self.root.only_field()
    }

    /// The names of the fields, if all results are objects whose fields are all known.
    pub(crate) fn object_fields(&self) -> Option<Vec<&str>> {
        self.root.object_fields()
    }

    /// Whether objects have fields whose names are not known: those of maps, and those below the deepest level.
    pub(crate) fn hides_fields(&self) -> bool {
        self.root.hides_fields()
    }

    /// Adds the names of all fields, until there are `max`.
    pub(crate) fn collect_fields(&self, fields: &mut BTreeSet<String>, max: usize) {
        self.root.collect_fields(fields, max);
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

    /// The shape as a JSON Schema, with `"x-inferred": {"calls": n}` to distinguish it from a
    /// schema that a server declares.
    pub(crate) fn to_schema(&self) -> Value {
        let mut schema = schema::to_schema(&self.root);
        schema.insert("x-inferred".to_owned(), json!({ "calls": self.calls }));
        Value::Object(schema)
    }
}

#[cfg(test)]
mod tests;
