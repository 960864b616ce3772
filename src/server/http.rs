//! The HTTP transport: MCP for any number of clients, the health report and the metrics.

mod serve;

mod listener;
mod middleware;
mod routes;
mod socket;
mod state;

mod authentication;
mod body;
mod cors;
mod options;
mod responses;

mod connections;
mod session;
mod sessions;
mod shares;
mod streams;

pub use authentication::HttpToken;
pub use options::{HttpOptions, MetricsPrinter};
pub(crate) use serve::serve;

#[cfg(test)]
mod tests;
