//! What the servers do, for people and monitors to look at.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::breaker::Phase;
use super::limiter::Limiter;
use crate::tools::{ToolError, ToolErrorCode};

/// Of how many calls the times are kept.
const KEPT_TIMES: usize = 256;

/// What one server does at this moment.
///
/// The same figures go to the `metrics` facade as they change: `circuit_breaker_state`,
/// `circuit_breaker_failures_total`, `pool_active_connections`, `pool_queue_depth`,
/// `pool_queue_wait_seconds`, `pool_queue_full_total`, `rate_limited_total`, `cx_tool_calls_total` and
/// `cx_tool_call_duration_seconds`, each with the label `server`.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ServerStats {
    /// The server's name.
    pub name: String,
    /// Whether there is a connection.
    pub state: ServerState,
    /// The revision of the protocol that both sides speak, while there is a connection.
    pub protocol_version: Option<String>,
    /// How many tools it listed last, if it was asked since this process started.
    pub tools: Option<usize>,
    /// Why the last call or attempt to connect failed, if one did.
    pub last_error: Option<String>,
    /// The circuit breaker: 0 closed, 1 open, 0.5 half open.
    pub circuit_breaker_state: f64,
    /// How long until an open circuit lets a call through again.
    pub circuit_retry_after: Option<Duration>,
    /// Failures that the circuit breaker has counted.
    pub circuit_breaker_failures_total: u64,
    /// Calls that are with the server.
    pub active: usize,
    /// Calls that wait for a place.
    pub waiting: usize,
    /// Calls refused because too many were waiting, or because they waited too long.
    pub queue_full_total: u64,
    /// Calls refused because of the rate limit.
    pub rate_limited_total: u64,
    /// Calls that have ended, whatever came of them.
    pub calls_total: u64,
    /// Calls that ended in an error other than the tool's own.
    pub failures_total: u64,
    /// The median time of the last 256 calls.
    pub p50: Option<Duration>,
    /// What 95 of 100 of them stayed under.
    pub p95: Option<Duration>,
}

/// Whether there is a connection to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerState {
    /// Not needed yet, or stopped because it was idle.
    #[default]
    Stopped,
    /// Being started.
    Connecting,
    /// Ready.
    Connected,
    /// It did not start, or it was lost and not needed since.
    Failed,
}

impl ServerState {
    /// The state as replies show it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Connecting => "connecting",
            Self::Connected => "connected",
            Self::Failed => "failed",
        }
    }
}

/// A call as the metrics see it, however it ends.
pub(super) struct CountedCall {
    server: Arc<str>,
    /// When it was let through to the server, if it was.
    pub(super) began: Option<Instant>,
    pub(super) outcome: &'static str,
}

impl CountedCall {
    pub(super) fn new(server: &Arc<str>) -> Self {
        // What is dropped before it ends has been cancelled.
        Self { server: Arc::clone(server), began: None, outcome: ToolErrorCode::Cancelled.as_str() }
    }
}

impl Drop for CountedCall {
    fn drop(&mut self) {
        let server = self.server.to_string();
        if let Some(began) = self.began {
            metrics::histogram!("cx_tool_call_duration_seconds", "server" => server.clone())
                .record(began.elapsed());
        }
        metrics::counter!("cx_tool_calls_total", "server" => server, "outcome" => self.outcome).increment(1);
    }
}

/// How long the last calls took.
#[derive(Default)]
pub(super) struct CallTimes {
    inner: Mutex<Times>,
}

#[derive(Default)]
struct Times {
    last: VecDeque<Duration>,
    calls: u64,
    failures: u64,
}

impl CallTimes {
    pub(super) fn record(&self, time: Duration, error: Option<&ToolError>) {
        let mut times = self.inner.lock();
        times.calls += 1;
        times.failures += u64::from(error.is_some_and(|error| error.code != ToolErrorCode::ToolError));
        if times.last.len() == KEPT_TIMES {
            times.last.pop_front();
        }
        times.last.push_back(time);
    }

    pub(super) fn fill(&self, stats: &mut ServerStats) {
        let times = self.inner.lock();
        stats.calls_total = times.calls;
        stats.failures_total = times.failures;
        let mut sorted: Vec<Duration> = times.last.iter().copied().collect();
        drop(times);
        sorted.sort_unstable();
        let quantile = |percent: usize| {
            // The nearest rank, so that it is a time that was measured.
            sorted.get((sorted.len() * percent).div_ceil(100).saturating_sub(1)).copied()
        };
        stats.p50 = quantile(50);
        stats.p95 = quantile(95);
    }
}

impl Limiter {
    pub(super) fn fill(&self, stats: &mut ServerStats) {
        let phase = self.breaker.phase();
        stats.circuit_breaker_state = phase.as_metric();
        if let Phase::Open { until } = phase {
            stats.circuit_retry_after = Some(until.saturating_duration_since(std::time::Instant::now()));
        }
        stats.circuit_breaker_failures_total = self.breaker.failures_total();
        stats.active = self.active();
        stats.waiting = self.waiting();
        stats.queue_full_total = self.queue_full_total();
        stats.rate_limited_total = self.rate_limited_total();
    }
}
