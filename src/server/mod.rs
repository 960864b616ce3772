//! MCP server whose tools run scripts. Agents connect to it. Only this module and `mcp` use rmcp.
//!
//! ```no_run
//! # async fn serve() -> Result<(), cx::Error> {
//! use cx::server::{Server, ServerOptions};
//! use cx::{CancellationToken, Executor, HistoryLimits};
//!
//! let executor = Executor::builder()
//!     .mcp_config_file("mcp.json")
//!     .keep_runs(HistoryLimits::default())
//!     .build()?;
//! let server = Server::new(executor, ServerOptions::default());
//! server.warm();
//! let stop = CancellationToken::new();
//! let ended = server.serve(tokio::io::stdin(), tokio::io::stdout(), &stop).await;
//! # Ok(())
//! # }
//! ```
//!
//! [`Server::serve_http`] does the same over HTTP, for any number of clients.
//!
//! A [`Server`] lives as long as the process. Each client has a session; the calls of a session are
//! runs of the executor. Clients of the handshake revisions (2024-11-05 to 2025-11-25) and of the
//! stateless revision (2026-07-28) are served.

mod sampling;
mod serve;
mod serve_stdio;

#[cfg(feature = "http")]
mod http;
mod stdio;

mod answer_size;
mod audited;
mod handler;
mod requests;
mod session;
mod shared;

mod call;
mod direct;
mod direct_call;
mod pending;
mod prepare;
mod request_id;
mod request_span;
mod run_answer;
mod run_in_flight;
mod run_rate;
mod tasks;
mod wait;
mod yielded;

mod approval;
mod arguments;
mod elicitation;
mod event_queue;
mod incoming;
mod json_size;
mod list_changes;
mod notifications;
mod prompt;
mod waiting_bytes;

mod answer;
mod guide;
mod health;
mod index;
mod interface_updates;
mod interfaces;
mod metrics;
mod output_schemas;
mod resources;
mod shown;
mod skills;
mod subscriptions;
mod tools;
mod unserved;
mod updates;

mod calls;
mod client_slots;
mod fingerprint;
mod hung_workers;
mod shutdown;

pub use answer::Format;
#[cfg(feature = "http")]
pub use http::{
    HttpOptions, HttpTenant, HttpToken, MetricsOptions, MetricsPrinter, Page, PageAnswer, PageClient,
    PageError, PageHandler, PageRequest, TenantReader, TokenReader, TokenReading,
};
pub use metrics::describe_metrics;
pub use serve::{Server, ServerContext};
pub use shared::ServerOptions;
pub use shutdown::ShutdownReason;

#[cfg(test)]
mod tests;
