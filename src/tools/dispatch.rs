//! The trait that lists and calls the tools of one or more servers.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::elicitation::ElicitationHandler;
use super::error::{ToolError, ToolErrorCode};
use super::result::ToolResult;
use super::schema::Schema;
use crate::json::Json;

/// A tool as its server describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolDefinition {
    /// The tool's name, unique on its server.
    pub name: String,
    /// The server's description of the tool. Untrusted text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of its arguments.
    pub input_schema: Schema,
    /// JSON Schema of its structured result, if the server declares one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Schema>,
    /// The server's hints (`readOnlyHint` and the like). They never grant anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
}

impl ToolDefinition {
    /// A tool of this name that takes any object. The other fields are empty and can be set.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: None,
            input_schema: Schema::any_object(),
            output_schema: None,
            annotations: None,
        }
    }
}

/// The tools that a server lists.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolList {
    /// The tools in the server's order.
    pub tools: Vec<ToolDefinition>,
    /// How long the list is valid, as the server says; `None` if it does not say.
    pub ttl: Option<Duration>,
    /// What was left out of the list, and why; `None` if nothing was.
    pub problem: Option<String>,
}

impl ToolList {
    /// A list for which the server names no time.
    pub fn new(tools: Vec<ToolDefinition>) -> Self {
        Self { tools, ttl: None, problem: None }
    }
}

/// What is known of a server without asking it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerDetails {
    /// What the server is for, in the words of whoever configured it. Scripts can read it.
    pub description: Option<String>,
    /// The working directory that was configured for the server's process. Scripts can read it:
    /// they need it to write paths that the server understands.
    pub directory: Option<PathBuf>,
}

/// Receives the progress notifications of a call.
pub type ProgressListener = Arc<dyn Fn(Progress) + Send + Sync>;

/// A progress notification of a call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// Work done so far. Grows with each notification.
    pub progress: f64,
    /// Total amount of work, if known.
    pub total: Option<f64>,
    /// The server's description of the current step. Untrusted text.
    pub message: Option<String>,
}

impl Progress {
    /// A notification without a total and a message, which can be set.
    pub fn new(progress: f64) -> Self {
        Self { progress, total: None, message: None }
    }
}

/// One call, after admission control and name resolution: both names are the server's own.
#[derive(Clone)]
#[non_exhaustive]
pub struct ToolRequest {
    /// The server's name as configured.
    pub server: Arc<str>,
    /// The tool's name as the server lists it.
    pub tool: Arc<str>,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// Half a second after the latest time at which the run ends, including all time that it may
    /// spend on approval prompts. The call must have ended by then, or earlier if `cancel` is
    /// cancelled, as it is when the run ends.
    pub deadline: Instant,
    /// Cancelled when the run ends for any reason. The upstream call must then be cancelled too.
    pub cancel: CancellationToken,
    /// Receives the call's progress notifications, if anything listens.
    pub on_progress: Option<ProgressListener>,
    /// Answers what the server asks the user during the call; `None` if nobody can be asked. While it
    /// waits, the time limits of the call stand still.
    pub on_elicitation: Option<ElicitationHandler>,
}

impl ToolRequest {
    /// A call that nothing cancels, whose progress nobody follows, and during which nobody is asked;
    /// all three can be set.
    pub fn new(
        server: impl Into<Arc<str>>,
        tool: impl Into<Arc<str>>,
        arguments: Map<String, Value>,
        deadline: Instant,
    ) -> Self {
        Self {
            server: server.into(),
            tool: tool.into(),
            arguments,
            deadline,
            cancel: CancellationToken::new(),
            on_progress: None,
            on_elicitation: None,
        }
    }
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

/// A request for resources or prompts. Results are the protocol's own JSON.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ServerRequest {
    /// All resources that the server lists, as one array.
    ListResources,
    /// The contents of a resource.
    ReadResource {
        /// The resource's URI.
        uri: String,
    },
    /// All prompts that the server lists, as one array.
    ListPrompts,
    /// The messages of a prompt.
    GetPrompt {
        /// The prompt's name.
        name: String,
        /// The prompt's arguments.
        arguments: Map<String, Value>,
    },
}

