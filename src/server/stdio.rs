//! The server's stdio transport: one JSON-RPC message per line.
//!
//! rmcp's own line transport does not answer a line that is too long, is not JSON or has the wrong
//! form. It also identifies requests by the client's ids, so of two requests with the same id one
//! gets no answer. Here every request with a readable id is answered, rmcp sees ids of this module,
//! and answers carry the client's id as it was written.
//!
//! rmcp also starts a task for every request that it receives, without a bound. Here the requests
//! in flight are bounded. Beyond the bound, lines go to a [look-ahead](backpressure::LookAhead),
//! from which only cancellations and answers to this server's requests are handled at once. When
//! the look-ahead is full too, nothing more is read.

mod backpressure;
mod message;
mod requests;
mod transport;

pub(crate) use transport::ClientLines;

#[cfg(any(test, fuzzing))]
#[path = "../../fuzz/entries/server_lines.rs"]
pub(crate) mod fuzzing;
