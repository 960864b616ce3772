//! Upstream MCP servers. Only this module and `server` use rmcp.
//!
//! [`McpServers`] is the [`ToolDispatcher`](crate::tools::ToolDispatcher) of all configured
//! servers. Each server has at most one connection, which is opened when it is first needed and
//! shared by all runs. Servers are child processes, which are reached over stdio, or remote
//! servers, which are reached over HTTP. A call that the server may have received is never sent
//! again, because it may have had effects.

mod pool;

mod activity;
pub(crate) mod address;
mod answers;
mod backoff;
mod breaker;
mod calls;
mod challenge;
mod connect;
mod connection;
mod counted;
mod definitions;
mod errors;
mod follow;
mod followed;
mod handshake;
mod http;
mod input;
mod limiter;
mod lists;
mod message;
mod notifications;
#[cfg(feature = "oauth")]
pub mod oauth;
#[cfg(not(feature = "oauth"))]
#[path = "no_oauth.rs"]
mod oauth;
mod pages;
mod patience;
mod questions;
mod requests;
mod results;
mod server;
mod settings;
mod skills;
mod start;
mod stats;
mod stderr;
mod stdio;
mod task_making;
mod task_state;
mod tasks;
mod tool_changes;
pub(crate) mod web;

pub(crate) use handshake::protocol_revisions;
pub(crate) use pool::McpServers;
pub use settings::{HttpKind, HttpTransport, McpServer, McpTransport, OAuth, Root, StdioTransport};
pub use stats::{ServerState, ServerStats};

#[cfg(fuzzing)]
pub(crate) use challenge::fuzzing::challenges as fuzz_challenges;
#[cfg(fuzzing)]
pub(crate) use stdio::fuzzing::server_lines as fuzz_server_lines;

#[cfg(test)]
mod tests;
