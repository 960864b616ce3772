//! The settings of mcpproxy's `mcp_config.json`. `docs/other-programs.md` has the same table for
//! users.

use std::time::Duration;

use super::document::{Content, Node};
use super::entry::{MAX_CALLS, MAX_CONNECT_TIME, MAX_QUEUE_TIME};
use super::error::Finding;
use super::foreign::{Becomes, Program, always, is_off, is_on, limit, never, setting};
use super::limits::LimitRole;
use super::parsed::Settings;
use super::reader::At;

/// The program's own maximum for the time of a call.
const MAX_CALL_TIME: Duration = Duration::from_secs(60 * 60);

/// Maximum number of concurrent runs: more than any machine has threads for.
const MAX_RUNS: u64 = 1_000;

/// The whole file.
pub(super) static FILE: Program = Program {
    name: "mcpproxy",
    finish: |_, _| {},
    settings: &[
        // Scripts.
        setting("enable_code_execution", Becomes::Nothing(is_on)),
        setting(
            "code_execution_timeout_ms",
            Becomes::Key("limits.timeoutMs", |at, settings| unless_zero(at, "timeoutMs", settings)),
        ),
        setting(
            "code_execution_max_tool_calls",
            Becomes::Key("limits.maxToolCalls", |at, settings| {
                limit(at, "maxToolCalls", LimitRole::Default, settings)
            }),
        ),
        setting(
            "code_execution_max_parallel",
            Becomes::Key("limits.maxCallsInFlight", |at, settings| {
                unless_zero(at, "maxCallsInFlight", settings)
            }),
        ),
        setting("code_execution_pool_size", Becomes::Key("maxRuns", pool_size)),
        // Calls.
        setting("call_tool_timeout", Becomes::Key("mcpServers.*.timeoutMs", call_timeout)),
        setting("init_timeout", Becomes::Key("mcpServers.*.connectTimeoutMs", connect_timeout)),
        setting(
            "server_concurrency_defaults.max_concurrent_requests",
            Becomes::Key("mcpServers.*.maxConcurrent", max_concurrent),
        ),
        setting("server_concurrency_defaults.queue_size", Becomes::Key("mcpServers.*.maxQueued", max_queued)),
        setting(
            "server_concurrency_defaults.queue_timeout",
            Becomes::Key("mcpServers.*.queueTimeoutMs", queue_timeout),
        ),
        setting("max_concurrent_requests", Becomes::Nothing(is_off)),
        setting("queue_size", Becomes::Nothing(is_off)),
        setting("queue_timeout", Becomes::Nothing(never)),
        setting("environment", Becomes::Nothing(never)),
        setting("forward_proxy_env", Becomes::Nothing(always)),
        setting("docker_isolation", Becomes::Nothing(is_off)),
        setting("docker_recovery", Becomes::Nothing(is_off)),
        // What may be called, and what clients may change.
        setting("quarantine_enabled", Becomes::Key("strict", strict)),
        setting("read_only_mode", Becomes::Nothing(always)),
        setting("disable_management", Becomes::Nothing(always)),
        setting("allow_server_add", Becomes::Nothing(is_off)),
        setting("allow_server_remove", Becomes::Nothing(is_off)),
        setting("profiles", Becomes::Nothing(is_off)),
        setting("intent_declaration", Becomes::Nothing(never)),
        setting("sensitive_data_detection", Becomes::Nothing(is_off)),
        setting("output_validation", Becomes::Nothing(never)),
        setting("output_sanitisation", Becomes::Nothing(never)),
        setting("security", Becomes::Nothing(never)),
        // What clients see.
        setting("routing_mode", Becomes::Nothing(is_code_execution)),
        setting("tool_response_mode", Becomes::Nothing(never)),
        setting("direct_tool_response_mode", Becomes::Nothing(never)),
        setting("tools_limit", Becomes::Nothing(never)),
        setting("tool_response_limit", Becomes::Nothing(never)),
        setting("tool_response_session_risk_warning", Becomes::Nothing(is_off)),
        setting("max_result_size_chars", Becomes::Nothing(never)),
        setting("toon_output", Becomes::Nothing(is_off)),
        setting("toon_min_savings_pct", Becomes::Nothing(never)),
        setting("instructions", Becomes::Nothing(is_off)),
        setting("enable_prompts", Becomes::Nothing(never)),
        setting("aggregate_upstream_prompts", Becomes::Nothing(is_off)),
        // The server itself.
        setting("listen", Becomes::Nothing(never)),
        setting("api_key", Becomes::Nothing(never)),
        setting("require_mcp_auth", Becomes::Nothing(never)),
        setting("trusted_hosts", Becomes::Nothing(is_off)),
        setting("tls", Becomes::Nothing(is_off)),
        setting("http_read_timeout", Becomes::Nothing(never)),
        setting("http_write_timeout", Becomes::Nothing(never)),
        setting("http_idle_timeout", Becomes::Nothing(never)),
        setting("server_edition", Becomes::Nothing(is_off)),
        setting("enable_socket", Becomes::Nothing(is_off)),
        setting("tray_endpoint", Becomes::Nothing(is_off)),
        setting("enable_tray", Becomes::Nothing(always)),
        setting("data_dir", Becomes::Nothing(is_off)),
        setting("features", Becomes::Nothing(always)),
        setting("top_k", Becomes::Nothing(always)),
        // What it does beside calls.
        setting("health_check_interval", Becomes::Nothing(never)),
        setting("tool_discovery_interval", Becomes::Nothing(never)),
        setting("oauth_expiry_warning_hours", Becomes::Nothing(never)),
        setting("check_server_repo", Becomes::Nothing(is_off)),
        setting("registries", Becomes::Nothing(is_off)),
        setting("registries_locked", Becomes::Nothing(always)),
        setting("allow_private_registry_fetch", Becomes::Nothing(is_off)),
        setting("tokenizer", Becomes::Nothing(is_off)),
        setting("update_check", Becomes::Nothing(is_off)),
        setting("reveal_secret_headers", Becomes::Nothing(is_off)),
        // Logs.
        setting("logging", Becomes::Nothing(never)),
        setting("debug_search", Becomes::Nothing(is_off)),
        setting("audit_log", Becomes::Nothing(is_off)),
        setting("telemetry", Becomes::Nothing(is_off)),
        setting("observability", Becomes::Nothing(is_off)),
        setting("activity_retention_days", Becomes::Nothing(never)),
        setting("activity_max_records", Becomes::Nothing(never)),
        setting("activity_max_size_mb", Becomes::Nothing(never)),
        setting("activity_max_response_size", Becomes::Nothing(never)),
        setting("activity_cleanup_interval_min", Becomes::Nothing(never)),
        // Servers.
        setting("mcpServers[].name", Becomes::OfServer),
        setting("mcpServers[].command", Becomes::OfServer),
        setting("mcpServers[].args", Becomes::OfServer),
        setting("mcpServers[].working_dir", Becomes::OfServer),
        setting("mcpServers[].env", Becomes::OfServer),
        setting("mcpServers[].url", Becomes::OfServer),
        setting("mcpServers[].protocol", Becomes::OfServer),
        setting("mcpServers[].headers", Becomes::OfServer),
        setting("mcpServers[].oauth.client_id", Becomes::OfServer),
        setting("mcpServers[].oauth.scopes", Becomes::OfServer),
        setting("mcpServers[].oauth.client_secret", Becomes::Nothing(is_off)),
        setting("mcpServers[].oauth.redirect_uri", Becomes::Nothing(is_off)),
        setting("mcpServers[].oauth.pkce_enabled", Becomes::Nothing(is_on)),
        setting("mcpServers[].oauth.extra_params", Becomes::Nothing(is_off)),
        setting("mcpServers[].enabled", Becomes::OfServer),
        setting("mcpServers[].quarantined", Becomes::OfServer),
        setting("mcpServers[].enabled_tools", Becomes::OfServer),
        setting("mcpServers[].disabled_tools", Becomes::OfServer),
        setting("mcpServers[].init_timeout", Becomes::OfServer),
        setting("mcpServers[].max_concurrent_requests", Becomes::OfServer),
        setting("mcpServers[].queue_size", Becomes::OfServer),
        setting("mcpServers[].queue_timeout", Becomes::OfServer),
        setting("mcpServers[].isolation", Becomes::Nothing(is_off)),
        setting("mcpServers[].skip_quarantine", Becomes::Nothing(is_off)),
        setting("mcpServers[].auto_approve_tool_changes", Becomes::Nothing(is_off)),
        setting("mcpServers[].trust_mode", Becomes::Nothing(is_off)),
        setting("mcpServers[].auth_broker", Becomes::Nothing(is_off)),
        setting("mcpServers[].shared", Becomes::Nothing(is_off)),
        setting("mcpServers[].reconnect_on_use", Becomes::Nothing(always)),
        setting("mcpServers[].expose_prompts", Becomes::Nothing(is_off)),
        setting("mcpServers[].launcher_wait_timeout", Becomes::Nothing(never)),
        setting("mcpServers[].health_check_interval", Becomes::Nothing(never)),
        setting("mcpServers[].tool_discovery_interval", Becomes::Nothing(never)),
        setting("mcpServers[].toon_output", Becomes::Nothing(is_off)),
        setting("mcpServers[].source_registry_id", Becomes::Nothing(always)),
        setting("mcpServers[].source_registry_provenance", Becomes::Nothing(always)),
        setting("mcpServers[].created", Becomes::Nothing(always)),
        setting("mcpServers[].updated", Becomes::Nothing(always)),
    ],
};

