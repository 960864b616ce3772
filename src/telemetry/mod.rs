//! Records and reports of runs: the audit trail, traces, and OpenTelemetry.

#[cfg(feature = "audit")]
pub mod audit;
#[cfg(any(feature = "audit", feature = "otel"))]
mod masked;
pub(crate) mod options;
#[cfg(feature = "otel")]
pub(crate) mod otel;
#[cfg(any(feature = "audit", feature = "otel"))]
mod priority;
pub(crate) mod requests;
pub(crate) mod run_trace;
