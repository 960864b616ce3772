//! Reads the visited part of a result from its text, so that a large result never becomes a tree.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::keys::MAX_NAME_BYTES;
use super::sampling::{Ends, MAX_DEPTH, MAX_FIELDS, MAX_VALUES};
use crate::json::{Json, Key};
use crate::text::start_bytes;

/// The part of a result that a shape is made from: the first and last elements of arrays, enough fields of objects to
/// tell whether they are maps, and strings without their content.
pub(crate) fn visited_part(result: &Json) -> Value {
    let mut values_left = MAX_VALUES;
    let part = Part { depth: 0, arrays: 0, values_left: &mut values_left };
    let mut deserializer = serde_json::Deserializer::from_str(result.text());
    // The text is known to be JSON, so it can be deserialized.
    part.deserialize(&mut deserializer).unwrap_or_default()
}

/// Deserializes the visited part of one value.
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
        let Ends { first, last } = Ends::inside(self.arrays);
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
        let Ends { first, last } = Ends::inside(self.arrays);
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
    start_bytes(key, 2 * MAX_NAME_BYTES).to_owned()
}
