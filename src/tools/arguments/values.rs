//! The size of JSON values, for bounds on the work that they cause.

use serde_json::Value;

/// Bytes of an index in a JSON pointer, about.
const INDEX_BYTES: usize = 4;

/// The number of values in `value`, including itself; `None` if there are more than `most`.
pub(crate) fn count_up_to(value: &Value, most: usize) -> Option<usize> {
    let mut count = 0_usize;
    let mut rest = vec![value];
    while let Some(value) = rest.pop() {
        count += 1;
        match value {
            Value::Array(items) if count + rest.len() + items.len() <= most => rest.extend(items),
            Value::Object(fields) if count + rest.len() + fields.len() <= most => {
                rest.extend(fields.values());
            }
            Value::Array(_) | Value::Object(_) => return None,
            _ => {}
        }
    }
    (count <= most).then_some(count)
}

/// The bytes of the strings and names in `value`, with a few for each value; `None` if there are more than `most`.
pub(crate) fn text_up_to(value: &Value, most: usize) -> Option<usize> {
    /// A list of numbers counts too, because some keywords compare all of its items.
    const VALUE_BYTES: usize = 8;
    let mut bytes = 0_usize;
    let mut rest = vec![value];
    while let Some(value) = rest.pop() {
        bytes = bytes.saturating_add(VALUE_BYTES);
        match value {
            Value::String(text) => bytes = bytes.saturating_add(text.len()),
            Value::Array(items) => rest.extend(items),
            Value::Object(fields) => {
                bytes = fields.keys().fold(bytes, |bytes, name| bytes.saturating_add(name.len()));
                rest.extend(fields.values());
            }
            _ => {}
        }
        if bytes.saturating_add(rest.len() * VALUE_BYTES) > most {
            return None;
        }
    }
    Some(bytes)
}

/// Whether the JSON pointers of all values in `value` have at most `most` bytes together, if no name is escaped. A
/// validator makes one pointer for each error.
pub(crate) fn pointers_fit(value: &Value, most: usize) -> bool {
    let mut bytes = 0_usize;
    let mut rest = vec![(value, 0_usize)];
    while let Some((value, pointer)) = rest.pop() {
        bytes = bytes.saturating_add(pointer);
        if bytes > most {
            return false;
        }
        match value {
            Value::Array(items) => rest.extend(items.iter().map(|item| (item, pointer + INDEX_BYTES))),
            Value::Object(fields) => {
                rest.extend(fields.iter().map(|(name, value)| (value, pointer + 1 + name.len())));
            }
            _ => {}
        }
    }
    true
}

/// The number of levels of `value`: 1 for a number. The recursion is bounded, because arguments
/// have at most 128 levels.
pub(crate) fn levels_of(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(levels_of).max().unwrap_or(0),
        Value::Object(fields) => fields.values().map(levels_of).max().unwrap_or(0),
        _ => 0,
    }
}
