//! The size of JSON values, for bounds on the work that they cause.

use serde_json::Value;

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

/// The number of levels of `value`: 1 for a number. The recursion is bounded, because arguments
/// have at most 128 levels.
pub(crate) fn levels_of(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(levels_of).max().unwrap_or(0),
        Value::Object(fields) => fields.values().map(levels_of).max().unwrap_or(0),
        _ => 0,
    }
}
