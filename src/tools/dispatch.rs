//! The seam: what can list and call the tools of some servers.

use std::sync::Arc;
use std::time::Instant;

use futures::future::BoxFuture;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{ToolError, ToolResult};

/// A tool as its server describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    /// The tool's name, unique on its server.
    pub name: String,
    /// What it does, in the server's words. Untrusted text.
    pub description: Option<String>,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
    /// JSON Schema of its structured result, if the server gives one.
    pub output_schema: Option<Value>,
    /// The server's hints (`readOnlyHint` and the like). They never grant anything.
    pub annotations: Option<Value>,
}

/// One call, admitted and resolved: both names are the server's own.
#[derive(Clone, Debug)]
pub struct ToolRequest {
    /// The server's name as configured.
    pub server: Arc<str>,
    /// The tool's name as the server gave it.
    pub tool: Arc<str>,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// When the run ends. The call must have ended by then.
    pub deadline: Instant,
    /// Is cancelled when the run is over for any reason: the upstream call must be cancelled too.
    pub cancel: CancellationToken,
}

/// Lists and calls the tools of one or more servers.
///
/// Implemented inside this crate for native tools and for MCP servers, and open to embedders who
/// have tools of another kind ([`ExecutorBuilder::dispatcher`](crate::ExecutorBuilder::dispatcher)).
///
/// Futures are polled on the script's thread with the executor's tokio runtime entered, so
/// `tokio::spawn`, timers and sockets work and outlive the run. Dropping a future cancels what it
/// does. Policy, budgets and result limits are the caller's: they hold for every implementation.
pub trait ToolDispatcher: Send + Sync + 'static {
    /// The names of the servers, in a stable order. Must not block.
    fn servers(&self) -> Vec<Arc<str>>;

    /// The tools of `server`, in the server's order, connecting to it first if need be.
    ///
    /// Returns the same `Arc` for as long as the list is the same.
    ///
    /// # Errors
    ///
    /// `UpstreamUnavailable`, `UpstreamProtocol` or `ToolTimeout` when the list cannot be had before
    /// `deadline`.
    fn tools<'a>(
        &'a self,
        server: &'a str,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Arc<[ToolDefinition]>, ToolError>>;

    /// Calls a tool once. Never retries: a call may have had effects.
    ///
    /// # Errors
    ///
    /// Everything except a tool's own failure, which is an `Ok` result with
    /// [`ToolResult::is_error`] set.
    fn call(&self, request: ToolRequest) -> BoxFuture<'_, Result<ToolResult, ToolError>>;

    /// Ends connections and child processes. Idempotent; calls made afterwards fail.
    fn close(&self) {}
}
