//! Canonical JSON (RFC 8785), which gives equal values equal text and so equal hashes.
//!
//! `serde_json_canonicalizer` and `serde_jcs` give the text of a value and nothing else. The trail
//! also needs the offset at which a member would begin, to write each record once for its hash and
//! its line.

use serde_json::{Map, Value};

/// Above this, integers are not exact as the numbers of JSON that RFC 8785 knows.
const MAX_SAFE_INTEGER: u64 = 1 << 53;

/// The canonical text of an object.
pub(super) fn object(fields: &Map<String, Value>) -> String {
    let mut text = String::new();
    write_object(&mut text, fields);
    text
}

/// As [`object`], and the offset in it at which a member of this name, which the object does not
/// have, would begin: before a member that comes later, or before the end.
pub(super) fn object_and_offset(fields: &Map<String, Value>, name: &str) -> (String, usize) {
    let mut text = String::new();
    let mut offset = None;
    write_sorted(&mut text, fields, |text, next| {
        if offset.is_none() && next.encode_utf16().gt(name.encode_utf16()) {
            offset = Some(text.len());
        }
    });
    let end = text.len().saturating_sub(1);
    (text, offset.unwrap_or(end))
}

/// The canonical text of a value. Values are nested at most as deep as serde_json parses.
pub(super) fn value(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value);
    text
}

fn write(text: &mut String, value: &Value) {
    match value {
        Value::Object(fields) => write_object(text, fields),
        Value::Array(items) => {
            text.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                write(text, item);
            }
            text.push(']');
        }
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(integer), _) if integer <= MAX_SAFE_INTEGER => text.push_str(&integer.to_string()),
            (None, Some(integer)) if integer.unsigned_abs() <= MAX_SAFE_INTEGER => {
                text.push_str(&integer.to_string());
            }
            // JSON has no numbers that are not finite.
            _ => text.push_str(&float(number.as_f64().unwrap_or_default())),
        },
        // serde_json escapes what RFC 8785 escapes, in the same way.
        other => text.push_str(&other.to_string()),
    }
}

fn write_object(text: &mut String, fields: &Map<String, Value>) {
    write_sorted(text, fields, |_text, _name| ());
}

/// Writes an object, and calls `before` before each member with its name.
fn write_sorted(text: &mut String, fields: &Map<String, Value>, mut before: impl FnMut(&str, &str)) {
    let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
    sorted.sort_unstable_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
    text.push('{');
    for (position, (name, value)) in sorted.into_iter().enumerate() {
        if position > 0 {
            text.push(',');
        }
        before(text, name);
        text.push_str(&Value::from(name.as_str()).to_string());
        text.push(':');
        write(text, value);
    }
    text.push('}');
}

/// A number as ECMAScript writes it: the shortest digits that mean it, with an exponent from 1e21 on and
/// below 1e-6.
fn float(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let shortest = format!("{:e}", number.abs());
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    // Digits before the decimal point; negative for zeros behind it.
    let point = exponent.parse::<i32>().unwrap_or_default() + 1;
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or_default());
    let magnitude = if count <= point && point <= 21 {
        format!("{digits}{}", zeros(point - count))
    } else if 0 < point && point <= 21 {
        let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or_default());
        format!("{whole}.{fraction}")
    } else if -6 < point && point <= 0 {
        format!("0.{}{digits}", zeros(-point))
    } else {
        let (first, rest) = digits.split_at(1);
        let separator = if rest.is_empty() { "" } else { "." };
        let sign = if point > 0 { "+" } else { "-" };
        format!("{first}{separator}{rest}e{sign}{}", (point - 1).abs())
    };
    if number < 0.0 { format!("-{magnitude}") } else { magnitude }
}

#[cfg(test)]
mod tests;
