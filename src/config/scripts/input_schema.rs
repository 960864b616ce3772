//! Finds the `export const input` of a TypeScript script, without running any of it.

use serde_json::Value;

use super::front_matter::value;
use crate::config::document::parse_literal;
use crate::config::error::ConfigError;
use crate::text::one_line;

/// Maximum bytes of the literal. Schemas of tools are a tenth of it.
const MAX_LITERAL: usize = 64 << 10;

const DECLARATION: &str = "export const input";

/// The schema that a script declares at the beginning of a line; `None` if it declares none.
///
/// # Errors
///
/// Why the declaration cannot be read: it has to be a literal.
pub(super) fn declared(source: &str) -> Result<Option<Value>, String> {
    let mut offset = 0;
    for line in source.split_inclusive('\n') {
        if let Some(rest) = line.strip_prefix(DECLARATION)
            && rest.starts_with([' ', '\t', ':', '='])
        {
            return literal(&source[offset + DECLARATION.len()..]).map(Some);
        }
        offset += line.len();
    }
    Ok(None)
}

/// Parses the object after `=`. `text` follows the declared name.
fn literal(text: &str) -> Result<Value, String> {
    let problem = "`export const input` must be an object literal, such as \
        `{ type: \"object\", properties: { path: { type: \"string\" } } }`";
    let (_type, object) = text.split_once('=').ok_or(problem)?;
    let object = object.trim_start();
    if !object.starts_with('{') {
        return Err(problem.to_owned());
    }
    let end = end_of_object(object)
        .ok_or_else(|| format!("{problem}: its end was not found within {MAX_LITERAL} bytes"))?;
    match parse_literal(&object[..end]) {
        Ok(node) => Ok(value(&node)),
        Err(findings) => {
            let found = ConfigError::new("the literal", findings).to_string();
            Err(format!("{problem}: {}", one_line(&found)))
        }
    }
}

/// The offset after the bracket that closes the first one. Strings and comments are skipped.
fn end_of_object(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let bytes = &bytes[..bytes.len().min(MAX_LITERAL)];
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            b'"' | b'\'' | b'`' => {
                at += 1;
                while *bytes.get(at)? != byte {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at += bytes[at..].iter().position(|&byte| byte == b'\n')?;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at += 2 + bytes[at + 2..].windows(2).position(|pair| pair == b"*/")? + 1;
            }
            _ => {}
        }
        at += 1;
    }
    None
}
