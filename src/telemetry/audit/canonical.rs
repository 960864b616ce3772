//! Canonical JSON (RFC 8785), which gives equal values equal text and so equal hashes.
//!
//! `serde_json_canonicalizer` and `serde_jcs` only return the text of a value. The trail also needs the offsets at which
//! members would begin, to write each record before it has those of the chain, and once for both its hash and its line.

use std::cmp::Ordering;

use serde::Serialize;
use serde_json::{Map, Value};

/// The highest integer that is exact as a number in RFC 8785.
const MAX_SAFE_INTEGER: u64 = 1 << 53;

/// The canonical text of an object.
pub(super) fn object(fields: &Map<String, Value>) -> Vec<u8> {
    let mut text = Vec::new();
    write_object(&mut text, fields);
    text
}

/// Writes the canonical text of an object with these members, whose names are distinct. Members that are null are left
/// out. Returns for each of `names`, which are sorted and which the object does not have, the offset in `text` at which
/// a member of that name would begin: before the first member that sorts after it, or before the end.
pub(super) fn write_record<const N: usize>(
    text: &mut Vec<u8>,
    fields: &[(&str, Value)],
    names: [&str; N],
) -> [usize; N] {
    let mut sorted: Vec<(&str, &Value)> =
        fields.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (*name, value)).collect();
    let (mut offsets, mut found) = ([0; N], 0);
    write_sorted(text, &mut sorted, |text, next| {
        while names.get(found).is_some_and(|name| order(next, name).is_gt()) {
            offsets[found] = text.len();
            found += 1;
        }
    });
    offsets[found..].fill(text.len().saturating_sub(1));
    offsets
}

/// The canonical text of a value. Values are nested at most as deep as serde_json parses.
pub(super) fn value(value: &Value) -> Vec<u8> {
    let mut text = Vec::new();
    write(&mut text, value);
    text
}

fn write(text: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Object(fields) => write_object(text, fields),
        Value::Array(items) => {
            text.push(b'[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    text.push(b',');
                }
                write(text, item);
            }
            text.push(b']');
        }
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(integer), _) if integer <= MAX_SAFE_INTEGER => write_simple(text, &integer),
            (None, Some(integer)) if integer.unsigned_abs() <= MAX_SAFE_INTEGER => {
                write_simple(text, &integer);
            }
            // JSON has no numbers that are not finite.
            _ => text.extend_from_slice(float(number.as_f64().unwrap_or_default()).as_bytes()),
        },
        // serde_json escapes strings as RFC 8785 requires.
        other => write_simple(text, other),
    }
}

/// Writes a value that is neither an object nor an array.
fn write_simple(text: &mut Vec<u8>, value: &impl Serialize) {
    // Writing these values to a vector cannot fail.
    let _written = serde_json::to_writer(text, value);
}

fn write_object(text: &mut Vec<u8>, fields: &Map<String, Value>) {
    let mut sorted: Vec<(&str, &Value)> = fields.iter().map(|(name, value)| (name.as_str(), value)).collect();
    write_sorted(text, &mut sorted, |_text, _name| ());
}

/// Writes an object, and calls `before` before each member with its name.
fn write_sorted(text: &mut Vec<u8>, fields: &mut [(&str, &Value)], mut before: impl FnMut(&[u8], &str)) {
    // Looked at once for all, and not for each of some fifty comparisons.
    if fields.iter().all(|(name, _)| name.is_ascii()) {
        fields.sort_unstable_by_key(|(name, _)| *name);
    } else {
        fields.sort_unstable_by(|(one, _), (other, _)| order(one, other));
    }
    text.push(b'{');
    for (position, (name, value)) in fields.iter().enumerate() {
        if position > 0 {
            text.push(b',');
        }
        before(text, name);
        write_simple(text, name);
        text.push(b':');
        write(text, value);
    }
    text.push(b'}');
}

/// The order of names by their UTF-16 code units, which for ASCII equals the order of bytes.
fn order(one: &str, other: &str) -> Ordering {
    if one.is_ascii() && other.is_ascii() {
        one.cmp(other)
    } else {
        one.encode_utf16().cmp(other.encode_utf16())
    }
}

/// A number as ECMAScript writes it: with the shortest digits that identify it, and with an exponent from 1e21 on and
/// below 1e-6.
fn float(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let shortest = format!("{:e}", number.abs());
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    // Number of digits before the decimal point; negative for zeros after it.
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
