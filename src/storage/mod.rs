//! Persistent data: files that only their owner can change, and the state of scripts.

pub(crate) mod files;
#[cfg(any(feature = "cli", all(feature = "process", target_os = "linux")))]
pub(crate) mod named;
pub(crate) mod ownership;
pub(crate) mod private;
#[cfg(any(feature = "audit", feature = "oauth"))]
pub(crate) mod regular;
#[cfg(feature = "cli")]
pub(crate) mod replace;
pub(crate) mod scripts;
#[cfg_attr(
    not(any(feature = "state", all(feature = "nats", target_os = "linux"))),
    expect(dead_code, reason = "only over a NATS server")
)]
pub(crate) mod shared;
pub(crate) mod state;