/// Whether the file is the program's: its servers are a list, or it has a key with `_`, which no key of cx contains.
pub(super) fn is_its_content(root: &Node) -> bool {
    let is_list = root.get("mcpServers").is_some_and(|servers| matches!(servers.content, Content::Array(_)));
    let mut keys = FILE.settings.iter().filter_map(|setting| setting.name.split('.').next());
    is_list || keys.any(|key| key.contains('_') && root.get(key).is_some())
}

/// 0 means the program's own default.
fn unless_zero(at: &At<'_>, name: &str, settings: &mut Settings) -> Result<(), Finding> {
    if is_off(at.node) {
        return Ok(());
    }
    limit(at, name, LimitRole::Default, settings)
}

fn pool_size(at: &At<'_>, settings: &mut Settings) -> Result<(), Finding> {
    if !is_off(at.node) {
        settings.max_runs = usize::try_from(at.number(1, MAX_RUNS, "runs")?).ok();
    }
    Ok(())
}

fn call_timeout(at: &At<'_>, settings: &mut Settings) -> Result<(), Finding> {
    settings.server_defaults.call_timeout = at.duration(MAX_CALL_TIME)?;
    Ok(())
}

fn connect_timeout(at: &At<'_>, settings: &mut Settings) -> Result<(), Finding> {
    settings.server_defaults.connect_timeout = at.duration(MAX_CONNECT_TIME)?;
    Ok(())
}

/// 0 means no limit in the program; cx's own default applies.
fn max_concurrent(at: &At<'_>, settings: &mut Settings) -> Result<(), Finding> {
    let calls = usize::try_from(at.number(0, MAX_CALLS, "calls")?).ok();
    settings.server_defaults.max_concurrent = calls.filter(|calls| *calls > 0);
    Ok(())
}

fn max_queued(at: &At<'_>, settings: &mut Settings) -> Result<(), Finding> {
    settings.server_defaults.max_queued = usize::try_from(at.number(0, MAX_CALLS, "calls")?).ok();
    Ok(())
}

fn queue_timeout(at: &At<'_>, settings: &mut Settings) -> Result<(), Finding> {
    settings.server_defaults.queue_timeout = at.duration(MAX_QUEUE_TIME)?;
    Ok(())
}

/// Both keys prevent calls of a changed tool until the user accepts it. Off is cx's default.
fn strict(at: &At<'_>, settings: &mut Settings) -> Result<(), Finding> {
    settings.strict = at.boolean()?.then_some(true);
    Ok(())
}

fn is_code_execution(node: &Node) -> bool {
    node.as_str() == Some("code_execution")
}
