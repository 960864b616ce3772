//! The metrics of a server as numbers that `cx top` and `cx ui` show.

use std::collections::BTreeMap;

use cx::server::PageError;
use serde_json::{Value, json};

use crate::prometheus::{Sample, Samples};
use crate::text::counted;

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
    pub(crate) is_audit_unsigned: bool,
    pub(crate) are_tokens_failing: bool,
    pub(crate) resident_bytes: f64,
    pub(crate) uptime: f64,
    pub(crate) servers_connected: f64,
    /// The upstream servers by name.
    pub(crate) upstream: BTreeMap<String, UpstreamReading>,
}

/// The result of reading a server.
#[derive(Clone, Debug)]
pub(crate) enum ServerReading {
    /// The server does not listen, so that nothing can be read.
    NotListening,
    Read(Reading),
    /// Why its metrics cannot be read.
    Failed(String),
}

impl ServerReading {
    /// The reading of a page of metrics.
    pub(crate) fn from_metrics(metrics: Result<String, PageError>) -> Self {
        match metrics {
            Ok(text) => Self::Read(Reading::new(&Samples::parse(&text))),
            Err(error) => Self::Failed(error.to_string()),
        }
    }

    /// The numbers, if there are any.
    pub(crate) const fn numbers(&self) -> Option<&Reading> {
        match self {
            Self::Read(reading) => Some(reading),
            Self::NotListening | Self::Failed(_) => None,
        }
    }

    pub(crate) const fn is_listening(&self) -> bool {
        !matches!(self, Self::NotListening)
    }
}

