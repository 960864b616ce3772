//! The seam: what can list and call the tools of some servers.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::{Schema, ToolError, ToolErrorCode, ToolResult};
use crate::json::Json;

/// A tool as its server describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDefinition {
    /// The tool's name, unique on its server.
    pub name: String,
    /// What it does, in the server's words. Untrusted text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of its arguments.
    pub input_schema: Schema,
    /// JSON Schema of its structured result, if the server gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Schema>,
    /// The server's hints (`readOnlyHint` and the like). They never grant anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
}

/// What a server offers, as it listed it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolList {
    /// The tools in the server's order.
    pub tools: Vec<ToolDefinition>,
    /// How long the server says that the list holds; `None` if it says nothing.
    pub ttl: Option<Duration>,
}

/// Is told how far a call has come, in the words of the protocol's progress notifications.
pub type ProgressListener = Arc<dyn Fn(Progress) + Send + Sync>;

/// How far a call has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// How much is done. Grows with each report.
    pub progress: f64,
    /// How much there is to do, if that is known.
    pub total: Option<f64>,
    /// What is being done, in the server's words. Untrusted text.
    pub message: Option<String>,
}

/// One call, admitted and resolved: both names are the server's own.
#[derive(Clone)]
pub struct ToolRequest {
    /// The server's name as configured.
    pub server: Arc<str>,
    /// The tool's name as the server gave it.
    pub tool: Arc<str>,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// When the run ends at the latest, all the time included that it may spend asking a person. The call must have
    /// ended by then, and earlier when `cancel` says so.
    pub deadline: Instant,
    /// Is cancelled when the run is over for any reason: the upstream call must be cancelled too.
    pub cancel: CancellationToken,
    /// Wants to know how far the call has come.
    pub on_progress: Option<ProgressListener>,
}

impl fmt::Debug for ToolRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ToolRequest")
            .field("server", &self.server)
            .field("tool", &self.tool)
            .field("arguments", &self.arguments)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// What a server offers besides tools. Answers are the protocol's own JSON.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ServerRequest {
    /// All resources that the server lists, as one array.
    ListResources,
    /// The contents of a resource.
    ReadResource {
        /// Which one.
        uri: String,
    },
    /// All prompts that the server lists, as one array.
    ListPrompts,
    /// A prompt's messages.
    GetPrompt {
        /// Which one.
        name: String,
        /// Its arguments.
        arguments: Map<String, Value>,
    },
}

impl ServerRequest {
    /// The protocol's method. Policies see it as the name of a tool.
    pub const fn method(&self) -> &'static str {
        match self {
            Self::ListResources => "resources/list",
            Self::ReadResource { .. } => "resources/read",
            Self::ListPrompts => "prompts/list",
            Self::GetPrompt { .. } => "prompts/get",
        }
    }

    /// The parameters of the protocol's method, pages of lists aside.
    pub fn parameters(&self) -> Map<String, Value> {
        let parameters = match self {
            Self::ListResources | Self::ListPrompts => Value::Null,
            Self::ReadResource { uri } => json!({ "uri": uri }),
            Self::GetPrompt { name, arguments } => json!({ "name": name, "arguments": arguments }),
        };
        match parameters {
            Value::Object(parameters) => parameters,
            _ => Map::new(),
        }
    }
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
    ) -> BoxFuture<'a, Result<Arc<ToolList>, ToolError>>;

    /// What names `server` for as long as it offers the same: the key under which its list may be
    /// kept on disk. `None` if the list is not worth keeping.
    fn identity(&self, _server: &str) -> Option<String> {
        None
    }

    /// Grows whenever `server` may offer something else than it last listed: it has said so, or it
    /// was started anew. Must not block.
    fn generation(&self, _server: &str) -> u64 {
        0
    }

    /// Calls a tool once. Never retries: a call may have had effects.
    ///
    /// # Errors
    ///
    /// Everything except a tool's own failure, which is an `Ok` result with
    /// [`ToolResult::is_error`] set.
    fn call(&self, request: ToolRequest) -> BoxFuture<'_, Result<ToolResult, ToolError>>;

    /// Asks a server for what it offers besides tools. Asked each time: nothing is kept.
    ///
    /// # Errors
    ///
    /// As [`ToolDispatcher::call`]; `ToolNotFound` for servers that have tools only.
    fn request(
        &self,
        server: Arc<str>,
        _request: ServerRequest,
        _deadline: Instant,
        _cancel: CancellationToken,
    ) -> BoxFuture<'_, Result<Json, ToolError>> {
        let message = format!("server `{server}` has no resources and no prompts");
        futures::future::ready(Err(ToolError::new(ToolErrorCode::ToolNotFound, message))).boxed()
    }

    /// Ends connections and child processes. Idempotent; calls made afterwards fail.
    fn close(&self) {}
}
