//! Metrics: the names of all metrics, and the gauges that are sampled when the metrics are read.
//! The others are counted where they occur, in `src/executor.rs` and `src/mcp`.

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge};

use super::health::resident_bytes;
use super::languages::report_name;
use super::shared::Shared;
use crate::engine::engines;
#[cfg(feature = "mcp")]
use crate::executor::Executor;
#[cfg(feature = "mcp")]
use crate::mcp::ServerState;

/// Describes every metric of cx to the process's [`metrics`](https://docs.rs/metrics) recorder.
/// Must be called after the recorder is installed.
///
/// Labels have few values: languages, names of configured servers, and error codes. Tools, scripts
/// and clients are never labels.
pub fn describe_metrics() {
    describe_counter!(
        "cx_runs_total",
        "Scripts that have ended, by language and outcome (`ok` or an error's code)"
    );
    describe_histogram!(
        "cx_run_duration_seconds",
        Unit::Seconds,
        "Time from a script's arrival to its outcome"
    );
    describe_gauge!("cx_runs_active", "Scripts that run");
    describe_gauge!("cx_runs_queued", "Scripts that wait for a slot or for memory");
    describe_counter!("cx_runs_rate_limited_total", "Scripts refused because of a rate limit");
    describe_gauge!("cx_runs_limit", "Maximum number of scripts that run at the same time");
    describe_gauge!("cx_engine_ready_instances", "Isolates or interpreters that are ready, by language");
    describe_gauge!("cx_engine_queued_runs", "Admitted scripts that wait for a worker, by language");
    describe_gauge!("cx_engine_lost_threads", "Hung workers, whose script cannot be stopped, by language");
    describe_gauge!("cx_servers_connected", "Upstream servers with a connection");
    describe_gauge!("cx_servers_configured", "Upstream servers");
    describe_gauge!("cx_http_sessions", "Sessions of clients over HTTP");
    describe_gauge!("cx_http_connections", "Open connections over HTTP");
    describe_counter!(
        "cx_http_evicted_total",
        "Sessions and connections that were evicted for new ones, by kind"
    );
    describe_gauge!("cx_uptime_seconds", Unit::Seconds, "Age of the server");
    describe_gauge!("process_resident_memory_bytes", Unit::Bytes, "Memory of the process");
    describe_counter!(
        "cx_tool_calls_total",
        "Requests to upstream servers that have ended, by server and outcome (`ok` or an error's code)"
    );
    describe_histogram!(
        "cx_tool_call_duration_seconds",
        Unit::Seconds,
        "Time of requests that were sent to a server"
    );
    describe_gauge!("circuit_breaker_state", "0 closed, 1 open, 0.5 half open, by server");
    describe_counter!(
        "circuit_breaker_failures_total",
        "Failures that the circuit breaker has counted, by server"
    );
    describe_gauge!("pool_active_connections", "Requests in flight at a server, by server");
    describe_gauge!("pool_queue_depth", "Requests that wait for a permit, by server");
    describe_histogram!("pool_queue_wait_seconds", Unit::Seconds, "Time that requests waited for a permit");
    describe_counter!("pool_queue_full_total", "Requests refused because of a full queue or a long wait");
    describe_counter!("rate_limited_total", "Requests refused because of a server's rate limit");
}

/// Records the current values of the gauges.
pub(crate) fn sample(shared: &Shared, sessions: usize, connections: usize) {
    let executor = &shared.executor;
    let runs = executor.run_stats();
    gauge!("cx_runs_active").set(count(runs.running));
    gauge!("cx_runs_queued").set(count(runs.queued));
    gauge!("cx_runs_limit").set(count(runs.max_running));
    for &language in engines::AVAILABLE {
        let pool = executor.pool_stats(language);
        let name = report_name(language);
        gauge!("cx_engine_ready_instances", "language" => name).set(count(pool.ready));
        gauge!("cx_engine_queued_runs", "language" => name).set(count(pool.waiting));
        gauge!("cx_engine_lost_threads", "language" => name).set(count(pool.hung));
    }
    #[cfg(feature = "mcp")]
    sample_servers(executor);
    gauge!("cx_http_sessions").set(count(sessions));
    gauge!("cx_http_connections").set(count(connections));
    gauge!("cx_uptime_seconds").set(shared.started.elapsed().as_secs_f64());
    if let Some(bytes) = resident_bytes() {
        #[expect(clippy::cast_precision_loss, reason = "exact up to 8 PB")]
        gauge!("process_resident_memory_bytes").set(bytes as f64);
    }
}

#[cfg(feature = "mcp")]
fn sample_servers(executor: &Executor) {
    let servers = executor.server_stats();
    let connected = servers.iter().filter(|server| server.state == ServerState::Connected).count();
    gauge!("cx_servers_connected").set(count(connected));
    gauge!("cx_servers_configured").set(count(servers.len()));
    for server in servers {
        gauge!("circuit_breaker_state", "server" => server.name.clone()).set(server.circuit_breaker_state);
        gauge!("pool_active_connections", "server" => server.name.clone()).set(count(server.active));
        gauge!("pool_queue_depth", "server" => server.name).set(count(server.waiting));
    }
}

/// Counts an eviction of a `session` or a `connection`.
pub(crate) fn count_evicted(kind: &'static str) {
    counter!("cx_http_evicted_total", "kind" => kind).increment(1);
}

/// Counts a script that was refused because of a rate limit of runs.
pub(crate) fn count_rate_limited() {
    counter!("cx_runs_rate_limited_total").increment(1);
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
