//! The parameter `permissions`: the grants that a script asks for.

use std::path::PathBuf;

use serde_json::Value;

use super::foreign::is_neutral;
use super::parameters::RunParameter;
use crate::run::grants::{HostPattern, Permissions};
use crate::text::{MAX_SHOWN_NAME, preview};
use crate::tools::names::kind;

/// Kinds that other executors grant. Of any other kind nothing is read: it could be a misspelled restriction, and the
/// run would have what the client has forbidden.
const OF_OTHERS: &[&str] = &["env", "run", "exec", "sys", "ffi", "import", "hrtime"];

/// Parses the value. An empty list or `false` asks for none of a kind; `null` and absence ask for all that is granted
/// of it. Strict modes fill in empty values for every kind that they know, including kinds of other executors.
///
/// # Errors
///
/// A description of what is wrong with the value.
pub(super) fn read(value: Value) -> Result<Permissions, String> {
    let mut permissions = Permissions::default();
    let resources = match value {
        Value::Object(resources) => resources,
        other if is_neutral(&other) => return Ok(permissions),
        other => {
            return Err(format!("expected {}: {}", RunParameter::Permissions.expected(), kind(&other)));
        }
    };
    for (name, value) in resources {
        match name.as_str() {
            _ if value.is_null() => {}
            "read" => permissions.read = Some(paths(&name, value)?),
            "write" => permissions.write = Some(paths(&name, value)?),
            "net" => {
                let hosts = texts(&name, "hosts", value)?;
                let hosts = hosts.iter().map(|text| text.parse());
                let hosts: Result<Vec<HostPattern>, _> = hosts.collect();
                permissions.net = Some(hosts.map_err(|error| format!("`net`: {error}"))?);
            }
            other if OF_OTHERS.contains(&other) && is_neutral(&value) => {}
            _ => {
                let name = preview(&name, MAX_SHOWN_NAME);
                return Err(format!("`{name}` cannot be granted: there are `read`, `write` and `net`"));
            }
        }
    }
    Ok(permissions)
}

fn paths(name: &str, value: Value) -> Result<Vec<PathBuf>, String> {
    Ok(texts(name, "directories", value)?.into_iter().map(PathBuf::from).collect())
}

fn texts(name: &str, what: &str, value: Value) -> Result<Vec<String>, String> {
    let wrong = |value: &Value| format!("`{name}`: expected an array of {what}: {}", kind(value));
    match value {
        Value::Array(items) => items
            .into_iter()
            .map(|item| match item {
                Value::String(text) => Ok(text),
                other => Err(wrong(&other)),
            })
            .collect(),
        Value::Bool(false) => Ok(Vec::new()),
        other => Err(wrong(&other)),
    }
}
