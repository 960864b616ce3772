//! JSON Schemas, stored as text.

pub(crate) mod view;

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::json;

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

    /// Whether an output schema is the wrapper `{"result": x}` into which SDKs put values that are not objects, because
    /// MCP requires an object. A wrapper is recognized by these marks: `result` is the only field, and it is required
    /// or `x-fastmcp-wrap-result` is set. Scripts receive `x`.
    pub(crate) fn wraps_result(&self) -> bool {
        #[derive(Deserialize)]
        struct Wrapper<'a> {
            #[serde(borrow)]
            properties: Option<&'a RawValue>,
            #[serde(borrow)]
            required: Option<&'a RawValue>,
            #[serde(borrow, rename = "x-fastmcp-wrap-result")]
            mark: Option<&'a RawValue>,
        }
        let Ok(wrapper) = serde_json::from_str::<Wrapper<'_>>(self.text()) else { return false };
        let is_required =
            wrapper.required.is_some_and(|names| serde_json::from_str(names.get()).ok() == Some(["result"]));
        let is_marked = is_required || wrapper.mark.is_some_and(|mark| mark.get() == "true");
        is_marked
            && wrapper.properties.is_some_and(|fields| json::lone_field(fields.get(), "result").is_some())
    }

    /// The schema of the value that scripts receive of results with this output schema: the content of a wrapper, with
    /// the definitions that it may refer to.
    pub(crate) fn unwrapped(&self) -> Self {
        if !self.wraps_result() {
            return self.clone();
        }
        let mut root = self.to_value();
        let mut inner = root["properties"]["result"].take();
        if let (Value::Object(root), Value::Object(inner)) = (&mut root, &mut inner) {
            for definitions in ["$defs", "definitions"] {
                if let Some(value) = root.remove(definitions) {
                    inner.entry(definitions).or_insert(value);
                }
            }
        }
        inner.into()
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
