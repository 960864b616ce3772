//! Shows the configuration to users and programs, without secrets.

use serde_json::{Map, Value, json};

use super::limits::LIMIT_KEYS;
use super::mask;
use super::resolved::{Config, ConfigOrigin};
use crate::durations::{microseconds, milliseconds};
use crate::llm::{LlmAccess, LlmOptions};
use crate::mcp::{HttpKind, McpServer, McpTransport};
use crate::rate::RateLimit;
use crate::run::isolation::Isolation;
use crate::run::limits::Limits;
use crate::tools::PrivateAddresses;

impl Config {
    /// The resolved configuration as JSON: with the origins of its values, and a list of what was left out. Values of
    /// variables and headers are masked, and so is anything that looks like a secret in arguments and URLs.
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
            // There is at most one list, which combines those of all trusted files.
            "readOnly": self.rules.read_only.concat(),
            "privateAddresses": self.rules.private_addresses.as_str(),
            "direct": self.direct.tools,
            "mode": self.direct.mode.as_str(),
            "interfaces": self.direct.interfaces,
            "strict": self.strict,
            "elicitation": self.elicitation,
            "llm": llm(&self.llm),
            "limits": limits(&self.limits),
            "maxLimits": limits(&self.max_limits),
            "grants": {
                "read": self.grants.read,
                "write": self.grants.write,
                "net": self.grants.net.iter().map(ToString::to_string).collect::<Vec<_>>(),
            },
            "maxRuns": self.max_runs,
            "clockResolutionUs": self.clock_resolution.map(microseconds),
            "timeZone": self.time_zone,
            "isolation": self.isolation.as_ref().map(isolation),
            "clientRate": self.client_rate.map(rate),
            "tokensFile": self.tokens_file,
            "totalMemoryBytes": self.total_memory_bytes,
            "openTelemetry": self.open_telemetry.as_ref().map(|options| json!({
                "endpoint": options.endpoint.as_deref().map(mask::written_url),
                "traces": options.traces,
                "metrics": options.metrics,
                "content": options.content,
            })),
            "cache": { "enabled": self.cache_enabled, "directory": self.cache_directory },
            "audit": self.audit.as_ref().map(|audit| json!({
                "enabled": true,
                "directory": audit.directory,
                "required": audit.required,
                "contents": audit.contents,
                "retentionDays": audit.retention_days,
            })),
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
                    "privateKey": oauth.private_key.as_ref().map(|_| mask::MASK),
                    "assertionFile": oauth.assertion_file.as_ref().map(|file| file.to_string_lossy()),
                    "identityProvider": oauth.identity_provider,
                    "identityClientId": oauth.identity_client_id.as_ref().map(|_| mask::MASK),
                    "identityClientSecret": oauth.identity_client_secret.as_ref().map(|_| mask::MASK),
                    "idTokenFile": oauth.id_token_file.as_ref().map(|file| file.to_string_lossy()),
                    "issuer": oauth.issuer,
                    "scopes": oauth.scopes,
                    "clientCredentials": oauth.client_credentials,
                })),
            }),
        };
        let addresses = server.rules.private_addresses;
        let rules = json!({
            "description": server.description,
            "allow": lists(&server.rules.allow),
            "deny": server.rules.deny,
            "ask": server.rules.ask,
            "readOnly": lists(&server.rules.read_only),
            "privateAddresses": (addresses != PrivateAddresses::Allow).then_some(addresses.as_str()),
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

/// The options of language models. Of the key only its presence is shown.
fn llm(options: &LlmOptions) -> Value {
    let provider = options.provider.as_ref();
    json!({
        "enabled": match options.access {
            LlmAccess::OnRequest => None,
            LlmAccess::Always => Some(true),
            LlmAccess::Never => Some(false),
        },
        "provider": provider.map(|provider| provider.kind.as_str()),
        "model": provider.map(|provider| &provider.model),
        "url": provider.and_then(|provider| provider.url.as_ref()).map(|url| {
            url::Url::parse(url).map_or_else(|_| mask::MASK.to_owned(), |url| mask::url(&url))
        }),
        "apiKey": provider.and_then(|provider| provider.key.as_ref()).map(|_| mask::MASK),
        "prefer": if options.prefer_client { "client" } else { "provider" },
        "rounds": options.rounds_of_run(None),
        "tokens": options.tokens_of_run(None),
        "callTimeoutMs": milliseconds(options.call_time),
        "allowedModels": options.allowed_models,
        "allowedSystemPrompts": options.allowed_system_prompts,
        "contentFilter": options.content_filter.as_str(),
    })
}

/// No list becomes `null`, one list an array of patterns, and several lists, each of which a tool must match, an array
/// of arrays.
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

fn rate(limit: RateLimit) -> Value {
    json!({ "calls": limit.calls, "perMs": milliseconds(limit.period) })
}

/// The configured isolation mode.
fn isolation(isolation: &Isolation) -> Value {
    match isolation {
        Isolation::Process(workers) => json!({
            "mode": isolation.as_str(),
            "require": workers.require,
            "runsPerWorker": workers.runs_per_worker,
        }),
        Isolation::Remote(workers) => json!({
            "mode": isolation.as_str(),
            "url": mask::written_url(&workers.url),
            "tokenFile": workers.token_file,
        }),
        Isolation::Nats(workers) => json!({
            "mode": isolation.as_str(),
            "url": mask::written_urls(&workers.url),
            "keyFile": workers.key_file,
            "credentialsFile": workers.credentials_file,
            "caFile": workers.ca_file,
            "tenant": workers.shared.as_ref().map(|shared| &shared.name),
            "tenantKeyFile": workers.shared.as_ref().map(|shared| &shared.key_file),
        }),
        Isolation::InProcess => json!({ "mode": isolation.as_str() }),
    }
}
