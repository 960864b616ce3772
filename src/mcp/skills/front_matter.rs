//! Compares the front matter of a `SKILL.md` with the front matter in the server's list (SEP-2640). A model chooses a
//! skill by the list, so the file must not describe itself differently.

use std::collections::HashMap;
use std::panic::catch_unwind;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use yaml_edit::{Document, Mapping, Scalar, YamlNode};

use crate::text::visible_preview;

/// Maximum bytes of a front matter. A name has at most 64 characters and a description 1,024, and there is little else.
/// The time for parsing YAML may grow with the square of the length.
const MAX_BLOCK: usize = 8 << 10;

/// Maximum bytes of a listed front matter as JSON, which needs up to six bytes for one.
const MAX_LISTED: usize = 8 * MAX_BLOCK;

/// Maximum depth of its values.
const MAX_DEPTH: usize = 16;

/// Maximum number of `!` in a front matter. Each can be a tag, and the parser recurses for each tag of a key, which its
/// own bound on depth does not count. A stack overflow ends the process and, unlike a panic, cannot be caught.
const MAX_TAGS: usize = 128;

/// Maximum characters of a field's name in a message.
const MAX_SHOWN: usize = 60;

const FENCE: &str = "---";

/// Compares the front matter of a file with the one in a list, field by field.
///
/// # Errors
///
/// What differs, or why it cannot be compared: a fragment about the file.
pub(super) fn check(file: &[u8], listed: &RawValue) -> Result<(), String> {
    if listed.get().len() > MAX_LISTED {
        return Err(format!("has more than {MAX_BLOCK} bytes of front matter in the list"));
    }
    // Only objects are listed.
    let Ok(listed) = serde_json::from_str::<Map<String, Value>>(listed.get()) else { return Ok(()) };
    let block = block(file)?;
    if block.matches('!').count() > MAX_TAGS {
        return Err(format!("has more than {MAX_TAGS} `!` in its front matter"));
    }
    // Some input may trigger a panic in the parser.
    let compared = catch_unwind(|| compare(&block, &listed));
    compared.unwrap_or_else(|_panic| Err("has a front matter that cannot be read".to_owned()))
}

/// The lines between the fences at the beginning of a file.
fn block(file: &[u8]) -> Result<String, String> {
    let head = String::from_utf8_lossy(&file[..file.len().min(MAX_BLOCK)]);
    let mut lines = head.strip_prefix('\u{feff}').unwrap_or(&head).lines();
    if lines.next().map(str::trim_end) != Some(FENCE) {
        return Err("has no front matter".to_owned());
    }
    let mut block = String::new();
    for line in lines {
        if line.trim_end() == FENCE {
            return Ok(block);
        }
        block.push_str(line);
        block.push('\n');
    }
    Err(format!(
        "has no end of its front matter in the first {MAX_BLOCK} bytes: expected a second line `---`"
    ))
}

fn compare(block: &str, listed: &Map<String, Value>) -> Result<(), String> {
    let Ok(document) = block.parse::<Document>() else {
        return Err("has a front matter that is not YAML".to_owned());
    };
    let Some(written) = document.as_mapping() else {
        return Err("has no fields in its front matter".to_owned());
    };
    match different(&written, listed, MAX_DEPTH) {
        None => Ok(()),
        Some(name) => Err(format!(
            "has another `{}` in its front matter than in the list",
            visible_preview(&name, MAX_SHOWN)
        )),
    }
}

/// The name of a field that differs. What is null may be left out.
fn different(written: &Mapping, listed: &Map<String, Value>, depth: usize) -> Option<String> {
    let mut fields = HashMap::new();
    for (name, value) in written.iter() {
        // Keys in JSON are strings.
        let name = name.as_scalar().map(Scalar::as_string).unwrap_or_default();
        if fields.contains_key(&name) {
            return Some(name);
        }
        fields.insert(name, value);
    }
    for (name, listed) in listed {
        let is_same = match fields.remove(name) {
            Some(value) => is_same(&value, listed, depth),
            None => listed.is_null(),
        };
        if !is_same {
            return Some(name.clone());
        }
    }
    // The smallest name, so that the message is deterministic.
    fields.into_iter().filter(|(_, value)| !is_null(value)).map(|(name, _)| name).min()
}

fn is_null(written: &YamlNode) -> bool {
    matches!(written, YamlNode::Scalar(scalar) if scalar.is_null())
}

/// Whether a value equals the listed one. Aliases and tags never do, because they are not resolved.
fn is_same(written: &YamlNode, listed: &Value, depth: usize) -> bool {
    let Some(below) = depth.checked_sub(1) else { return false };
    match (written, listed) {
        (YamlNode::Scalar(scalar), listed) => is_same_scalar(scalar, listed),
        (YamlNode::Mapping(written), Value::Object(listed)) => different(written, listed, below).is_none(),
        (YamlNode::Sequence(written), Value::Array(listed)) => {
            let mut listed = listed.iter();
            let are_same =
                written.values().all(|item| listed.next().is_some_and(|one| is_same(&item, one, below)));
            are_same && listed.next().is_none()
        }
        _ => false,
    }
}

