//! The server's health report.

use std::path::PathBuf;
use std::time::SystemTime;

use serde_json::{Map, Value, json};

use super::shared::Shared;
use crate::engine::{engines, resident};
use crate::executor::Executor;
#[cfg(feature = "mcp")]
use crate::json::set_present;
#[cfg(feature = "mcp")]
use crate::mcp::{ServerState, ServerStats};
use crate::run::result_json::milliseconds;
use crate::text::{preview, rfc3339};

/// Maximum characters of an error's text.
const MAX_ERROR_CHARACTERS: usize = 200;

/// Maximum characters of a mistake in the configuration, and of a file's path.
#[cfg(feature = "mcp")]
const MAX_CONFIG_CHARACTERS: usize = 1_000;

/// Maximum characters of a granted directory's path.
const MAX_GRANT_CHARACTERS: usize = 1_000;

/// A notice for the user about the scripts' state. It names no path, because any client may read it.
const DAMAGED_STATE: &str = "the state file was damaged and set aside, and scripts started anew: \
    `cx state list` names the file, `cx state clear --all` removes it";

/// A notice for the operator about the tokens of clients. It gives no details, because any client may read it.
const TOKENS_FAILING: &str = "the tokens of this server have changed and cannot be used, so the last ones stay in \
    force: see stderr or the audit trail";

/// The answer of the tool `health`.
pub(crate) fn report(shared: &Shared) -> Value {
    let executor = &shared.executor;
    let runs = executor.run_stats();
    let (servers, connected) = server_reports(executor);
    let start_failures = shared.start_failures.lock().clone();
    let mut healthy = !shared.hung_workers.server_must_end();
    let mut engines = Map::new();
    for &language in engines::AVAILABLE {
        let pool = executor.pool_stats(language);
        let name = language.as_str();
        let mut engine = json!({ "ready": pool.ready, "waiting": pool.waiting, "hung": pool.hung });
        if let Some(error) = start_failures.get(name) {
            engine["error"] = preview(error, MAX_ERROR_CHARACTERS).into();
        }
        healthy &= pool.takes_runs() && !start_failures.contains_key(name);
        engines.insert(name.to_owned(), engine);
    }
    let mut report = json!({
        "healthy": healthy,
        "auditLog": audit_report(executor),
        "mcpClients": { "connected": connected },
        "memory": { "totalBytes": runs.max_memory_bytes, "source": runs.memory_source.as_str() },
        "connectionPool": { "active": runs.running, "waiting": runs.queued, "max": runs.max_running },
        "uptime": shared.started.elapsed().as_secs(),
        "timestamp": rfc3339(SystemTime::now()),
        "version": env!("CARGO_PKG_VERSION"),
        "engines": engines,
        "isolation": executor.isolation(),
    });
    if let Some(bytes) = resident::guard().resident_bytes() {
        report["residentBytes"] = bytes.into();
    }
    report["servers"] = servers.into();
    if let Some(grants) = grants_report(executor) {
        report["grants"] = grants;
    }
    #[cfg(feature = "mcp")]
    if let Some(mut config) = config_report(executor) {
        let not_shown = shared.tools().problems.clone();
        if !not_shown.is_empty() {
            config["notShownDirectly"] = not_shown.into();
        }
        report["config"] = config;
    }
    let damaged_state = executor.has_damaged_state_file().then(|| DAMAGED_STATE.to_owned());
    let tokens = shared.tokens_failing().then(|| TOKENS_FAILING.to_owned());
    let untrusted = executor.untrusted_hint().map(|hint| hint.to_string());
    let hints: Vec<String> = [untrusted, damaged_state, tokens].into_iter().flatten().collect();
    if !hints.is_empty() {
        report["hint"] = hints.join("; ").into();
    }
    report
}

/// The directories and hosts that scripts may reach, if there are any. Scripts see these paths too.
fn grants_report(executor: &Executor) -> Option<Value> {
    let grants = executor.grants();
    let paths = |paths: &[PathBuf]| -> Vec<String> {
        paths.iter().map(|path| preview(&path.to_string_lossy(), MAX_GRANT_CHARACTERS)).collect()
    };
    let net: Vec<String> = grants.net.iter().map(ToString::to_string).collect();
    let report = json!({ "read": paths(&grants.read), "write": paths(&grants.write), "net": net });
    (!grants.is_empty()).then_some(report)
}