impl ServerRequest {
    /// The methods of all requests.
    pub(crate) const METHODS: [&'static str; 4] =
        ["resources/list", "resources/read", "prompts/list", "prompts/get"];

    /// The protocol's method. Policies treat it as a tool name.
    pub const fn method(&self) -> &'static str {
        match self {
            Self::ListResources => "resources/list",
            Self::ReadResource { .. } => "resources/read",
            Self::ListPrompts => "prompts/list",
            Self::GetPrompt { .. } => "prompts/get",
        }
    }

    /// The same request with other parameters, such as [`parameters`](Self::parameters) returns.
    ///
    /// # Errors
    ///
    /// `InvalidArguments` if the method does not take them.
    pub(crate) fn with_parameters(self, mut parameters: Map<String, Value>) -> Result<Self, ToolError> {
        let mut text = |name: &str| match parameters.remove(name) {
            Some(Value::String(text)) => Ok(text),
            _ => {
                let message = format!("expected the parameter `{name}` as a string");
                Err(ToolError::new(ToolErrorCode::InvalidArguments, message))
            }
        };
        Ok(match self {
            Self::ListResources | Self::ListPrompts => self,
            Self::ReadResource { .. } => Self::ReadResource { uri: text("uri")? },
            Self::GetPrompt { .. } => Self::GetPrompt {
                name: text("name")?,
                arguments: match parameters.remove("arguments") {
                    Some(Value::Object(arguments)) => arguments,
                    _ => Map::new(),
                },
            },
        })
    }

    /// The parameters of the protocol's method, without the cursors of paginated lists.
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
/// This crate implements it for native tools and for MCP servers. Embedders can implement it for
/// tools of another kind ([`ExecutorBuilder::dispatcher`](crate::ExecutorBuilder::dispatcher)).
///
/// Futures are polled on the script's thread with the executor's tokio runtime entered, so
/// `tokio::spawn`, timers and sockets work and outlive the run. Dropping a future cancels its work.
/// The caller enforces policy, budgets and result limits, so they apply to every implementation.
pub trait ToolDispatcher: Send + Sync + 'static {
    /// The names of the servers, in a stable order. Must not block.
    fn servers(&self) -> Vec<Arc<str>>;

    /// The tools of `server`, in the server's order. Connects to the server first if necessary.
    ///
    /// Returns the same `Arc` as long as the list is the same.
    ///
    /// # Errors
    ///
    /// `UpstreamUnavailable`, `UpstreamProtocol` or `ToolTimeout` if the list cannot be fetched
    /// before `deadline`.
    fn tools<'a>(
        &'a self,
        server: &'a str,
        deadline: Instant,
    ) -> BoxFuture<'a, Result<Arc<ToolList>, ToolError>>;

    /// A string that identifies `server` as long as it offers the same tools: the key of its list
    /// in the cache on disk. `None` if the list should not be cached.
    fn identity(&self, _server: &str) -> Option<String> {
        None
    }

    /// Incremented whenever the tools of `server` may differ from those last listed: the server has
    /// sent a notification, or it was restarted. Must not block.
    fn generation(&self, _server: &str) -> u64 {
        0
    }

    /// What is known of `server` besides its tools. Must not block, and starts nothing.
    fn details(&self, _server: &str) -> ServerDetails {
        ServerDetails::default()
    }

    /// Calls a tool once. Never retries, because a call may have had effects.
    ///
    /// # Errors
    ///
    /// Every failure except the tool's own, which is an `Ok` result with [`ToolResult::is_error`]
    /// set.
    fn call(&self, request: ToolRequest) -> BoxFuture<'_, Result<ToolResult, ToolError>>;

    /// Sends a request for resources or prompts to a server. Results are not cached.
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

    /// Closes connections and ends child processes. Idempotent; later calls fail.
    fn close(&self) {}
}
