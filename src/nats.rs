//! A queue of runs on a NATS server, and the conversation of one run with the worker that takes it.
//!
//! `queue.rs` offers and takes runs: at least once as JetStream delivers them, and granted to one worker by the side
//! that offers. `link.rs` then passes bytes on in both directions, in the messages of `conversation.rs`, which are
//! sealed by `seal.rs`. `tenant.rs` and `bucket.rs` keep what front ends share. The NATS server and everybody who is
//! connected to it are believed nothing: what they can do is to delay or to lose messages, and to put back what was
//! shared before. `docs/nats.md` describes the protocol.

pub(crate) mod bucket;
mod conversation;
pub(crate) mod link;
pub(crate) mod queue;
pub(crate) mod seal;
pub(crate) mod server;
pub(crate) mod tenant;

#[cfg(test)]
mod tests;
