//! The HTTP transports: streamable HTTP, and through [`sse`] its predecessor.
//!
//! This replaces rmcp's transport. rmcp's worker parses each result by trying every type, ends the
//! whole connection because of one invalid answer, ignores `Retry-After`, resumes streams on the
//! server's terms, and does not bound the server's requests. Here each request ends separately,
//! within its deadline, with an error that explains what happened; and nothing that the server may
//! have acted on is sent twice.

mod body;
mod client;
mod connection;
mod events;
mod failure;
mod headers;
mod inbox;
mod requests;
mod sse;
mod state;
mod transport;

pub(crate) use state::{Deadlines, HttpState, LastKind};
pub(crate) use transport::connect_transport;

#[cfg(test)]
mod tests;
