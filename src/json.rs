//! JSON as text, and where text whose sender chooses its size is parsed into a tree.
//!
//! A tree of [`Value`]s takes up to 90 times the bytes of its text (`[{"":0},{"":0}]`), and the
//! sender of the text chooses the factor. So values that only pass through the host stay text
//! ([`Json`]). Where a tree is needed, [`tree`] and [`check`] first compute its memory cost without
//! allocating, and refuse text whose cost exceeds the budget. Code that parses a tree without them
//! has text that passed them before, or bounds its length first: of schemas, of audited results, of
//! a request without its input.

pub(crate) mod numbers;
mod walk;

use std::fmt;
use std::ops::Index;
use std::sync::{Arc, OnceLock};

use serde::de::{DeserializeOwned, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use self::walk::{Meter, exact_copy, walk};

/// Bytes that any tree may take, however short its text is: about 55,000 numbers or 9,000 small
/// objects.
const BASE_BUDGET: usize = 6 << 20;

/// Budget in bytes of a tree for `bytes` of text, if the text, the tree and a second copy of the
/// text exist at the same time: together at most four times the text plus 8 MB.
pub(crate) const fn budget(bytes: usize) -> usize {
    BASE_BUDGET + 2 * bytes
}

/// A valid JSON text without insignificant whitespace. Cheap to clone.
///
/// It is kept as text because a tree takes up to 90 times as much memory. [`Json::value`] creates
/// one on demand.
#[derive(Clone)]
pub struct Json(Arc<Document>);

struct Document {
    text: Box<RawValue>,
    /// The same with marks in place of the nulls that were no JSON numbers, if there are any.
    marked: Option<Box<str>>,
    /// Memory cost of the tree in bytes.
    cost: usize,
    /// The tree, once it was requested; `None` if it would be too large.
    tree: OnceLock<Option<Value>>,
}

/// Why a text cannot be parsed into a tree.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TreeError {
    /// It is not JSON, or is nested too deeply.
    #[error("{0}")]
    Invalid(#[from] serde_json::Error),
    /// It is JSON, but has a number that no `f64` can hold.
    #[error("{0}")]
    NumberOutOfRange(serde_json::Error),
    /// The tree would exceed its budget.
    #[error("more than {values} values in one JSON text")]
    TooMany {
        /// Number of values that were counted within the budget.
        values: usize,
    },
}

impl Json {
    /// Parses JSON text and stores it without whitespace. Integers beyond 64 bits keep their digits;
    /// in the tree they are the nearest `f64`.
    ///
    /// # Errors
    ///
    /// If it is not JSON, is nested more than 127 levels deep, or contains a number that does not
    /// fit into an `f64` or a string with a lone surrogate.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let mut compact = Vec::with_capacity(text.len());
        let mut meter = Meter::new(usize::MAX);
        walk(text, &mut meter, Some(&mut compact))?;
        if meter.has_big_numbers {
            let (compact, cost) = exact_copy(text, false)?;
            return Ok(Self::new(RawValue::from_string(compact)?, cost));
        }
        let compact = String::from_utf8(compact).map_err(serde_json::Error::custom)?;
        Ok(Self::new(RawValue::from_string(compact)?, meter.cost))
    }

    /// The same for a text that [`numbers::marked`] has made: its marks are null, except for Python.
    ///
    /// # Errors
    ///
    /// As [`Json::parse`].
    pub(crate) fn parse_marked(text: &str) -> Result<Self, serde_json::Error> {
        if !numbers::may_have_marks(text) {
            return Self::parse(text);
        }
        let (marked, _) = exact_copy(text, true)?;
        let (compact, cost) = exact_copy(text, false)?;
        // A string may look like a mark.
        let marked = (marked != compact).then(|| marked.into_boxed_str());
        Ok(Self(Arc::new(Document {
            text: RawValue::from_string(compact)?,
            marked,
            cost,
            tree: OnceLock::new(),
        })))
    }

    /// Serializes a value to JSON.
    ///
    /// # Errors
    ///
    /// If it has no JSON representation, such as a map whose keys are lists.
    pub fn from_serialize(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        Self::written(serde_json::to_string(value)?)
    }

    /// Wraps text that serde_json has written. It may be nested deeper than the parser accepts;
    /// then [`Json::value`] returns `None`.
    fn written(text: String) -> Result<Self, serde_json::Error> {
        let mut meter = Meter::new(usize::MAX);
        let is_readable = walk(&text, &mut meter, None).is_ok();
        Ok(Self::new(RawValue::from_string(text)?, if is_readable { meter.cost } else { usize::MAX }))
    }

    fn new(text: Box<RawValue>, cost: usize) -> Self {
        Self(Arc::new(Document { text, marked: None, cost, tree: OnceLock::new() }))
    }

    /// The text.
    pub fn text(&self) -> &str {
        self.0.text.get()
    }

    /// The text, without a copy if this is its only owner.
    pub(crate) fn into_text(self) -> String {
        match Arc::try_unwrap(self.0) {
            Ok(document) => Box::<str>::from(document.text).into_string(),
            Err(shared) => shared.text.get().to_owned(),
        }
    }

    /// The text as Python's `json` reads it: with `NaN` and the infinities that it had.
    pub(crate) fn into_python_text(self) -> String {
        match &self.0.marked {
            Some(marked) => numbers::unmarked(marked),
            None => self.into_text(),
        }
    }

    /// The value of a field, if this is an object that has it.
    pub(crate) fn field(&self, name: &str) -> Option<Self> {
        let text = self.0.marked.as_deref().unwrap_or(self.text());
        let mut found = None;
        each_field(text, |key, value| {
            if key == name {
                found = Some(value);
            }
        })
        .ok()?;
        found.and_then(|value| Self::parse_marked(value.get()).ok())
    }

    /// The value as a tree, created by the first call. `None` if the tree would take more than 6 MB
    /// plus twice the bytes of the text, which happens only for texts of very many small values;
    /// [`Json::deserialize`] parses those into types that take less.
    pub fn value(&self) -> Option<&Value> {
        let document = &*self.0;
        let read = || {
            let text = document.text.get();
            if document.cost > budget(text.len()) { None } else { serde_json::from_str(text).ok() }
        };
        document.tree.get_or_init(read).as_ref()
    }

    /// Deserializes the value into a type, whatever memory that takes.
    ///
    /// # Errors
    ///
    /// If the value is not of that type.
    pub fn deserialize<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.text())
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        self.text() == "null"
    }

    /// The value, if it is a string.
    pub(crate) fn as_string(&self) -> Option<String> {
        if self.text().starts_with('"') { self.deserialize().ok() } else { None }
    }

    /// The string in the field `name`, if this is an object that has one.
    pub(crate) fn string_field(&self, name: &str) -> Option<String> {
        let mut found = None;
        let read = each_field(self.text(), |key, value| {
            if key == name {
                found = serde_json::from_str(value.get()).ok();
            }
        });
        read.ok().and(found)
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        // A tree can always be serialized.
        Self::written(value.to_string()).unwrap_or_else(|_| Self::new(RawValue::NULL.to_owned(), 0))
    }
}

