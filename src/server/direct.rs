//! A tool of a server as clients see it directly: its name, and its definition, unless that could break a client's list
//! of tools.
//!
//! Definitions are untrusted. Many clients refuse the whole list if one definition violates the
//! protocol, and providers of models refuse requests with an invalid schema. So a tool whose
//! definition could cause that is left out.

use std::sync::Arc;

use rmcp::model::{JsonObject, MetaObject, Tool, ToolAnnotations};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::text::visible;
use crate::tools::catalog::ResolvedTool;

/// Maximum characters of a name. Providers of models allow 64, of which clients use some for a prefix
/// such as `mcp__cx__`.
pub(crate) const MAX_NAME: usize = 55;

/// Characters of the hash in a name that is not `server__tool`.
const HASH_LENGTH: usize = 10;

/// Maximum bytes of a schema. Larger ones cost more context than the tool is worth.
const MAX_SCHEMA_BYTES: usize = 64 << 10;

/// Maximum levels of a schema.
const MAX_SCHEMA_DEPTH: usize = 48;

/// Between the names of a server and a tool.
const SEPARATOR: &str = "__";

/// The name of a tool for clients: `server__tool`. If some clients do not accept that name, or another tool could have
/// the same, it is shortened to fit and gets a hash of both names. The name depends on nothing else, so it stays the
/// same when other tools come and go.
pub(crate) fn name(server: &str, tool: &str) -> String {
    let joined = format!("{server}{SEPARATOR}{tool}");
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "_-".contains(character);
    // The first separator ends the server's name, so no other pair has this name.
    let is_unambiguous = !server.contains(SEPARATOR) && !server.ends_with('_');
    if joined.len() <= MAX_NAME && is_unambiguous && joined.chars().all(is_plain) {
        return joined;
    }
    // JSON text has no zero byte in it, and names of servers come from JSON too.
    let hash = Sha256::new().chain_update(server).chain_update([0]).chain_update(tool).finalize();
    let hash = hex::encode(hash);
    let plain = joined.chars().map(|character| if is_plain(character) { character } else { '_' });
    let plain: String = plain.take(MAX_NAME - HASH_LENGTH - 1).collect();
    format!("{plain}_{}", &hash[..HASH_LENGTH])
}

/// The definition of a tool for clients, under this name.
///
/// # Errors
///
/// Why the tool is not shown.
pub(crate) fn definition(tool: &ResolvedTool, name: String) -> Result<Tool, String> {
    let definition = tool.definition();
    let input = object_schema(definition.input_schema.text())?;
    if tool.argument_check().is_none() {
        return Err("its `inputSchema` is not a JSON Schema, or too complex to be checked".to_owned());
    }
    let mut shown = Tool::new(
        name,
        // Native tools were not read from a server, which would have escaped them.
        visible(definition.description.as_deref().unwrap_or_default()),
        Arc::new(input),
    );
    if let Some(schema) = &definition.output_schema {
        match object_schema(schema.text()).and_then(compiles) {
            Ok(schema) => shown.output_schema = Some(Arc::new(schema)),
            Err(problem) => {
                tracing::warn!(server = %tool.server, tool = %tool.tool, problem, "a tool is shown without its output schema");
            }
        }
    }
    let annotations = definition.annotations.clone();
    let annotations = annotations.and_then(|value| serde_json::from_value::<ToolAnnotations>(value).ok());
    shown.annotations = annotations.map(|mut annotations| {
        annotations.title = annotations.title.map(|title| visible(&title));
        annotations
    });
    let meta = definition.meta.clone();
    shown.meta = meta.and_then(|meta| serde_json::from_value::<MetaObject>(meta).ok());
    Ok(shown)
}

/// A schema of an object in the form that clients expect.
fn object_schema(text: &str) -> Result<JsonObject, String> {
    if text.len() > MAX_SCHEMA_BYTES {
        return Err(format!("a schema has {} bytes, at most {MAX_SCHEMA_BYTES} are shown", text.len()));
    }
    let Ok(Value::Object(mut schema)) = serde_json::from_str::<Value>(text) else {
        return Err("a schema is not an object".to_owned());
    };
    if schema.values().any(|value| !is_shallow(value, MAX_SCHEMA_DEPTH)) {
        return Err(format!("a schema has more than {MAX_SCHEMA_DEPTH} levels"));
    }
    match schema.get("type") {
        None => drop(schema.insert("type".to_owned(), "object".into())),
        Some(Value::String(kind)) if kind == "object" => {}
        Some(_) => return Err("a schema is not of the type `object`".to_owned()),
    }
    match schema.get_mut("properties") {
        None => {}
        Some(Value::Object(properties)) => {
            for property in properties.values_mut() {
                match property {
                    Value::Object(_) => {}
                    // The schema allows anything. Clients know only the empty object for that.
                    Value::Bool(true) => *property = Value::Object(JsonObject::new()),
                    _ => return Err("a property's schema is not an object".to_owned()),
                }
            }
        }
        Some(_) => return Err("`properties` is not an object".to_owned()),
    }
    let is_list_of_names =
        |value: &Value| value.as_array().is_some_and(|names| names.iter().all(Value::is_string));
    if schema.get("required").is_some_and(|required| !is_list_of_names(required)) {
        return Err("`required` is not a list of names".to_owned());
    }
    let is_draft = |value: &Value| value.as_str().is_some_and(|text| text.contains("json-schema.org/"));
    if schema.get("$schema").is_some_and(|draft| !is_draft(draft)) {
        return Err("`$schema` is not a draft of JSON Schema".to_owned());
    }
    Ok(schema)
}

/// Whether the value has at most this many levels. `levels` bounds the recursion.
fn is_shallow(value: &Value, levels: usize) -> bool {
    let Some(levels) = levels.checked_sub(1) else { return false };
    match value {
        Value::Array(items) => items.iter().all(|item| is_shallow(item, levels)),
        Value::Object(fields) => fields.values().all(|field| is_shallow(field, levels)),
        _ => true,
    }
}

/// Clients compile output schemas when they read the list.
fn compiles(schema: JsonObject) -> Result<JsonObject, String> {
    let schema = Value::Object(schema);
    crate::tools::arguments::ArgumentCheck::compile(&schema.clone().into())?;
    match schema {
        Value::Object(schema) => Ok(schema),
        _ => Ok(JsonObject::new()),
    }
}

#[cfg(test)]
mod tests;
