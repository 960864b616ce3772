//! A read-only view of JSON Schemas, for all code that reads them. References inside the document
//! are resolved here, and so are the differences between the drafts (4 to 2020-12) and OpenAPI.
//!
//! Schemas come from servers and may be hostile. Nothing here recurses or follows more than one
//! reference, so callers bound the depth and the number of the schemas that they visit.

use serde_json::{Map, Value};

use crate::text::visible_preview;

/// Keywords whose schemas apply to the same value as their parent.
const IN_PLACE_ONE: [&str; 4] = ["not", "if", "then", "else"];
const IN_PLACE_LIST: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// The second is the name of the first before draft 2019-09. Its lists of names are not schemas and have no keywords.
const IN_PLACE_MAP: [&str; 2] = ["dependentSchemas", "dependencies"];

/// Keywords whose schemas apply to parts of the value.
const PART_ONE: [&str; 8] = [
    "additionalProperties",
    "propertyNames",
    "items",
    "additionalItems",
    "contains",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contentSchema",
];
/// Tuples; the second before draft 2020-12.
const PART_LIST: [&str; 2] = ["prefixItems", "items"];
const PART_MAP: [&str; 2] = ["properties", "patternProperties"];

/// Maximum number of values of a document that are searched for an anchor. Each may itself be a reference that causes
/// another search.
const MAX_SEARCHED: usize = 1_500;

/// Maximum bytes of a reference that is followed. A schema can be visited thousands of times, and its reference is read
/// each time.
const MAX_REFERENCE: usize = 4 << 10;

/// Maximum number of names in `type`, more than twice as many as there are. A longer list says nothing.
const MAX_TYPES: usize = 16;

/// One schema of a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SchemaView<'a> {
    document: &'a Value,
    schema: &'a Value,
}

/// Why a `$ref` is not followed, as a fragment about the document.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum ReferenceError {
    /// A pointer into the document that leads nowhere, or an anchor that is not in it once.
    #[error("`$ref` to `{0}`, which it does not contain")]
    Missing(String),
    /// Another document is never read.
    #[error("`$ref` to `{0}`, which is outside of it and is not read")]
    Outside(String),
    #[error("a `$ref` in it is not a string")]
    Invalid,
}

/// The schemas of an array's elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elements<'a> {
    /// The schemas of the first elements, if the array is a tuple.
    pub(crate) tuple: Option<&'a [Value]>,
    /// The schema of all other elements, if there is one.
    pub(crate) rest: Option<SchemaView<'a>>,
}

/// A lower or upper limit of a number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) value: f64,
    /// Whether the value itself is outside.
    pub(crate) is_exclusive: bool,
}

impl<'a> SchemaView<'a> {
    /// The root schema of a document.
    pub(crate) fn root(document: &'a Value) -> Self {
        Self { document, schema: document }
    }

    /// Another schema of the same document.
    pub(crate) fn at(self, schema: &'a Value) -> Self {
        Self { schema, ..self }
    }

    /// The schema at a JSON pointer into the document.
    pub(crate) fn at_pointer(self, pointer: &str) -> Option<Self> {
        self.document.pointer(pointer).map(|schema| self.at(schema))
    }

    /// Identifies the schema within its document. Never dereferenced.
    pub(crate) fn address(self) -> usize {
        std::ptr::from_ref(self.schema).addr()
    }

