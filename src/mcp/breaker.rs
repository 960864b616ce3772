//! The circuit breaker of one server: after five failures in a row it refuses calls for half a
//! minute, then lets one through to see.
//!
//! Ours, because the crates that there are let every call through when half open (`failsafe` 1.3) or
//! are tied to a middleware stack, and a server that has just come back is hurt most by a crowd.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::sync::{self, Mutex};

/// How many failures in a row open it.
pub(super) const FAILURES: u32 = 5;

/// How long it stays open.
pub(super) const OPEN_TIME: Duration = Duration::from_secs(30);

/// Shared by all calls to one server.
#[derive(Debug)]
pub(super) struct Breaker {
    server: Arc<str>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Grows with each change of phase: what began in another phase says nothing about this one.
    epoch: u64,
    failures_total: u64,
}

/// What the breaker lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Everything.
    Closed {
        /// Failures in a row.
        failures: u32,
    },
    /// Nothing.
    Open {
        /// Until then.
        until: Instant,
    },
    /// Nothing but the call that is on its way.
    HalfOpen,
}

/// What a call says about the health of its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallOutcome {
    /// It answered. A tool's own failure is an answer too.
    Healthy,
    /// It did not: transport, timeout, protocol.
    Failed,
    /// Nothing: it was never asked, or nobody waited.
    Unknown,
}

/// One call's leave to permit. Dropped without a outcome it says nothing.
#[derive(Debug)]
pub(super) struct Permit {
    breaker: Arc<Breaker>,
    epoch: u64,
    recorded: bool,
}

impl Breaker {
    pub(super) fn new(server: Arc<str>) -> Arc<Self> {
        let state = State { phase: Phase::Closed { failures: 0 }, epoch: 0, failures_total: 0 };
        Arc::new(Self { server, state: Mutex::new(state) })
    }

    /// Lets a call through, or says when it is worth trying again.
    pub(super) fn enter(self: &Arc<Self>, now: Instant) -> Result<Permit, Duration> {
        let mut state = self.state.lock();
        match state.phase {
            Phase::Closed { .. } => {}
            Phase::Open { until } if now < until => return Err(until - now),
            Phase::Open { .. } => self.change(&mut state, Phase::HalfOpen),
            // The probe ends within a call's time; nobody knows better when.
            Phase::HalfOpen => return Err(Duration::from_secs(1)),
        }
        Ok(Permit { breaker: Arc::clone(self), epoch: state.epoch, recorded: false })
    }

    pub(super) fn phase(&self) -> Phase {
        self.state.lock().phase
    }

    pub(super) fn failures_total(&self) -> u64 {
        self.state.lock().failures_total
    }

    fn record(&self, epoch: u64, outcome: CallOutcome, now: Instant) {
        let mut state = self.state.lock();
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
                self.change(&mut state, Phase::Open { until: now + OPEN_TIME });
            }
            (Phase::Closed { failures: 0 }, CallOutcome::Healthy) => {}
            (Phase::Closed { .. }, CallOutcome::Healthy) => state.phase = Phase::Closed { failures: 0 },
            (Phase::HalfOpen, CallOutcome::Healthy) => self.change(&mut state, Phase::Closed { failures: 0 }),
            // The probe came to nothing: the next call is one.
            (Phase::HalfOpen, CallOutcome::Unknown) => self.change(&mut state, Phase::Open { until: now }),
            (Phase::Closed { .. }, CallOutcome::Unknown) | (Phase::Open { .. }, _) => {}
        }
    }

    fn change(&self, state: &mut State, phase: Phase) {
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
    pub(super) fn as_metric(self) -> f64 {
        match self {
            Self::Closed { .. } => 0.0,
            Self::Open { .. } => 1.0,
            Self::HalfOpen => 0.5,
        }
    }
}

impl Permit {
    /// Says what came of the call.
    pub(super) fn record(mut self, outcome: CallOutcome, now: Instant) {
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
