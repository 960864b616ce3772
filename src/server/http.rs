//! The HTTP transport: MCP for any number of clients, the health report, the metrics and the REST form.

mod serve;

mod listener;
mod metrics_page;
mod middleware;
mod page;
mod rest;
mod routes;
mod small_server;
mod socket;
mod state;
#[cfg_attr(not(all(feature = "process", target_os = "linux")), path = "http/no_workers.rs")]
mod workers;

mod accepted;
mod authentication;
mod body;
mod cors;
mod options;
mod problem;
mod reading;
mod responses;
mod tenants;
mod token;

mod connections;
mod events;
mod following;
mod kept;
mod pace;
mod rest_runs;
mod session;
mod sessions;
mod shares;
mod streams;
mod tenant_state;
mod token_changes;

pub(crate) use metrics_page::serve as serve_metrics;
pub use options::{HttpOptions, MetricsOptions, MetricsPrinter};
pub use page::{Page, PageAnswer, PageClient, PageError, PageHandler, PageRequest};
pub use reading::TokenReading;
pub(crate) use serve::serve;
pub use tenants::{HttpTenant, TenantReader};
pub use token::{HttpToken, TokenReader};

#[cfg(test)]
mod tests;