/// The numbers of one upstream server.
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
        // Each sample is read for one server only, because another process chooses the number of servers and samples.
        for (name, own) in samples.by_label("server") {
            let Some(state) = own.named("circuit_breaker_state").last() else { continue };
            let calls = own.sum("cx_tool_calls_total");
            let server = UpstreamReading {
                breaker: state.value,
                breaker_failures: own.sum("circuit_breaker_failures_total"),
                active: own.sum("pool_active_connections"),
                queued: own.sum("pool_queue_depth"),
                calls,
                failed: calls - own.sum_with("cx_tool_calls_total", "outcome", "ok"),
                p95: percentile(&own, "cx_tool_call_duration_seconds"),
                rate_limited: own.sum("rate_limited_total"),
            };
            upstream.insert(name.to_owned(), server);
        }
        Self {
            runs_active: samples.sum("cx_runs_active"),
            runs_queued: samples.sum("cx_runs_queued"),
            runs_limit: samples.sum("cx_runs_limit"),
            runs_ok,
            runs_failed: all_runs - runs_ok,
            hung_workers: samples.sum("cx_engine_hung_workers"),
            engine_queued: samples.sum("cx_engine_queued_runs"),
            run_p95: percentile(samples, "cx_run_duration_seconds"),
            wait_p95: percentile(samples, "cx_run_queue_wait_seconds"),
            calls: all_calls,
            calls_failed: all_calls - samples.sum_with("cx_tool_calls_total", "outcome", "ok"),
            calls_active: samples.sum("pool_active_connections"),
            calls_queued: samples.sum("pool_queue_depth"),
            kept_out_tokens: samples.sum("cx_context_kept_out_tokens_estimate_total"),
            audit_dropped: samples.sum("cx_audit_events_dropped_total"),
            is_audit_failing: samples.sum("cx_audit_failing") > 0.0,
            is_audit_unsigned: samples.sum("cx_audit_unsigned") > 0.0,
            are_tokens_failing: samples.sum("cx_http_tokens_failing") > 0.0,
            resident_bytes: samples.sum("process_resident_memory_bytes"),
            uptime: samples.sum("cx_uptime_seconds"),
            servers_connected: samples.sum("cx_servers_connected"),
            upstream,
        }
    }

    /// Problems that need a person's attention, in words.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.hung_workers > 0.0 {
            let plural = if self.hung_workers > 1.0 { "s" } else { "" };
            problems.push(format!("{} hung worker{plural}", self.hung_workers));
        }
        if self.is_audit_failing {
            problems.push("the audit trail cannot be written".to_owned());
        }
        if self.is_audit_unsigned {
            problems.push("the audit trail cannot be signed".to_owned());
        }
        if self.are_tokens_failing {
            problems.push("the tokens have changed and cannot be used".to_owned());
        }
        let open = self.upstream.values().filter(|server| server.breaker > 0.0).count();
        if open > 0 {
            problems.push(format!("{} not closed", counted(open, "circuit breaker")));
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

/// The upper bound of the bucket that contains the 95th percentile of a histogram, over all labels. `None` without an
/// observation.
fn percentile(samples: &Samples, name: &str) -> Option<f64> {
    let buckets_name = format!("{name}_bucket");
    // `+Inf` parses as infinity.
    let bucket = |sample: &Sample| Some((sample.label("le").parse::<f64>().ok()?, sample.value));
    let mut buckets: Vec<(f64, f64)> = samples.named(&buckets_name).filter_map(bucket).collect();
    buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
    buckets.dedup_by(|next, first| {
        let is_same = next.0 == first.0;
        if is_same {
            first.1 += next.1;
        }
        is_same
    });
    let (_, all) = *buckets.last()?;
    if all <= 0.0 {
        return None;
    }
    let largest = buckets.iter().rev().map(|(bound, _)| *bound).find(|bound| bound.is_finite());
    let found = buckets.iter().find(|(_, count)| *count >= all * 0.95)?.0;
    if found.is_finite() { Some(found) } else { largest }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prometheus::LOOKED_AT;

    fn read(page: &str) -> Reading {
        Reading::new(&Samples::parse(page))
    }

    #[test]
    fn numbers_of_upstream_servers_are_their_own() {
        let reading = read(concat!(
            "circuit_breaker_state{server=\"a\"} 0\n",
            "circuit_breaker_state{server=\"b\"} 1\n",
            "cx_tool_calls_total{server=\"a\",outcome=\"ok\"} 3\n",
            "cx_tool_calls_total{server=\"a\",outcome=\"failed\"} 2\n",
            "cx_tool_calls_total{server=\"b\",outcome=\"ok\"} 7\n",
            "cx_tool_call_duration_seconds_bucket{server=\"a\",tool=\"x\",le=\"0.1\"} 1\n",
            "cx_tool_call_duration_seconds_bucket{server=\"a\",tool=\"x\",le=\"+Inf\"} 1\n",
            "cx_tool_call_duration_seconds_bucket{server=\"a\",tool=\"y\",le=\"0.1\"} 0\n",
            "cx_tool_call_duration_seconds_bucket{server=\"a\",tool=\"y\",le=\"0.5\"} 3\n",
            "cx_tool_call_duration_seconds_bucket{server=\"a\",tool=\"y\",le=\"+Inf\"} 3\n",
            "rate_limited_total{server=\"c\"} 9\n",
        ));
        let (a, b) = (&reading.upstream["a"], &reading.upstream["b"]);
        assert_eq!((a.calls, a.failed, a.breaker_state()), (5.0, 2.0, "closed"));
        assert_eq!((b.calls, b.failed, b.breaker_state()), (7.0, 0.0, "open"));
        assert_eq!((a.p95, b.p95), (Some(0.5), None));
        assert_eq!(reading.upstream.len(), 2, "without a breaker it is no server");
    }

    #[test]
    fn what_needs_a_persons_attention_is_in_words() {
        let page = "cx_engine_hung_workers 2\ncx_audit_failing 1\ncx_audit_unsigned 1\ncx_http_tokens_failing 1\n\
            circuit_breaker_state{server=\"a\"} 0.5\n";
        let expected = [
            "2 hung workers",
            "the audit trail cannot be written",
            "the audit trail cannot be signed",
            "the tokens have changed and cannot be used",
            "1 circuit breaker not closed",
        ];
        assert_eq!(read(page).problems(), expected);
        assert!(read("cx_audit_failing 0\ncx_audit_unsigned 0\n").problems().is_empty());
    }

    /// Servers times samples, each of which another process chooses.
    #[test]
    fn v_537_metrics_of_many_servers_are_read_once() {
        const SERVERS: usize = 4_000;
        let mut page = String::new();
        for number in 0..SERVERS {
            page.push_str(&format!("circuit_breaker_state{{server=\"s{number}\"}} 0\n"));
            page.push_str(&format!("cx_tool_calls_total{{server=\"s{number}\",outcome=\"ok\"}} {number}\n"));
            page.push_str(&format!(
                "cx_tool_call_duration_seconds_bucket{{server=\"s0\",le=\"{number}\"}} 1\n"
            ));
        }
        let samples = Samples::parse(&page);
        let before = LOOKED_AT.get();
        let reading = Reading::new(&samples);
        assert_eq!(reading.upstream.len(), SERVERS);
        assert_eq!(reading.upstream["s3999"].calls, 3_999.0);
        assert_eq!(reading.upstream["s0"].p95, Some(0.0));
        // Some thirty times for the numbers of all servers and of its own, and not for each server.
        let looked_at = LOOKED_AT.get() - before;
        assert!(looked_at < 100 * 3 * SERVERS, "{looked_at}");
    }
}
