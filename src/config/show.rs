//! Shows the configuration to users and programs, without secrets.

use serde_json::{Map, Value, json};

use super::limits::LIMIT_KEYS;
use super::mask;
use super::resolved::{Config, ConfigOrigin};
use crate::mcp::{HttpKind, McpServer, McpTransport};
use crate::rate::RateLimit;
use crate::run::limits::Limits;

impl Config {
    /// The resolved configuration, the origins of its values, and what was left out. The values of
    /// variables and headers are masked, and so is anything that looks like a secret in arguments
    /// and URLs.
    pub fn to_json(&self) -> Value {
        let limits = |limits: &Limits| -> Map<String, Value> {
            LIMIT_KEYS.iter().map(|key| (key.name.to_owned(), (key.get)(limits).into())).collect()
        };
        let origins: Map<String, Value> =
            self.origins.iter().map(|(key, origin)| (key.clone(), origin.to_string().into())).collect();
        let servers: Map<String, Value> =
            self.servers.iter().map(|server| (server.name.clone(), self.server(server))).collect();
        json!({
            "mcpServers": servers,
            "allow": lists(&self.rules.allow),
            "deny": self.rules.deny,
            "ask": self.rules.ask,
            // One list at most: that of all trusted files.
            "readOnly": self.rules.read_only.concat(),
            "strict": self.strict,
            "elicitation": self.elicitation,
            "limits": limits(&self.limits),
            "maxLimits": limits(&self.max_limits),
            "maxRuns": self.max_runs,
            "clockResolutionUs": self.clock_resolution.map(microseconds),
            "clientRate": self.client_rate.map(rate),
            "totalMemoryBytes": self.total_memory_bytes,
            "cache": { "enabled": self.cache_enabled, "directory": self.cache_directory },
            "origins": origins,
            "skipped": self.skipped.iter().map(|skipped| json!({
                "name": skipped.name,
                "origin": skipped.origin.to_string(),
                "reason": skipped.reason,
            })).collect::<Vec<_>>(),
            "warnings": self.warnings.iter().map(|warning| json!({
                "code": warning.code.as_str(),
                "message": warning.message,
                "origin": warning.origin.as_ref().map(ConfigOrigin::to_string),
                "hint": warning.hint,
            })).collect::<Vec<_>>(),
            "files": self.files.iter().map(|file| json!({
                "path": file.path.to_string_lossy(),
                "role": file.role,
                "status": file.status.as_str(),
            })).collect::<Vec<_>>(),
        })
    }

    fn server(&self, server: &McpServer) -> Value {
        let mut shown = match &server.transport {
            McpTransport::Stdio(stdio) => {
                let written = self.written_arguments.get(&server.name).unwrap_or(&stdio.args);
                json!({
                    "type": "stdio",
                    "command": stdio.command,
                    "args": mask::arguments(written.iter().map(String::as_str)),
                    "env": masked(stdio.env.keys()),
                    "cwd": stdio.cwd.as_ref().map(|cwd| cwd.to_string_lossy()),
                })
            }
            McpTransport::Http(http) => json!({
                "type": match http.kind {
                    HttpKind::Detect => "http",
                    HttpKind::Streamable => "streamable-http",
                    HttpKind::Sse => "sse",
                },
                "url": mask::url(&http.url),
                "headers": masked(http.headers.keys()),
                "oauth": http.oauth.as_ref().map(|oauth| json!({
                    "clientId": oauth.client_id.as_ref().map(|_| mask::MASK),
                    "clientMetadataUrl": oauth.client_metadata_url,
                    "clientSecret": oauth.client_secret.as_ref().map(|_| mask::MASK),
                    "issuer": oauth.issuer,
                    "scopes": oauth.scopes,
                    "clientCredentials": oauth.client_credentials,
                })),
            }),
        };
        let rules = json!({
            "description": server.description,
            "allow": lists(&server.rules.allow),
            "deny": server.rules.deny,
            "ask": server.rules.ask,
            "readOnly": lists(&server.rules.read_only),
            "timeoutMs": milliseconds(server.call_timeout),
            "connectTimeoutMs": milliseconds(server.connect_timeout),
            "idleMs": server.idle_timeout.map(milliseconds),
            "maxConcurrent": server.max_concurrent,
            "elicitation": server.elicitation,
            "roots": server.roots.iter().map(|root| &root.uri).collect::<Vec<_>>(),
            "maxQueued": server.max_queued,
            "queueTimeoutMs": milliseconds(server.queue_timeout),
            "rateLimit": server.rate_limit.map(rate),
        });
        if let (Value::Object(shown), Value::Object(rules)) = (&mut shown, rules) {
            shown.extend(rules);
            // Unset values are omitted.
            shown.retain(|name, value| {
                // An empty `allow` or `readOnly` list has a meaning, so it is shown.
                let says = ["allow", "readOnly"].contains(&name.as_str());
                !value.is_null() && (says || value.as_array().is_none_or(|items| !items.is_empty()))
            });
            shown.retain(|_, value| value.as_object().is_none_or(|members| !members.is_empty()));
        }
        shown
    }
}

/// No list is `null`, one is a list of patterns. Several, of which a tool must match each, are a
/// list of them.
fn lists(lists: &[Vec<String>]) -> Value {
    match lists {
        [] => Value::Null,
        [list] => json!(list),
        lists => json!(lists),
    }
}

fn masked<'a>(names: impl Iterator<Item = &'a String>) -> Map<String, Value> {
    names.map(|name| (name.clone(), mask::MASK.into())).collect()
}

fn microseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn milliseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn rate(limit: RateLimit) -> Value {
    json!({ "calls": limit.calls, "perMs": milliseconds(limit.period) })
}
