//! The circuit breaker of one server. After five consecutive failures of calls or starts it refuses
//! both for 30 s, then admits one call as a probe.
//!
//! It is written here because the existing crates admit every call when half open (`failsafe` 1.3)
//! or are tied to a middleware stack. A burst of calls is worst for a server that has just
//! recovered.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::sync::{self, Mutex};

/// Number of consecutive failures that open the circuit.
pub(crate) const FAILURES: u32 = 5;

/// How long the circuit stays open.
pub(crate) const OPEN_TIME: Duration = Duration::from_secs(30);

/// Shared by all calls to one server.
#[derive(Debug)]
pub(crate) struct Breaker {
    server: Arc<str>,
    state: Mutex<BreakerState>,
}

#[derive(Debug)]
struct BreakerState {
    phase: Phase,
    /// Grows with each change of phase. The outcome of a call that began in another phase is
    /// ignored.
    epoch: u64,
    failures_total: u64,
}

/// Which calls are admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// All calls.
    Closed {
        /// Number of consecutive failures.
        failures: u32,
    },
    /// No calls.
    Open {
        /// When the first probe is admitted.
        until: Instant,
    },
    /// No calls except the probe in flight.
    HalfOpen,
}

/// What the result of a call says about its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    /// The server answered. A tool's own error is an answer too.
    Healthy,
    /// The server did not answer: transport error, timeout, or protocol error.
    Failed,
    /// Nothing: the call was not sent, or was cancelled.
    Unknown,
}

/// Permit for one call. Dropping it without an outcome records nothing about the server.
#[derive(Debug)]
pub(crate) struct Permit {
    breaker: Arc<Breaker>,
    epoch: u64,
    recorded: bool,
}

impl Breaker {
    pub(crate) fn new(server: Arc<str>) -> Arc<Self> {
        let state = BreakerState { phase: Phase::Closed { failures: 0 }, epoch: 0, failures_total: 0 };
        Arc::new(Self { server, state: Mutex::new(state) })
    }

    /// Admits a call, or returns the time until a retry makes sense.
    pub(crate) fn enter(self: &Arc<Self>, now: Instant) -> Result<Permit, Duration> {
        let mut state = self.state.lock();
        match state.phase {
            Phase::Closed { .. } => {}
            Phase::Open { until } if now < until => return Err(until - now),
            Phase::Open { .. } => self.change(&mut state, Phase::HalfOpen),
            // The probe ends within a call's timeout; there is no better estimate.
            Phase::HalfOpen => return Err(Duration::from_secs(1)),
        }
        Ok(Permit { breaker: Arc::clone(self), epoch: state.epoch, recorded: false })
    }

    pub(crate) fn phase(&self) -> Phase {
        self.state.lock().phase
    }

    pub(crate) fn failures_total(&self) -> u64 {
        self.state.lock().failures_total
    }

    /// Records that the server did not start. A start is shared by all calls that wait for it, and
    /// by requests that are no calls, so it has no permit of its own.
    pub(crate) fn record_failed_start(&self, now: Instant) {
        let mut state = self.state.lock();
        let epoch = state.epoch;
        self.record_in(&mut state, epoch, CallOutcome::Failed, now);
    }

    fn record(&self, epoch: u64, outcome: CallOutcome, now: Instant) {
        self.record_in(&mut self.state.lock(), epoch, outcome, now);
    }

    fn record_in(&self, state: &mut BreakerState, epoch: u64, outcome: CallOutcome, now: Instant) {
        if outcome == CallOutcome::Failed {
            state.failures_total += 1;
            metrics::counter!("circuit_breaker_failures_total", "server" => self.server.to_string())
                .increment(1);
        }
        if epoch != state.epoch {
            return;
        }
        match (state.phase, outcome) {
            (Phase::Closed { failures }, CallOutcome::Failed) if failures + 1 < FAILURES => {
                state.phase = Phase::Closed { failures: failures + 1 };
            }
            (Phase::Closed { .. } | Phase::HalfOpen, CallOutcome::Failed) => {
                self.change(state, Phase::Open { until: now + OPEN_TIME });
            }
            (Phase::Closed { failures: 0 }, CallOutcome::Healthy) => {}
            (Phase::Closed { .. }, CallOutcome::Healthy) => state.phase = Phase::Closed { failures: 0 },
            (Phase::HalfOpen, CallOutcome::Healthy) => self.change(state, Phase::Closed { failures: 0 }),
            // The probe had no outcome, so the next call becomes the probe.
            (Phase::HalfOpen, CallOutcome::Unknown) => self.change(state, Phase::Open { until: now }),
            // A start ahead of the probe has failed.
            (Phase::Open { until }, CallOutcome::Failed) if until <= now => {
                self.change(state, Phase::Open { until: now + OPEN_TIME });
            }
            (Phase::Closed { .. }, CallOutcome::Unknown) | (Phase::Open { .. }, _) => {}
        }
    }

    fn change(&self, state: &mut BreakerState, phase: Phase) {
        state.epoch += 1;
        state.phase = phase;
        match phase {
            Phase::Open { .. } => tracing::warn!(server = &*self.server, "circuit open"),
            Phase::HalfOpen => tracing::info!(server = &*self.server, "circuit half open"),
            Phase::Closed { .. } => tracing::info!(server = &*self.server, "circuit closed"),
        }
        metrics::gauge!("circuit_breaker_state", "server" => self.server.to_string()).set(phase.as_metric());
    }
}

impl Phase {
    /// 0 closed, 1 open, 0.5 half open.
    pub(crate) fn as_metric(self) -> f64 {
        match self {
            Self::Closed { .. } => 0.0,
            Self::Open { .. } => 1.0,
            Self::HalfOpen => 0.5,
        }
    }
}

impl Permit {
    /// Records the call's outcome.
    pub(crate) fn record(mut self, outcome: CallOutcome, now: Instant) {
        self.recorded = true;
        self.breaker.record(self.epoch, outcome, now);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if !self.recorded {
            self.breaker.record(self.epoch, CallOutcome::Unknown, sync::now());
        }
    }
}

#[cfg(test)]
mod models;
#[cfg(test)]
mod tests;