/// The state of the audit trail. Names no path, because any client may read it.
#[cfg(feature = "audit")]
fn audit_report(executor: &Executor) -> Value {
    let Some(status) = executor.audit_status() else { return json!({ "enabled": false }) };
    let mut report = json!({ "enabled": true, "required": status.required, "lines": status.lines });
    if status.dropped > 0 {
        report["dropped"] = status.dropped.into();
    }
    let failures = [
        ("failure", status.failure, "the audit trail cannot be written"),
        ("signingFailure", status.signing_failure, "the audit trail cannot be signed"),
    ];
    for (name, failure, message) in failures {
        if let Some((since, _)) = failure {
            let seconds = since.elapsed().unwrap_or_default().as_secs();
            report[name] = json!({ "secondsAgo": seconds, "message": message });
        }
    }
    report
}

#[cfg(not(feature = "audit"))]
fn audit_report(_executor: &Executor) -> Value {
    json!({ "enabled": false })
}

/// The configuration in force: its time, its files, and the problems of a newer one.
#[cfg(feature = "mcp")]
fn config_report(executor: &Executor) -> Option<Value> {
    let status = executor.config_status()?;
    let seconds_since = |time: SystemTime| time.elapsed().unwrap_or_default().as_secs();
    let shown = |text: &str| preview(text, MAX_CONFIG_CHARACTERS);
    let files = status.files.iter().map(|file| shown(&file.to_string_lossy()));
    let mut report = json!({
        "loadedSecondsAgo": seconds_since(status.loaded),
        "loads": status.count,
        "files": files.collect::<Vec<_>>(),
    });
    if let Some(failure) = status.failure {
        report["failure"] =
            json!({ "secondsAgo": seconds_since(failure.since), "message": shown(&failure.message) });
    }
    if !status.needs_restart.is_empty() {
        report["needsRestart"] = status.needs_restart.into();
    }
    let unmatched: Vec<String> =
        executor.unmatched_patterns().iter().map(|pattern| shown(&pattern.to_string())).collect();
    if !unmatched.is_empty() {
        report["unmatchedPatterns"] = unmatched.into();
    }
    Some(report)
}

/// The reports of the upstream servers by name, and how many of them are connected.
#[cfg(feature = "mcp")]
fn server_reports(executor: &Executor) -> (Map<String, Value>, usize) {
    let servers = executor.server_stats();
    let connected = servers.iter().filter(|server| server.state == ServerState::Connected).count();
    let mut reports: Map<String, Value> =
        servers.iter().map(|server| (server.name.clone(), server_report(server))).collect();
    for damaged in executor.damaged_pins() {
        if let Some(report) = reports.get_mut(&damaged.server) {
            let file = damaged.file.display();
            let problem = format!("damaged, and set aside as {file}; see `cx tools changed`");
            report["pinnedDefinitions"] = preview(&problem, MAX_ERROR_CHARACTERS).into();
        }
    }
    (reports, connected)
}

#[cfg(not(feature = "mcp"))]
fn server_reports(_executor: &Executor) -> (Map<String, Value>, usize) {
    (Map::new(), 0)
}

#[cfg(feature = "mcp")]
fn server_report(server: &ServerStats) -> Value {
    let mut report = json!({ "state": server.state.as_str() });
    let breaker = match server.circuit_breaker_state {
        state if state >= 1.0 => "open",
        state if state > 0.0 => "half open",
        _ => "closed",
    };
    report["breaker"] = breaker.into();
    let optional = [
        ("tools", server.tools.map(Value::from)),
        ("p50Ms", server.p50.map(milliseconds)),
        ("p95Ms", server.p95.map(milliseconds)),
        ("lastError", server.last_error.as_deref().map(|error| preview(error, MAX_ERROR_CHARACTERS).into())),
    ];
    set_present(&mut report, optional);
    report
}
