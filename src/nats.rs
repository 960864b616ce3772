//! A queue of runs on a NATS server, and the conversation of one run with the worker that takes it.
//!
//! `queue.rs` offers and takes runs: at least once as JetStream delivers them, and granted to one
//! worker by the side that offers. `channel.rs` then passes bytes on in both directions, in the
//! messages of `conversation.rs`, which are sealed by `seal.rs`. `tenant.rs` and `bucket.rs` keep
//! what front ends share. The NATS server and all its clients are untrusted: they can delay or lose
//! messages, and restore earlier shared entries, and nothing else. `docs/nats.md` describes the
//! protocol.

pub(crate) mod bucket;
pub(crate) mod channel;
mod conversation;
pub(crate) mod queue;
pub(crate) mod seal;
pub(crate) mod server;
pub(crate) mod tenant;

#[cfg(test)]
mod tests;
