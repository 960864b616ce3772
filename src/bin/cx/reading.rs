//! What the metrics of a server say, as numbers that `cx top` and `cx ui` show.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::prometheus::{Samples, total};

/// One reading of a server's metrics.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading {
    pub(crate) runs_active: f64,
    pub(crate) runs_queued: f64,
    pub(crate) runs_limit: f64,
    pub(crate) runs_ok: f64,
    pub(crate) runs_failed: f64,
    pub(crate) hung_workers: f64,
    pub(crate) engine_queued: f64,
    /// 95th percentiles in seconds; `None` before the first run.
    pub(crate) run_p95: Option<f64>,
    pub(crate) wait_p95: Option<f64>,
    pub(crate) calls: f64,
    pub(crate) calls_failed: f64,
    pub(crate) calls_active: f64,
    pub(crate) calls_queued: f64,
    pub(crate) kept_out_tokens: f64,
    pub(crate) audit_dropped: f64,
    pub(crate) is_audit_failing: bool,
    pub(crate) are_tokens_failing: bool,
    pub(crate) resident_bytes: f64,
    pub(crate) uptime: f64,
    pub(crate) servers_connected: f64,
    /// The upstream servers by name.
    pub(crate) upstream: BTreeMap<String, UpstreamReading>,
}

/// The part of one upstream server.
#[derive(Clone, Debug, Default)]
pub(crate) struct UpstreamReading {
    /// 0 closed, 0.5 half open, 1 open.
    pub(crate) breaker: f64,
    pub(crate) breaker_failures: f64,
    pub(crate) active: f64,
    pub(crate) queued: f64,
    pub(crate) calls: f64,
    pub(crate) failed: f64,
    pub(crate) p95: Option<f64>,
    pub(crate) rate_limited: f64,
}

impl UpstreamReading {
    /// The state of the circuit breaker in a word.
    pub(crate) fn breaker_state(&self) -> &'static str {
        if self.breaker >= 1.0 {
            "open"
        } else if self.breaker > 0.0 {
            "half open"
        } else {
            "closed"
        }
    }
}

impl Reading {
    pub(crate) fn new(samples: &Samples) -> Self {
        let all_runs = samples.sum("cx_runs_total");
        let runs_ok = samples.sum_with("cx_runs_total", "outcome", "ok");
        let all_calls = samples.sum("cx_tool_calls_total");
        let mut upstream: BTreeMap<String, UpstreamReading> = BTreeMap::new();
        for sample in samples.named("circuit_breaker_state") {
            upstream.entry(sample.label("server").to_owned()).or_default().breaker = sample.value;
        }
        for (name, server) in &mut upstream {
            let sum = |metric: &str| samples.sum_with(metric, "server", name);
            server.breaker_failures = sum("circuit_breaker_failures_total");
            server.active = sum("pool_active_connections");
            server.queued = sum("pool_queue_depth");
            server.calls = sum("cx_tool_calls_total");
            server.rate_limited = sum("rate_limited_total");
            let ok = samples
                .named("cx_tool_calls_total")
                .filter(|sample| sample.label("server") == name && sample.label("outcome") == "ok");
            server.failed = server.calls - total(ok.map(|sample| sample.value));
            server.p95 = percentile(samples, "cx_tool_call_duration_seconds", Some(name));
        }
        Self {
            runs_active: samples.sum("cx_runs_active"),
            runs_queued: samples.sum("cx_runs_queued"),
            runs_limit: samples.sum("cx_runs_limit"),
            runs_ok,
            runs_failed: all_runs - runs_ok,
            hung_workers: samples.sum("cx_engine_hung_workers"),
            engine_queued: samples.sum("cx_engine_queued_runs"),
            run_p95: percentile(samples, "cx_run_duration_seconds", None),
            wait_p95: percentile(samples, "cx_run_queue_wait_seconds", None),
            calls: all_calls,
            calls_failed: all_calls - samples.sum_with("cx_tool_calls_total", "outcome", "ok"),
            calls_active: samples.sum("pool_active_connections"),
            calls_queued: samples.sum("pool_queue_depth"),
            kept_out_tokens: samples.sum("cx_context_kept_out_tokens_estimate_total"),
            audit_dropped: samples.sum("cx_audit_events_dropped_total"),
            is_audit_failing: samples.sum("cx_audit_failing") > 0.0,
            are_tokens_failing: samples.sum("cx_http_tokens_failing") > 0.0,
            resident_bytes: samples.sum("process_resident_memory_bytes"),
            uptime: samples.sum("cx_uptime_seconds"),
            servers_connected: samples.sum("cx_servers_connected"),
            upstream,
        }
    }

    /// Whether something needs a person's attention, in words.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.hung_workers > 0.0 {
            problems.push(format!("{} hung workers", self.hung_workers));
        }
        if self.is_audit_failing {
            problems.push("the audit trail cannot be written".to_owned());
        }
        if self.are_tokens_failing {
            problems.push("the tokens have changed and cannot be used".to_owned());
        }
        let open = self.upstream.values().filter(|server| server.breaker > 0.0).count();
        if open > 0 {
            problems.push(format!("{open} circuit breakers not closed"));
        }
        problems
    }

    pub(crate) fn to_json(&self) -> Value {
        let upstream: Vec<Value> = self
            .upstream
            .iter()
            .map(|(name, server)| {
                json!({
                    "name": name, "breaker": server.breaker_state(), "breakerFailures": server.breaker_failures,
                    "active": server.active, "queued": server.queued, "calls": server.calls,
                    "failed": server.failed, "p95": server.p95, "rateLimited": server.rate_limited,
                })
            })
            .collect();
        json!({
            "runsActive": self.runs_active, "runsQueued": self.runs_queued, "runsLimit": self.runs_limit,
            "runsOk": self.runs_ok, "runsFailed": self.runs_failed, "runP95": self.run_p95,
            "waitP95": self.wait_p95, "calls": self.calls, "callsFailed": self.calls_failed,
            "callsActive": self.calls_active, "callsQueued": self.calls_queued,
            "engineQueued": self.engine_queued, "keptOutTokens": self.kept_out_tokens,
            "auditDropped": self.audit_dropped, "residentBytes": self.resident_bytes, "uptime": self.uptime,
            "serversConnected": self.servers_connected, "problems": self.problems(), "upstream": upstream,
        })
    }
}

/// The upper bound of the bucket in which the 95th percentile of a histogram is, of one server or of all
/// labels. `None` without an observation.
fn percentile(samples: &Samples, name: &str, server: Option<&str>) -> Option<f64> {
    let buckets_name = format!("{name}_bucket");
    let mut buckets: Vec<(f64, f64)> = Vec::new();
    let mine = samples
        .named(&buckets_name)
        .filter(|sample| server.is_none_or(|server| sample.label("server") == server));
    for sample in mine {
        // `+Inf` parses as infinity.
        let Ok(bound) = sample.label("le").parse::<f64>() else { continue };
        match buckets.iter_mut().find(|(known, _)| *known == bound) {
            Some((_, count)) => *count += sample.value,
            None => buckets.push((bound, sample.value)),
        }
    }
    buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
    let (_, all) = *buckets.last()?;
    if all <= 0.0 {
        return None;
    }
    let largest = buckets.iter().rev().map(|(bound, _)| *bound).find(|bound| bound.is_finite());
    let found = buckets.iter().find(|(_, count)| *count >= all * 0.95)?.0;
    if found.is_finite() { Some(found) } else { largest }
}
