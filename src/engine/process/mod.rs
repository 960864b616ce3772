//! Runs in worker processes: a second sandbox boundary around an engine, on Linux.
//! `docs/isolation.md` says what it promises.
//!
//! The executor's half is an engine of the pool ([`processes::Processes`]) whose instances speak to
//! workers (`workers.rs`). The worker's half is `worker.rs`, with the host interface of `guest.rs`
//! and the sandbox of `sandbox.rs`. Between them are the frames of `frames.rs` with the messages of
//! `wire.rs`.

mod connection;
mod conversation;
mod fork_server;
mod forks;
mod frames;
mod group;
mod guest;
#[cfg(any(feature = "http", feature = "nats"))]
pub(crate) mod lent;
pub(crate) mod lost;
pub(crate) mod processes;
#[cfg(any(feature = "http", feature = "mcp", feature = "nats"))]
pub(crate) mod refusal;
#[cfg(any(feature = "nats", test))]
pub(crate) mod relay;
mod resources;
mod sandbox;
mod spin;
mod surveys;
mod used_pages;
mod wire;
pub(crate) mod worker;
pub(crate) mod workers;

#[cfg(any(feature = "mcp", feature = "nats"))]
pub(crate) use connection::adopt;
#[cfg(any(feature = "mcp", feature = "nats"))]
pub(crate) use connection::end_process_with;
pub(crate) use connection::{end_process, own_socket};
#[cfg(feature = "mcp")]
pub(crate) use wire::depth_of_run;
pub(crate) use workers::{WorkerProgram, WorkerRole};

#[cfg(test)]
mod tests;
