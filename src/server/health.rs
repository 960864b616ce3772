//! The server's health report.

use serde_json::{Map, Value, json};

use super::languages::report_name;
use super::shared::Shared;
use crate::engine::engines;
use crate::executor::Executor;
#[cfg(feature = "mcp")]
use crate::mcp::{ServerState, ServerStats};
use crate::run::result_json::milliseconds;
use crate::text::preview;

/// Maximum characters of an error's text.
const MAX_ERROR_CHARACTERS: usize = 200;

/// What the user should know of the scripts' state. Names no path, because any client may read it.
const DAMAGED_STATE: &str = "the state file was damaged and set aside, and scripts started anew: \
    `cx state list` names the file, `cx state clear --all` removes it";

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
        let name = report_name(language);
        let mut engine = json!({ "ready": pool.ready, "waiting": pool.waiting, "lost": pool.hung });
        if let Some(error) = start_failures.get(name) {
            engine["error"] = preview(error, MAX_ERROR_CHARACTERS).into();
        }
        healthy &= pool.takes_runs() && !start_failures.contains_key(name);
        engines.insert(name.to_owned(), engine);
    }
    let mut report = json!({
        "healthy": healthy,
        // There is no audit log yet.
        "auditLog": { "enabled": false },
        "mcpClients": { "connected": connected },
        "connectionPool": { "active": runs.running, "waiting": runs.queued, "max": runs.max_running },
        "uptime": shared.started.elapsed().as_secs(),
        "timestamp": rmcp::task_manager::current_timestamp(),
        "version": env!("CARGO_PKG_VERSION"),
        "engines": engines,
    });
    if let Some(bytes) = resident_bytes() {
        report["residentBytes"] = bytes.into();
    }
    report["servers"] = servers.into();
    if executor.has_damaged_state_file() {
        report["state"] = DAMAGED_STATE.into();
    }
    if let Some(hint) = executor.untrusted_hint() {
        report["hint"] = hint.into();
    }
    report
}

/// The reports of the upstream servers by name, and how many of them are connected.
#[cfg(feature = "mcp")]
fn server_reports(executor: &Executor) -> (Map<String, Value>, usize) {
    let servers = executor.server_stats();
    let connected = servers.iter().filter(|server| server.state == ServerState::Connected).count();
    (servers.iter().map(|server| (server.name.clone(), server_report(server))).collect(), connected)
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
    for (name, value) in optional {
        if let Some(value) = value {
            report[name] = value;
        }
    }
    report
}

/// Resident memory of the process in bytes. `None` where the system does not report it in `/proc`.
pub(crate) fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
