//! A server of another client, as an entry of cx's own file.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::config::entry::{HttpTarget, ServerEntry, StdioTarget, Target};
use crate::config::expand::Text;
use crate::config::formats::MAX_NAME;
use crate::mcp::HttpKind;

/// The name that a server has in cx: as it is, with `-` for what names of cx cannot have.
pub(super) fn valid_name(name: &str) -> String {
    let allowed = |character: char| character.is_ascii_alphanumeric() || "_.-".contains(character);
    let replaced: String =
        name.trim().chars().take(MAX_NAME).map(|c| if allowed(c) { c } else { '-' }).collect();
    let name = replaced.trim_start_matches(['-', '.']);
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

fn pairs(pairs: &[(String, Text)]) -> Value {
    Value::Object(pairs.iter().map(|(name, text)| (name.clone(), json!(text.raw))).collect())
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
