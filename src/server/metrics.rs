//! Metrics: the names of all metrics, and the gauges that are sampled when the metrics are read. Counters and
//! histograms are recorded where their events occur, in any layer.

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge};

use super::shared::Shared;
use crate::conventions;
use crate::engine::{engines, resident};
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
    describe_histogram!(
        "cx_run_queue_wait_seconds",
        Unit::Seconds,
        "Time that a script waited for admission and for a worker"
    );
    describe_gauge!("cx_runs_active", "Scripts that run");
    describe_gauge!("cx_runs_queued", "Scripts that wait for a slot or for memory");
    describe_counter!("cx_runs_rate_limited_total", "Scripts refused because of a rate limit");
    describe_gauge!("cx_runs_limit", "Maximum number of scripts that run at the same time");
    describe_gauge!("cx_engine_ready_instances", "Isolates or interpreters that are ready, by language");
    describe_gauge!("cx_engine_queued_runs", "Admitted scripts that wait for a worker, by language");
    describe_gauge!("cx_engine_hung_workers", "Hung workers, whose script cannot be stopped, by language");
    describe_gauge!("cx_servers_connected", "Upstream servers with a connection");
    describe_gauge!("cx_servers_configured", "Upstream servers");
    describe_gauge!("cx_http_sessions", "Sessions of clients over HTTP");
    describe_gauge!("cx_http_connections", "Open connections over HTTP");
    describe_counter!(
        "cx_http_evicted_total",
        "Sessions and connections that were evicted for new ones, by kind"
    );
    describe_gauge!("cx_http_tokens", "Tokens of tenants that are in force");
    describe_counter!(
        "cx_http_token_changes_total",
        "Tokens that were added and revoked while the server served, by change"
    );
    describe_gauge!("cx_http_tokens_failing", "1 while newer tokens cannot be used");
    describe_gauge!("cx_queue_runs_waiting", "Runs in the queue of `cx worker` that no worker has");
    describe_gauge!("cx_queue_runs_running", "Runs of the queue that this worker executes");
    describe_counter!("cx_queue_runs_taken_total", "Runs of the queue that this worker was granted");
    describe_counter!("cx_audit_events_total", "Events that were written to the audit trail");
    describe_counter!("cx_audit_events_dropped_total", "Events that were not written to the audit trail");
    describe_gauge!("cx_audit_failing", "1 while the audit trail cannot be written");
    describe_counter!("cx_audit_signing_failures_total", "Attempts to sign the audit trail that have failed");
    describe_gauge!("cx_audit_unsigned", "1 while the audit trail cannot be signed");
    describe_counter!("cx_traces_lost_total", "Traces of runs that could not be kept (`--traces`)");
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
    describe_counter!(
        "cx_cache_requests_total",
        "Requests to caches, by cache (`tool_lists`, `python_code`) and result (`hit` or `miss`)"
    );
    describe_counter!(
        "cx_tool_result_bytes_total",
        Unit::Bytes,
        "Bytes of JSON that tools returned to scripts of clients"
    );
    describe_counter!(
        "cx_answer_bytes_total",
        Unit::Bytes,
        "Bytes of content in the answers to those scripts, which models read"
    );
    describe_counter!(
        "cx_context_kept_out_bytes_total",
        Unit::Bytes,
        "Bytes that tools returned beyond those of the script's answer, summed over scripts"
    );
    describe_counter!(
        "cx_context_kept_out_tokens_estimate_total",
        "The same as an estimate in tokens, of 4 bytes each"
    );
    describe_histogram!(
        conventions::CLIENT_OPERATION,
        Unit::Seconds,
        "Time of requests to upstream servers, by method"
    );
    describe_histogram!(
        conventions::SERVER_OPERATION,
        Unit::Seconds,
        "Time of clients' calls of the tools of this server"
    );
    describe_histogram!(
        conventions::CLIENT_SESSION,
        Unit::Seconds,
        "How long connections to upstream servers lasted"
    );
    describe_histogram!(conventions::SERVER_SESSION, Unit::Seconds, "How long sessions of clients lasted");
    describe_histogram!(
        conventions::MODEL_OPERATION,
        Unit::Seconds,
        "Time of requests to language models, by provider"
    );
    describe_histogram!(
        conventions::MODEL_TOKENS,
        "Tokens of requests to language models, by provider and type (`input`, `output`)"
    );
    describe_counter!("cx_telemetry_export_failures_total", "Exports of traces and metrics that have failed");
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
        let name = language.as_str();
        gauge!("cx_engine_ready_instances", "language" => name).set(count(pool.ready));
        gauge!("cx_engine_queued_runs", "language" => name).set(count(pool.waiting));
        gauge!("cx_engine_hung_workers", "language" => name).set(count(pool.hung));
    }
    #[cfg(feature = "mcp")]
    sample_servers(executor);
    gauge!("cx_http_sessions").set(count(sessions));
    gauge!("cx_http_connections").set(count(connections));
    gauge!("cx_uptime_seconds").set(shared.started.elapsed().as_secs_f64());
    if let Some(bytes) = resident::guard().resident_bytes() {
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

/// Sets the number of tokens of tenants that are in force.
pub(crate) fn set_tokens(number: usize) {
    gauge!("cx_http_tokens").set(count(number));
}

/// Sets whether newer tokens cannot be used.
pub(crate) fn set_tokens_failing(is_failing: bool) {
    gauge!("cx_http_tokens_failing").set(f64::from(u8::from(is_failing)));
}

/// Counts tokens that were added and revoked.
pub(crate) fn count_token_changes(added: usize, revoked: usize) {
    for (change, number) in [("added", added), ("revoked", revoked)] {
        counter!("cx_http_token_changes_total", "change" => change).increment(number as u64);
    }
}

/// Counts a script that was refused because of a rate limit of runs.
pub(crate) fn count_rate_limited() {
    counter!("cx_runs_rate_limited_total").increment(1);
}

/// Bytes of one token in the estimate. Tokenizers make 3 to 5 bytes of JSON and English one token.
const BYTES_OF_TOKEN: u64 = 4;

/// Counts what a script's tools returned to it, and what its answer returned to the agent. The difference has stayed
/// out of the model's context.
pub(crate) fn count_answer(tool_result_bytes: u64, answer_bytes: u64) {
    counter!("cx_tool_result_bytes_total").increment(tool_result_bytes);
    counter!("cx_answer_bytes_total").increment(answer_bytes);
    let kept_out = tool_result_bytes.saturating_sub(answer_bytes);
    counter!("cx_context_kept_out_bytes_total").increment(kept_out);
    counter!("cx_context_kept_out_tokens_estimate_total").increment(kept_out / BYTES_OF_TOKEN);
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