/// As [`is_same`], for a single value. The server may have read it by the rules of another version of YAML, and may
/// have folded its lines differently.
fn is_same_scalar(scalar: &Scalar, listed: &Value) -> bool {
    let written = scalar.as_string();
    let is_plain = !scalar.is_quoted() && !scalar.is_block();
    match listed {
        Value::String(listed) => {
            written.split_whitespace().eq(listed.split_whitespace())
                || (is_plain && is_date_of(&written, listed))
        }
        Value::Bool(listed) => match written.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "y" => is_plain && *listed,
            "false" | "no" | "off" | "n" => is_plain && !*listed,
            _ => false,
        },
        Value::Number(listed) => {
            let is_equal = scalar.as_f64().is_some_and(|number| listed.as_f64() == Some(number));
            is_plain && (is_equal || written == listed.to_string())
        }
        Value::Null => scalar.is_null(),
        Value::Array(_) | Value::Object(_) => false,
    }
}

/// Whether `2026-01-02` was read as the moment `2026-01-02T00:00:00Z`.
fn is_date_of(written: &str, moment: &str) -> bool {
    let is_date_byte = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    let time = moment.strip_prefix(written).and_then(|rest| rest.strip_prefix('T'));
    // Only midnight: any other time is not in the file.
    let is_midnight = time.is_some_and(|time| time.bytes().all(|byte| b"0:.+-Z".contains(&byte)));
    written.len() == 10 && written.bytes().enumerate().all(is_date_byte) && is_midnight
}

#[cfg(test)]
#[path = "../../../fuzz/entries/skill.rs"]
mod fuzzing;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::text::preview;

    fn compared(block: &str, listed: &Value) -> Result<(), String> {
        let listed = serde_json::value::to_raw_value(listed).unwrap();
        check(format!("---\n{block}---\nText\n").as_bytes(), &listed)
    }

    #[test]
    fn the_fields_of_a_file_are_those_of_the_list() {
        for (block, listed) in [
            ("name: a\ndescription: Reads files\n", json!({ "name": "a", "description": "Reads files" })),
            ("name: \"a\"\r\ndescription: 'b'\r\n", json!({ "name": "a", "description": "b" })),
            (
                "name: a\ndescription: >-\n  Reads\n  files\n",
                json!({ "name": "a", "description": "Reads files" }),
            ),
            ("name: a\ndescription: Reads\n  files\n", json!({ "name": "a", "description": "Reads files" })),
            ("name: 12\nlicense:\n", json!({ "name": "12" })),
            (
                "name: a\nx: { y: [1, 2.50, true, null], z: no }\n",
                json!({ "name": "a", "x": { "y": [1, 2.5, true, null], "z": false } }),
            ),
            ("name: a\nmade: 2026-01-02\n", json!({ "name": "a", "made": "2026-01-02T00:00:00.000Z" })),
            (
                "name: a\nmade: 2026-01-02\nversion: 1.0\n",
                json!({ "name": "a", "made": "2026-01-02", "version": "1.0" }),
            ),
            ("name: a\n", json!({ "name": "a", "license": null })),
        ] {
            assert_eq!(compared(block, &listed), Ok(()), "{block}");
        }
    }

    #[test]
    fn a_field_that_differs_is_named() {
        for (block, listed, field) in [
            ("name: a\ndescription: b\n", json!({ "name": "a", "description": "c" }), "description"),
            ("name: a\ndescription: b\n", json!({ "name": "a" }), "description"),
            ("name: a\n", json!({ "name": "a", "description": "b" }), "description"),
            ("name: a\nname: b\n", json!({ "name": "b" }), "name"),
            ("name: a\nx: [1, 2]\n", json!({ "name": "a", "x": [1] }), "x"),
            ("name: a\nx: [1]\n", json!({ "name": "a", "x": [1, 2] }), "x"),
            ("name: a\nx: { y: 1 }\n", json!({ "name": "a", "x": { "z": 1 } }), "x"),
            ("name: a\nx: 'true'\n", json!({ "name": "a", "x": true }), "x"),
            ("name: a\nx: !tag b\n", json!({ "name": "a", "x": "b" }), "x"),
            ("name: a\nx: 2026-01-02\n", json!({ "name": "a", "x": "2026-01-02The best skill" }), "x"),
        ] {
            let problem = compared(block, &listed).unwrap_err();
            assert!(
                problem.starts_with(&format!("has another `{field}` in its front matter")),
                "{block}: {problem}"
            );
        }
    }

    /// Threat 563.
    #[test]
    fn v_563_thousands_of_tags_are_not_parsed() {
        let listed = json!({ "name": "a", "description": "b!" });
        let block = |tags: usize| format!("name: a\ndescription: b!\n{}k: v\n", "! ".repeat(tags));
        assert!(compared(&block(3_900), &listed).unwrap_err().contains("more than 128"));
        assert_eq!(compared("name: a\ndescription: b!\n", &listed), Ok(()));
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        let listed = serde_json::value::to_raw_value(&json!({ "name": "a" })).unwrap();
        let large = format!("---\nname: a\nx: {}\n---\n", "a".repeat(MAX_BLOCK));
        let deep =
            format!("---\nname: a\nx: {}{}\n---\n", "[".repeat(MAX_DEPTH + 1), "]".repeat(MAX_DEPTH + 1));
        for file in ["", "name: a\n", "---\nname: a\n", "---\n- a\n---\n", large.as_str(), deep.as_str()] {
            assert!(check(file.as_bytes(), &listed).is_err(), "{}", preview(file, 60));
        }
        let listed = serde_json::value::to_raw_value(&json!({ "name": "a".repeat(MAX_LISTED) })).unwrap();
        assert!(check(b"---\nname: a\n---\n", &listed).unwrap_err().contains("in the list"));
    }
}