impl From<Vec<Value>> for Json {
    fn from(items: Vec<Value>) -> Self {
        Value::Array(items).into()
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        Value::String(text).into()
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.text.serialize(serializer)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text())
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.text())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl PartialEq<Value> for Json {
    fn eq(&self, other: &Value) -> bool {
        self.value() == Some(other)
    }
}

/// The value at a key or a position, as for [`Value`]; also `null` if there is no tree (see
/// [`Json::value`]).
impl<I: serde_json::value::Index> Index<I> for Json {
    type Output = Value;

    fn index(&self, index: I) -> &Value {
        static NULL: Value = Value::Null;
        self.value().and_then(|value| value.get(index)).unwrap_or(&NULL)
    }
}

/// Parses text into a tree that takes at most `budget` bytes.
pub(crate) fn tree(text: &str, budget: usize) -> Result<Value, TreeError> {
    check(text, budget)?;
    Ok(serde_json::from_str(text)?)
}

/// Checks that a tree of the text, or types deserialized from it, take at most `budget` bytes, and
/// returns the cost in bytes. Allocates at most the longest string that has escapes.
pub(crate) fn check(text: &str, budget: usize) -> Result<usize, TreeError> {
    let mut meter = Meter::new(budget);
    match walk(text, &mut meter, None) {
        Err(_) if meter.is_exceeded => Err(TreeError::TooMany { values: meter.values }),
        Err(error) if is_json(text) && numbers::has_infinite(text) => Err(TreeError::NumberOutOfRange(error)),
        walked => {
            walked?;
            Ok(meter.cost)
        }
    }
}