    /// The keywords. `None` for a boolean schema, and for a value that is no schema.
    pub(crate) fn keywords(self) -> Option<&'a Map<String, Value>> {
        self.schema.as_object()
    }

    /// Whether it is the schema `false`, which no value satisfies.
    pub(crate) fn is_false(self) -> bool {
        *self.schema == Value::Bool(false)
    }

    /// The value of a keyword.
    pub(crate) fn get(self, keyword: &str) -> Option<&'a Value> {
        self.keywords()?.get(keyword)
    }

    /// The value of a keyword that is a string.
    pub(crate) fn text(self, keyword: &str) -> Option<&'a str> {
        self.get(keyword)?.as_str()
    }

    /// The schema that is the value of a keyword.
    pub(crate) fn one(self, keyword: &str) -> Option<Self> {
        self.get(keyword).map(|schema| self.at(schema))
    }

    /// The schemas that a keyword lists.
    pub(crate) fn list(self, keyword: &str) -> impl Iterator<Item = Self> + Clone + use<'a> {
        let listed = self.get(keyword).and_then(Value::as_array).into_iter().flatten();
        listed.map(move |schema| self.at(schema))
    }

    /// The schemas that a keyword names.
    pub(crate) fn map(self, keyword: &str) -> impl Iterator<Item = (&'a str, Self)> + use<'a> {
        let named = self.get(keyword).and_then(Value::as_object).into_iter().flatten();
        named.map(move |(name, schema)| (name.as_str(), self.at(schema)))
    }

    /// The schema that the `$ref` refers to, or else the `$dynamicRef`, if there is one.
    ///
    /// A document is one schema resource here, so a dynamic reference resolves like a plain one.
    pub(crate) fn reference(self) -> Result<Option<Self>, ReferenceError> {
        let Some(reference) = self.get("$ref").or_else(|| self.get("$dynamicRef")) else { return Ok(None) };
        let reference = reference.as_str().ok_or(ReferenceError::Invalid)?;
        let shortened = || visible_preview(reference, 60);
        if reference.len() > MAX_REFERENCE {
            return Err(ReferenceError::Missing(shortened()));
        }
        let pointer = reference.strip_prefix('#').ok_or_else(|| ReferenceError::Outside(shortened()))?;
        let target = match pointer {
            "" => Some(self.document),
            _ if !pointer.starts_with(['/', '%']) => self.anchored(pointer),
            _ => self.document.pointer(pointer).or_else(|| self.document.pointer(&decoded(pointer)?)),
        };
        target.map(|target| Some(self.at(target))).ok_or_else(|| ReferenceError::Missing(shortened()))
    }

    /// The schema of the document with the `$anchor` or `$dynamicAnchor` of this name. `None` if several parts of the
    /// document, schemas or not, have that anchor, because validators differ in which one they take.
    fn anchored(self, name: &str) -> Option<&'a Value> {
        let mut found = None;
        let mut open = vec![self.document];
        for _ in 0..MAX_SEARCHED {
            let Some(value) = open.pop() else { return found };
            match value {
                Value::Object(fields) => {
                    let is_named =
                        |keyword: &&str| fields.get(*keyword).and_then(Value::as_str) == Some(name);
                    if ["$anchor", "$dynamicAnchor"].iter().any(is_named) && found.replace(value).is_some() {
                        return None;
                    }
                    let inner = fields.values().filter(|value| value.is_object() || value.is_array());
                    open.extend(inner.take(MAX_SEARCHED));
                }
                Value::Array(items) => {
                    let inner = items.iter().filter(|value| value.is_object() || value.is_array());
                    open.extend(inner.take(MAX_SEARCHED));
                }
                _ => {}
            }
        }
        open.is_empty().then_some(found).flatten()
    }

    /// The schemas that apply to the same value, without the target of `$ref`.
    pub(crate) fn in_place(self) -> impl Iterator<Item = Self> + use<'a> {
        let one = IN_PLACE_ONE.iter().filter_map(move |keyword| self.one(keyword));
        let list = IN_PLACE_LIST.iter().flat_map(move |keyword| self.list(keyword));
        let map = IN_PLACE_MAP.iter().flat_map(move |keyword| self.map(keyword));
        one.chain(list).chain(map.map(|(_, schema)| schema))
    }

    /// The schemas that apply to parts of the value.
    pub(crate) fn parts(self) -> impl Iterator<Item = Self> + use<'a> {
        let one = PART_ONE.iter().filter_map(move |keyword| self.one(keyword));
        let list = PART_LIST.iter().flat_map(move |keyword| self.list(keyword));
        let map = PART_MAP.iter().flat_map(move |keyword| self.map(keyword));
        one.filter(|part| !part.schema.is_array()).chain(list).chain(map.map(|(_, schema)| schema))
    }

    /// Length of the longest keyword. Definitions do not count: they are looked up by name.
    pub(crate) fn longest_keyword(self) -> usize {
        let length = |(keyword, value): (&String, &Value)| match value {
            _ if matches!(keyword.as_str(), "$defs" | "definitions") => 0,
            Value::Array(items) => items.len(),
            Value::Object(fields) => fields.len(),
            _ => 0,
        };
        self.keywords().into_iter().flatten().map(length).max().unwrap_or(0)
    }

    /// Whether the schema has an identifier of its own (`id` before draft 6), to which references
    /// in it are relative.
    pub(crate) fn has_identifier(self) -> bool {
        self.get("$id").or_else(|| self.get("id")).is_some_and(Value::is_string)
    }

    /// The alternatives of `anyOf` and those of `oneOf`.
    pub(crate) fn unions(self) -> impl Iterator<Item = impl Iterator<Item = Self> + Clone> {
        let unions =
            ["anyOf", "oneOf"].into_iter().filter(move |union| self.get(union).is_some_and(Value::is_array));
        unions.map(move |union| self.list(union))
    }

    /// The fields that an object may have, and their schemas.
    pub(crate) fn properties(self) -> impl Iterator<Item = (&'a str, Self)> + use<'a> {
        self.map("properties")
    }

    /// The schema of one of these fields.
    pub(crate) fn property(self, name: &str) -> Option<Self> {
        self.get("properties")?.get(name).map(|schema| self.at(schema))
    }

    /// The names of the fields that an object must have.
    pub(crate) fn required(self) -> impl Iterator<Item = &'a str> {
        self.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    /// The names of the types that `type` declares.
    pub(crate) fn declared_types(self) -> Vec<&'a str> {
        match self.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) if names.len() <= MAX_TYPES => {
                names.iter().filter_map(Value::as_str).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The type that other keywords imply where `type` declares none.
    pub(crate) fn implied_type(self) -> Option<&'static str> {
        let has = |keywords: &[&str]| keywords.iter().any(|keyword| self.get(keyword).is_some());
        if has(&["properties", "additionalProperties", "patternProperties"]) {
            Some("object")
        } else {
            has(&["items", "prefixItems"]).then_some("array")
        }
    }

    /// Whether only null satisfies the schema.
    pub(crate) fn is_null(self) -> bool {
        self.text("type") == Some("null") || self.get("const").is_some_and(Value::is_null)
    }

    /// Whether null satisfies the schema too, as `nullable` says in OpenAPI 3.0.
    pub(crate) fn is_nullable(self) -> bool {
        self.get("nullable") == Some(&Value::Bool(true))
    }

    /// The schemas of an array's elements.
    pub(crate) fn elements(self) -> Elements<'a> {
        let tuple = |keyword: &str| self.get(keyword).and_then(Value::as_array).map(Vec::as_slice);
        match (tuple("prefixItems"), tuple("items")) {
            (Some(tuple), _) => Elements { tuple: Some(tuple), rest: self.one("items") },
            // Before draft 2020-12.
            (None, Some(tuple)) => Elements { tuple: Some(tuple), rest: self.one("additionalItems") },
            (None, None) => Elements { tuple: None, rest: self.one("items") },
        }
    }

    /// The lower limit of a number.
    pub(crate) fn minimum(self) -> Option<Limit> {
        self.limit("minimum", "exclusiveMinimum", |exclusive, inclusive| exclusive >= inclusive)
    }

    /// The upper limit of a number.
    pub(crate) fn maximum(self) -> Option<Limit> {
        self.limit("maximum", "exclusiveMaximum", |exclusive, inclusive| exclusive <= inclusive)
    }

    fn limit(self, inclusive: &str, exclusive: &str, is_stricter: fn(f64, f64) -> bool) -> Option<Limit> {
        let number = |keyword: &str| self.get(keyword).and_then(Value::as_f64);
        // In draft 4, `exclusiveMinimum` is a boolean that says what kind of limit `minimum` is.
        let is_exclusive = self.get(exclusive) == Some(&Value::Bool(true));
        let inclusive = number(inclusive).map(|value| Limit { value, is_exclusive });
        let exclusive = number(exclusive).map(|value| Limit { value, is_exclusive: true });
        match (exclusive, inclusive) {
            (Some(exclusive), Some(inclusive)) if !is_stricter(exclusive.value, inclusive.value) => {
                Some(inclusive)
            }
            (exclusive, inclusive) => exclusive.or(inclusive),
        }
    }
}

/// A percent-encoded pointer without its escapes; `None` if that is not UTF-8.
fn decoded(pointer: &str) -> Option<String> {
    // The `url` crate would be another dependency of this module. The few escapes that occur are
    // those of a generic type's `<`, `>` and spaces.
    let mut bytes = Vec::with_capacity(pointer.len());
    let mut rest = pointer.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = (first == b'%')
            .then(|| tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok()))
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests;
