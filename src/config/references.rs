//! References to environment variables in the settings of cx's own files. Those in the entries of
//! servers are expanded when the entry is resolved, because a mistake there affects one server only.

use super::document::{Content, Node};
use super::environment::Environment;
use super::error::{Finding, FindingKind, Key};
use super::expand::is_name;

/// Settings whose references are expanded elsewhere: entries of servers, and paths, which may also contain other kinds
/// of references.
const EXPANDED_LATER: [&str; 4] = ["$schema", "mcpServers", "mcpConfigPath", "cache.directory"];

/// Replaces each text `env:NAME` by the variable's value, which may represent a text, a number or a boolean. Only for a
/// trusted file.
///
/// # Errors
///
/// Every variable that is not set, because the setting may be a restriction, which must not be dropped. For keys
/// outside `known`, cx's own keys, the text is left unchanged instead.
pub(super) fn resolve(
    root: &mut Node,
    known: &[&str],
    environment: &Environment,
) -> Result<(), Vec<Finding>> {
    let Content::Object(members) = &mut root.content else { return Ok(()) };
    let mut findings = Vec::new();
    for member in members {
        let mut found = Vec::new();
        resolve_below(&mut member.value, &Key::default().child(&member.name), environment, &mut found);
        if known.contains(&member.name.as_str()) {
            findings.append(&mut found);
        }
    }
    if findings.is_empty() { Ok(()) } else { Err(findings) }
}

/// The parser bounds the nesting.
fn resolve_below(node: &mut Node, key: &Key, environment: &Environment, findings: &mut Vec<Finding>) {
    if EXPANDED_LATER.contains(&key.as_str()) {
        return;
    }
    match &mut node.content {
        Content::String(text) => {
            let Some(name) = text.strip_prefix("env:").filter(|name| is_name(name)) else { return };
            if let Some(value) = environment.get(name) {
                *node = Node::of_variable(value, node.location);
                return;
            }
            let kind = FindingKind::MissingVariable { key: key.clone(), name: name.to_owned() };
            findings.push(Finding { kind, location: node.location, hint: Some("set it".to_owned()) });
        }
        Content::Array(items) => {
            for (position, item) in items.iter_mut().enumerate() {
                resolve_below(item, &key.item(position), environment, findings);
            }
        }
        Content::Object(members) => {
            for member in members {
                resolve_below(&mut member.value, &key.child(&member.name), environment, findings);
            }
        }
        Content::Null | Content::Bool(_) | Content::Number(_) => {}
    }
}
