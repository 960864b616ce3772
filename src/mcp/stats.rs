//! Statistics of the servers, for users and monitoring.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::breaker::Phase;
use super::limiter::Limiter;
use crate::tools::{ToolError, ToolErrorCode};

/// Number of calls whose durations are kept.
const KEPT_TIMES: usize = 256;

/// The current figures of one server.
///
/// The same figures are reported to the `metrics` facade as they change: `circuit_breaker_state`,
/// `circuit_breaker_failures_total`, `pool_active_connections`, `pool_queue_depth`,
/// `pool_queue_wait_seconds`, `pool_queue_full_total`, `rate_limited_total`, `cx_tool_calls_total`
/// and `cx_tool_call_duration_seconds`, each with the label `server`.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ServerStats {
    /// The server's name.
    pub name: String,
    /// The state of its connection.
    pub state: ServerState,
    /// The negotiated protocol revision, while there is a connection.
    pub protocol_version: Option<String>,
    /// How long its process took to start, while there is a connection to one.
    pub start_time: Option<Duration>,
    /// How long the handshake took, while there is a connection.
    pub handshake_time: Option<Duration>,
    /// How long its last list of tools took.
    pub list_time: Option<Duration>,
    /// The number of tools in its last list; `None` if they have not been listed since this process
    /// started.
    pub tools: Option<usize>,
    /// Why the last failed call or attempt to connect failed.
    pub last_error: Option<String>,
    /// The circuit breaker: 0 closed, 1 open, 0.5 half open.
    pub circuit_breaker_state: f64,
    /// Time until an open circuit admits a call again.
    pub circuit_retry_after: Option<Duration>,
    /// Number of failures that the circuit breaker has counted.
    pub circuit_breaker_failures_total: u64,
    /// Number of calls in flight.
    pub active: usize,
    /// Number of calls that wait for a slot.
    pub waiting: usize,
    /// Number of calls refused because too many were waiting, or because they waited too long.
    pub queue_full_total: u64,
    /// Number of calls refused because of the rate limit.
    pub rate_limited_total: u64,
    /// Number of calls that have ended, with any result.
    pub calls_total: u64,
    /// Number of calls that ended in an error other than the tool's own.
    pub failures_total: u64,
    /// The median duration of the last 256 calls.
    pub p50: Option<Duration>,
    /// The 95th percentile of their durations.
    pub p95: Option<Duration>,
}

/// The state of the connection to a server.
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
    /// The server did not start, or the connection was lost and has not been needed since.
    Failed,
}

impl ServerState {
    /// The state's name in replies.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Connecting => "connecting",
            Self::Connected => "connected",
            Self::Failed => "failed",
        }
    }
}

/// The durations of the last calls.
#[derive(Default)]
pub(crate) struct CallTimes {
    inner: Mutex<Times>,
}

#[derive(Default)]
struct Times {
    last: VecDeque<Duration>,
    calls: u64,
    failures: u64,
}

impl CallTimes {
    pub(crate) fn record(&self, time: Duration, error: Option<&ToolError>) {
        let mut times = self.inner.lock();
        times.calls += 1;
        times.failures += u64::from(error.is_some_and(|error| error.code != ToolErrorCode::ToolError));
        if times.last.len() == KEPT_TIMES {
            times.last.pop_front();
        }
        times.last.push_back(time);
    }

    pub(crate) fn fill(&self, stats: &mut ServerStats) {
        let times = self.inner.lock();
        stats.calls_total = times.calls;
        stats.failures_total = times.failures;
        let mut sorted: Vec<Duration> = times.last.iter().copied().collect();
        drop(times);
        sorted.sort_unstable();
        let quantile = |percent: usize| {
            // The nearest rank, so that the result is a duration that was measured.
            sorted.get((sorted.len() * percent).div_ceil(100).saturating_sub(1)).copied()
        };
        stats.p50 = quantile(50);
        stats.p95 = quantile(95);
    }
}

impl Limiter {
    pub(crate) fn fill(&self, stats: &mut ServerStats) {
        let phase = self.breaker.phase();
        stats.circuit_breaker_state = phase.as_metric();
        if let Phase::Open { until } = phase {
            stats.circuit_retry_after = Some(until.saturating_duration_since(Instant::now()));
        }
        stats.circuit_breaker_failures_total = self.breaker.failures_total();
        stats.active = self.active();
        stats.waiting = self.waiting();
        stats.queue_full_total = self.queue_full_total();
        stats.rate_limited_total = self.rate_limited_total();
    }
}
