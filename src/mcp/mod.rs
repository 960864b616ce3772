//! The protocol room: MCP servers whose tools scripts call. The only place that names rmcp.
//!
//! [`McpServers`] is the [`ToolDispatcher`](crate::tools::ToolDispatcher) of all configured servers.
//! Each has at most one connection, made when it is first needed and shared by every run. No HTTP
//! here yet: servers are child processes that speak over their stdin and stdout. No retries either:
//! a call that was sent may have had effects.

mod pool;

mod client;

mod connect;

mod breaker;
mod convert;
mod limiter;
mod http;
mod stdio;
mod message;
pub mod oauth;
mod pages;
mod server;
mod settings;
mod notifications;
mod sse;
mod stats;

pub(crate) use pool::McpServers;
pub use settings::{HttpKind, HttpTransport, McpServer, McpTransport, OAuth, RateLimit, StdioTransport};
pub use stats::{ServerState, ServerStats};

#[cfg(fuzzing)]
pub(crate) use http::fuzz_events;
#[cfg(fuzzing)]
pub(crate) use stdio::fuzzing::server_lines as fuzz_server_lines;

#[cfg(test)]
mod tests;
