//! Parts of a schema that are left out of the check: an unknown `$schema`, patterns that need
//! backtracking, whose time has no bound, and the content of strings, which would be decoded and parsed.

use serde_json::Value;

/// Drafts that `jsonschema` knows, as their URIs name them.
const DRAFTS: [&str; 5] = ["draft-04", "draft-06", "draft-07", "2019-09", "2020-12"];

/// Removes the parts of `schema` that cannot be checked.
pub(crate) fn leave_out(schema: &mut Value) {
    if let Value::Object(root) = schema {
        let is_known = root.get("$schema").and_then(Value::as_str).is_some_and(|draft| {
            draft.contains("json-schema.org") && DRAFTS.iter().any(|known| draft.contains(known))
        });
        if !is_known {
            root.shift_remove("$schema");
        }
    }
    leave_out_below(schema);
}

/// The recursion is bounded by the parser's 128 levels.
fn leave_out_below(schema: &mut Value) {
    match schema {
        Value::Object(keywords) => {
            if keywords.get("pattern").and_then(Value::as_str).is_some_and(needs_backtracking) {
                keywords.shift_remove("pattern");
            }
            // Drafts 6 and 7 assert these keywords, later drafts do not. A field may have such a name; its schema is
            // not a string.
            for keyword in ["contentEncoding", "contentMediaType"] {
                if keywords.get(keyword).is_some_and(Value::is_string) {
                    keywords.shift_remove(keyword);
                }
            }
            let patterns = keywords.get("patternProperties").and_then(Value::as_object);
            if patterns.is_some_and(|patterns| patterns.keys().any(|pattern| needs_backtracking(pattern))) {
                // The patterns determine which names are additional.
                for keyword in ["patternProperties", "additionalProperties", "unevaluatedProperties"] {
                    keywords.shift_remove(keyword);
                }
            }
            for (keyword, value) in keywords.iter_mut() {
                // Examples and constants are data, in which `pattern` has no special meaning.
                if !matches!(keyword.as_str(), "enum" | "const" | "default" | "examples" | "example") {
                    leave_out_below(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out_below),
        _ => {}
    }
}

fn needs_backtracking(pattern: &str) -> bool {
    let back_reference =
        |pair: &[u8]| pair[0] == b'\\' && (pair[1].is_ascii_digit() || pair[1] == b'k') && pair[1] != b'0';
    ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|group| pattern.contains(group))
        || pattern.as_bytes().windows(2).any(back_reference)
}
