//! The headers that repeat parts of a message, so that proxies need not read it (revision
//! 2026-07-28).

use std::collections::HashMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use rmcp::model::{JsonObject, ListToolsResult};
use serde_json::Value;

/// What one tool may promote, and how deep in its arguments: bounds for what a server declares.
const MOST_PROMOTED: usize = 32;
const DEEPEST: usize = 16;

/// Bytes of a value that is promoted. Longer ones would be refused by most servers anyway.
const LONGEST_VALUE: usize = 4096;

/// An argument that a tool wants as a header too: its path and the header's name.
type Promoted = (Vec<String>, HeaderName);

/// Which arguments of which tools travel as headers, as of the last list.
#[derive(Default)]
pub(super) struct Promotions(Mutex<HashMap<String, Vec<Promoted>>>);

impl Promotions {
    /// Learns from a list of tools and leaves out those whose declarations break the rules, as the
    /// specification demands.
    pub(super) fn learn(&self, list: &mut ListToolsResult) {
        let mut promotions = self.0.lock();
        list.tools.retain(|tool| {
            let mut found = Vec::new();
            if collect(&tool.input_schema, &mut Vec::new(), &mut found).is_none() {
                tracing::warn!(tool = &*tool.name, "a tool with unusable `x-mcp-header` was left out");
                return false;
            }
            if found.is_empty() {
                promotions.remove(&*tool.name);
            } else {
                promotions.insert(tool.name.to_string(), found);
            }
            true
        });
    }

    /// The headers for one message.
    pub(super) fn headers(&self, message: &Value) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut add = |name: HeaderName, value: &str| {
            if let Ok(value) = HeaderValue::from_str(&encoded(value)) {
                headers.insert(name, value);
            }
        };
        let Some(method) = message["method"].as_str() else { return headers };
        add(HeaderName::from_static("mcp-method"), method);
        let parameters = &message["params"];
        let name = match method {
            "tools/call" | "prompts/get" => parameters["name"].as_str(),
            "resources/read" => parameters["uri"].as_str(),
            _ => None,
        };
        let Some(name) = name else { return headers };
        add(HeaderName::from_static("mcp-name"), name);
        if method == "tools/call"
            && let Some(promoted) = self.0.lock().get(name)
        {
            for (path, header) in promoted {
                let argument = path.iter().try_fold(&parameters["arguments"], |value, key| value.get(key));
                let text = match argument {
                    Some(Value::String(text)) => text.clone(),
                    Some(Value::Bool(flag)) => flag.to_string(),
                    Some(Value::Number(number)) => number.to_string(),
                    _ => continue,
                };
                if text.len() <= LONGEST_VALUE {
                    add(header.clone(), &text);
                }
            }
        }
        headers
    }
}

/// Finds the declarations; `None` if one of them is against the rules.
fn collect(schema: &JsonObject, path: &mut Vec<String>, found: &mut Vec<Promoted>) -> Option<()> {
    let Some(Value::Object(properties)) = schema.get("properties") else { return Some(()) };
    if path.len() >= DEEPEST {
        return Some(());
    }
    for (key, property) in properties {
        let Value::Object(property) = property else { continue };
        path.push(key.clone());
        if let Some(declared) = property.get("x-mcp-header") {
            let is_primitive =
                matches!(property.get("type")?.as_str()?, "string" | "integer" | "number" | "boolean");
            let name = declared.as_str().filter(|name| !name.is_empty())?;
            let header = HeaderName::from_bytes(format!("mcp-param-{name}").as_bytes()).ok()?;
            let is_known = found.iter().any(|(_, known)| *known == header);
            if !is_primitive || is_known || found.len() >= MOST_PROMOTED {
                return None;
            }
            found.push((path.clone(), header));
        }
        collect(property, path, found)?;
        path.pop();
    }
    Some(())
}

/// A value as a header carries it: as it is, or in Base64 between marks if it would not survive.
fn encoded(value: &str) -> String {
    let is_padded = value.starts_with([' ', '\t']) || value.ends_with([' ', '\t']);
    let is_visible = value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if is_visible && !is_padded && !value.starts_with("=?base64?") {
        return value.to_owned();
    }
    format!("=?base64?{}?=", base64(value.as_bytes()))
}

/// `bytes` in standard Base64, with padding.
pub(in crate::mcp) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let value = (bits >> (18 - 6 * digit)) & 63;
            text.push(if digit <= chunk.len() { char::from(DIGITS[value as usize]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests;
