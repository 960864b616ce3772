//! A server of another client, as an entry of cx's own file.

use std::path::Path;

use icu_normalizer::DecomposingNormalizerBorrowed;
use serde_json::{Map, Value, json};

use crate::config::entry::{HttpTarget, ServerEntry, StdioTarget, Target};
use crate::config::expand::Text;
use crate::config::formats::MAX_NAME;
use crate::json::milliseconds;
use crate::mcp::HttpKind;
use crate::text;

/// VS Code's variable for the open directory.
const WORKSPACE: &str = "${workspaceFolder}";

/// The name of a server in cx, which is ASCII: users type names in rules and commands, and letters that look alike
/// would be different servers. Accents are removed, other letters become `u` and their code point, and all other
/// characters become `-`.
pub(super) fn valid_name(name: &str) -> String {
    let mut valid = String::new();
    let start = text::start(name.trim(), MAX_NAME);
    for character in DecomposingNormalizerBorrowed::new_nfkd().normalize_iter(start.chars()) {
        match character {
            '0'..='9' | 'a'..='z' | 'A'..='Z' | '_' | '.' | '-' => valid.push(character),
            '\u{300}'..='\u{36f}' => {}
            letter if letter.is_alphanumeric() => valid.push_str(&format!("u{:x}", u32::from(letter))),
            _ => valid.push('-'),
        }
    }
    let name = text::start(valid.trim_start_matches(['-', '.']), MAX_NAME);
    if name.is_empty() || name == "__proto__" { "server".to_owned() } else { name.to_owned() }
}

/// The entry as cx's own file has it. References to variables stay references.
pub(super) fn own_entry(entry: &ServerEntry) -> Map<String, Value> {
    let mut members = Map::new();
    let mut set = |name: &str, value: Value| members.insert(name.to_owned(), value);
    if let Some(description) = &entry.description {
        set("description", json!(description));
    }
    match &entry.target {
        Some(Target::Stdio(StdioTarget { command, args, env, cwd })) => {
            set("command", json!(command.raw));
            if !args.is_empty() {
                set("args", args.iter().map(|text| json!(text.raw)).collect());
            }
            if !env.is_empty() {
                set("env", pairs(env));
            }
            if let Some(cwd) = cwd {
                set("cwd", json!(cwd.raw));
            }
        }
        Some(Target::Http(HttpTarget { url, headers, kind, .. })) => {
            match kind {
                HttpKind::Sse => set("type", json!("sse")),
                HttpKind::Streamable => set("type", json!("streamable-http")),
                HttpKind::Detect => None,
            };
            set("url", json!(url.raw));
            if !headers.is_empty() {
                set("headers", pairs(headers));
            }
        }
        None => {}
    }
    if let Some(allow) = &entry.allow {
        set("allow", json!(allow));
    }
    if !entry.deny.is_empty() {
        set("deny", json!(entry.deny));
    }
    for (name, time) in [("timeoutMs", entry.call_timeout), ("connectTimeoutMs", entry.connect_timeout)] {
        if let Some(time) = time {
            set(name, json!(milliseconds(time)));
        }
    }
    members
}

/// Preserves the meaning of values that depend on the directory in which the client starts the server: relative paths,
/// and VS Code's variable for the directory.
pub(super) fn keep_directory(entry: &mut Map<String, Value>, directory: &Path) {
    let shown = directory.to_string_lossy();
    for value in entry.values_mut() {
        replace_workspace(value, &shown);
    }
    let texts = |name: &str| match entry.get(name) {
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::String(text)) => vec![text.clone()],
        _ => Vec::new(),
    };
    let is_path = |text: &String| text.contains('/') && Path::new(text).is_relative();
    // A command without a slash is searched for in PATH.
    let needs_directory = texts("command").iter().any(is_path)
        || texts("args")
            .iter()
            .any(|text| !text.is_empty() && Path::new(text).is_relative() && directory.join(text).exists());
    if needs_directory && !entry.contains_key("cwd") {
        entry.insert("cwd".to_owned(), json!(shown));
    }
}

fn replace_workspace(value: &mut Value, directory: &str) {
    match value {
        Value::String(text) if text.contains(WORKSPACE) => *text = text.replace(WORKSPACE, directory),
        Value::Array(items) => items.iter_mut().for_each(|item| replace_workspace(item, directory)),
        Value::Object(members) => members.values_mut().for_each(|value| replace_workspace(value, directory)),
        _ => {}
    }
}

fn pairs(pairs: &[(String, Text)]) -> Value {
    Value::Object(pairs.iter().map(|(name, text)| (name.clone(), json!(text.raw))).collect())
}