/// Whether the text is JSON, whatever its numbers and however deeply it is nested.
fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// The byte range in `text` of a part that was borrowed from it.
pub(crate) fn range_in(text: &str, part: &RawValue) -> std::ops::Range<usize> {
    let start = part.get().as_ptr().addr().saturating_sub(text.as_ptr().addr()).min(text.len());
    start..(start + part.get().len()).min(text.len())
}

/// The first `most` elements of an array, as text.
///
/// # Errors
///
/// If it is not an array.
pub(crate) fn items(text: &str, most: usize) -> Result<Vec<&RawValue>, serde_json::Error> {
    struct Items(usize);
    impl<'de> Visitor<'de> for Items {
        type Value = Vec<&'de RawValue>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
            let mut found = Vec::new();
            while found.len() < self.0 {
                let Some(item) = items.next_element()? else { return Ok(found) };
                found.push(item);
            }
            while items.next_element::<IgnoredAny>()?.is_some() {}
            Ok(found)
        }
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let found = deserializer.deserialize_seq(Items(most))?;
    deserializer.end()?;
    Ok(found)
}

/// Calls `look` with the text of each element of an array.
///
/// # Errors
///
/// If it is not an array, or if `look` fails.
pub(crate) fn each_item<'de>(
    text: &'de str,
    look: impl FnMut(&'de RawValue) -> Result<(), serde_json::Error>,
) -> Result<(), serde_json::Error> {
    struct Each<F>(F);
    impl<'de, F: FnMut(&'de RawValue) -> Result<(), serde_json::Error>> Visitor<'de> for Each<F> {
        type Value = ();

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
            while let Some(item) = items.next_element()? {
                (self.0)(item).map_err(A::Error::custom)?;
            }
            Ok(())
        }
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer.deserialize_seq(Each(look))?;
    deserializer.end()
}

/// Calls `look` with the key and the value's text of each field of an object.
///
/// # Errors
///
/// If it is not an object.
pub(crate) fn each_field<'de>(
    text: &'de str,
    look: impl FnMut(&str, &'de RawValue),
) -> Result<(), serde_json::Error> {
    struct Each<F>(F);
    impl<'de, F: FnMut(&str, &'de RawValue)> Visitor<'de> for Each<F> {
        type Value = ();

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
            while let Some(key) = fields.next_key::<Key<'de>>()? {
                let value = fields.next_value()?;
                (self.0)(&key.0, value);
            }
            Ok(())
        }
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer.deserialize_map(Each(look))?;
    deserializer.end()
}

/// The text of the value of `name`, if the object has no other fields. Reads until the end.
pub(crate) fn lone_field<'de>(text: &'de str, name: &str) -> Option<&'de RawValue> {
    let mut found = None;
    let mut others = 0;
    each_field(text, |key, value| if key == name { found = Some(value) } else { others += 1 }).ok()?;
    found.filter(|_| others == 0)
}

/// A key, borrowed if it has no escapes.
#[derive(serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct Key<'a>(#[serde(borrow)] pub(crate) std::borrow::Cow<'a, str>);

/// Sets those of the fields that have a value, in this order. `object` is an object.
pub(crate) fn set_present<'a>(
    object: &mut Value,
    fields: impl IntoIterator<Item = (&'a str, Option<Value>)>,
) {
    for (name, value) in fields {
        if let Some(value) = value {
            object[name] = value;
        }
    }
}

/// Deserializes a field that is present, even if it is `null`, which `Option` alone would read as absent. The field
/// needs serde's `default` too.
#[cfg(any(feature = "mcp", feature = "server"))]
pub(crate) fn present<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    serde::Deserialize::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests;
