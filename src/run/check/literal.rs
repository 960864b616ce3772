//! Converts literal arguments of a script to the JSON that a call would have, as far as they are known.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::survey::{Bytes, Literal};
use crate::tools::arguments::partial::Unknowns;

/// Maximum bytes of the JSON pointers of all values of a call's arguments. One field with a long name and many values
/// in it could need gigabytes.
const MAX_POINTER_BYTES: usize = 1 << 20;

/// The kind of a value, for messages.
pub(super) fn kind_of(literal: &Literal) -> &'static str {
    match literal {
        Literal::Null | Literal::Unknown { .. } => "null",
        Literal::Bool(_) => "a boolean",
        Literal::Number(_) => "a number",
        Literal::Text(_) => "a string",
        Literal::List(_) => "an array",
        Literal::Object(_) => "an object",
    }
}

/// The value as JSON, with `null` for what is not known. `None` if the JSON pointers of its parts would be too long.
pub(super) fn to_json(literal: &Literal) -> Option<(Value, Unknowns)> {
    let mut conversion = Conversion::default();
    let value = conversion.value(literal)?;
    Some((value, conversion.unknowns))
}

#[derive(Default)]
struct Conversion {
    unknowns: Unknowns,
    /// The JSON pointer of the value that is being read.
    pointer: String,
    /// Bytes of all pointers so far.
    pointer_bytes: usize,
}

impl Conversion {
    fn value(&mut self, literal: &Literal) -> Option<Value> {
        self.pointer_bytes += self.pointer.len();
        if self.pointer_bytes > MAX_POINTER_BYTES {
            return None;
        }
        Some(match literal {
            Literal::Null => Value::Null,
            Literal::Bool(value) => Value::Bool(*value),
            Literal::Number(value) => Value::Number(value.clone()),
            Literal::Text(text) => Value::String(text.clone()),
            Literal::List(items) => {
                let mut values = Vec::new();
                for (index, item) in items.iter().enumerate() {
                    values.push(self.part(&index.to_string(), item)?);
                }
                Value::Array(values)
            }
            Literal::Object(object) => {
                if object.is_open {
                    self.unknowns.open.insert(self.pointer.clone());
                }
                let mut fields = Map::new();
                for field in &object.fields {
                    let value = self.part(&escaped(&field.name), &field.value)?;
                    fields.insert(field.name.clone(), value);
                }
                Value::Object(fields)
            }
            Literal::Unknown { may_be_absent } => {
                self.unknowns.values.insert(self.pointer.clone());
                if *may_be_absent {
                    self.unknowns.optional.insert(self.pointer.clone());
                }
                Value::Null
            }
        })
    }

    /// The value of a part, whose name is escaped for a pointer.
    fn part(&mut self, name: &str, literal: &Literal) -> Option<Value> {
        let length = self.pointer.len();
        self.pointer.push('/');
        self.pointer.push_str(name);
        let value = self.value(literal);
        self.pointer.truncate(length);
        value
    }
}

/// A name as a part of a JSON pointer.
fn escaped(name: &str) -> Cow<'_, str> {
    match name.contains(['~', '/']) {
        true => name.replace('~', "~0").replace('/', "~1").into(),
        false => name.into(),
    }
}

/// The span of the value at a JSON pointer, or of the name of its field.
pub(super) fn span_of(literal: &Literal, path: &str, field: Option<&str>) -> Option<Bytes> {
    let mut value = literal;
    let mut at = None;
    for name in path.split('/').skip(1) {
        match value {
            Literal::Object(object) => {
                let name = name.replace("~1", "/").replace("~0", "~");
                let found = object.fields.iter().find(|field| field.name == name)?;
                at = Some(found.value_at.clone());
                value = &found.value;
            }
            // Items have no spans of their own.
            Literal::List(items) => value = items.get(name.parse::<usize>().ok()?)?,
            _ => return at,
        }
    }
    match (value, field) {
        (Literal::Object(object), Some(name)) => {
            let found = object.fields.iter().find(|field| field.name == name);
            found.map(|field| field.at.clone()).or(at)
        }
        _ => at,
    }
}

#[cfg(test)]
mod tests;
