//! JSON Schemas, stored as text.

pub(crate) mod view;

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON Schema. Stored as compact JSON text, which takes a tenth of the memory of a [`Value`] and
/// is written to disk and passed to scripts unchanged. Code that needs its contents parses it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schema(Arc<str>);

impl Schema {
    /// The schema that every object satisfies.
    pub fn any_object() -> Self {
        Self(r#"{"type":"object"}"#.into())
    }

    /// The schema's JSON text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The schema as a value.
    pub fn to_value(&self) -> Value {
        // The text was made from a value or was checked to be JSON.
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

impl From<Value> for Schema {
    fn from(value: Value) -> Self {
        Self(value.to_string().into())
    }
}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(raw.get().into()))
    }
}
