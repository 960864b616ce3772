//! The trait that lists and calls the tools of one or more servers.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::elicitation::ElicitationHandler;
use super::error::{ToolError, ToolErrorCode};
use super::result::ToolResult;
use super::schema::Schema;
use super::server_request::ServerRequest;
use super::stored_script::{Language, ScriptCaller, ToolKind, UnsavedScript};
use super::trace_context::TraceContext;
use crate::json::{Json, numbers};

/// The extension with which servers give tools a user interface (MCP Apps, SEP-1865).
pub(crate) const INTERFACES: &str = "io.modelcontextprotocol/ui";

/// The media type of such an interface, which a client has to support.
pub(crate) const INTERFACE_TYPE: &str = "text/html;profile=mcp-app";

/// The scheme of the addresses of such interfaces.
pub(crate) const INTERFACE_SCHEME: &str = "ui://";

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
    /// The server's `_meta` of the tool, an object of at most 64 KiB. Untrusted, and passed on to clients that see the
    /// tool directly. It is not part of what is pinned.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

impl ToolDefinition {
    /// A tool with this name that accepts any object. The other fields are empty and can be set.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: None,
            input_schema: Schema::any_object(),
            output_schema: None,
            annotations: None,
            meta: None,
        }
    }

    /// The address of the tool's user interface (MCP Apps), if it has one.
    pub(crate) fn interface(&self) -> Option<&str> {
        interface_address(self.meta.as_ref()?)
    }

    /// Whether the definition says anything about user interfaces: the tool has one, or is called
    /// by one.
    pub(crate) fn is_of_interface(&self) -> bool {
        let belongs = |meta: &Value| meta.get("ui").is_some_and(Value::is_object);
        self.interface().is_some() || self.meta.as_ref().is_some_and(belongs)
    }
}

/// The address of a user interface in the `_meta` of its tool.
pub(crate) fn interface_address(meta: &Value) -> Option<&str> {
    let named = meta.get("ui").and_then(|ui| ui.get("resourceUri"));
    // The key of the extension's first drafts, which servers still write.
    let address = named.or_else(|| meta.get("ui/resourceUri"))?.as_str()?;
    address.starts_with(INTERFACE_SCHEME).then_some(address)
}

/// The tools that a server lists.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolList {
    /// The tools in the server's order.
    pub tools: Vec<ToolDefinition>,
    /// How long the list is valid according to the server; `None` if the server does not specify it.
    pub ttl: Option<Duration>,
    /// What was left out of the list, and why; `None` if nothing was.
    pub problem: Option<String>,
    /// Whether the server was told that it may ask the user questions (elicitation); `None` if it was told neither.
    /// Some servers list more tools then, so that a tool which another list lacks is not gone.
    pub with_elicitation: Option<bool>,
}

impl ToolList {
    /// A list without a specified lifetime.
    pub fn new(tools: Vec<ToolDefinition>) -> Self {
        Self { tools, ttl: None, problem: None, with_elicitation: None }
    }
}

/// What is known of a server without a request to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerDetails {
    /// What the server is for, as the configuration describes it. Scripts can read it.
    pub description: Option<String>,
    /// The working directory that was configured for the server's process. Scripts can read it:
    /// they need it to write paths that the server understands.
    pub directory: Option<PathBuf>,
    /// How the server is reached; `None` for tools of this process.
    pub remote: Option<RemoteServer>,
}

/// How a server is reached, in the terms of OpenTelemetry's conventions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteServer {
    /// `pipe` or `tcp`.
    pub transport: &'static str,
    /// The host, if it is reached over a network.
    pub address: Option<String>,
    /// Its port.
    pub port: Option<u16>,
}

impl RemoteServer {
    /// A server at this host and port.
    #[cfg(feature = "fetch")]
    pub(crate) fn tcp(host: &str, port: u16) -> Self {
        Self { transport: "tcp", address: Some(host.to_owned()), port: Some(port) }
    }
}

/// What is known of a request after it was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SentRequest {
    /// The request's id in the protocol.
    pub request_id: String,
    /// The protocol's revision.
    pub protocol_version: Option<Arc<str>>,
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
    /// The arguments. Integers beyond 64 bits are the nearest `f64` here;
    /// [`arguments_json`](Self::arguments_json) has their digits.
    pub arguments: Map<String, Value>,
    /// The original digits of the numbers that lost precision in the tree, in their order.
    pub(crate) exact_numbers: Vec<Box<str>>,
    /// Half a second after the latest time at which the run ends, including all time that it may
    /// spend on approval prompts. The call must have ended by then, or earlier if `cancel` is
    /// cancelled, as it is when the run ends.
    pub deadline: Instant,
    /// Cancelled when the run ends for any reason. The upstream call must then be cancelled too.
    pub cancel: CancellationToken,
    /// Receives the call's progress notifications, if anything listens.
    pub on_progress: Option<ProgressListener>,
    /// Answers the server's questions to the user during the call; `None` if no user can be asked. While a question is
    /// open, the time limits of the call are paused.
    pub on_elicitation: Option<ElicitationHandler>,
    /// The call's position in a trace, which goes into the request's `_meta`
    /// ([`TraceContext::to_meta`]); `None` if no traces are made.
    pub trace: Option<TraceContext>,
    /// Where the dispatcher stores what it has sent, if the caller needs it.
    pub sent: Option<Arc<OnceLock<SentRequest>>>,
    /// The run that makes the call, for a tool of the kind [`ToolKind::Script`] or [`ToolKind::ScriptChange`]; `None`
    /// for other tools, and if stored scripts cannot be run.
    pub caller: Option<ScriptCaller>,
}

impl ToolRequest {
    /// A call without cancellation, progress listener and elicitation handler; all three can be
    /// set.
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
            exact_numbers: Vec::new(),
            deadline,
            cancel: CancellationToken::new(),
            on_progress: None,
            on_elicitation: None,
            trace: None,
            sent: None,
            caller: None,
        }
    }

    /// The arguments as JSON text, with all digits of their integers.
    pub fn arguments_json(&self) -> Json {
        exact_json(&self.arguments, &self.exact_numbers)
    }
}

/// The arguments as JSON text, with the digits that the tree has lost.
pub(crate) fn exact_json(arguments: &Map<String, Value>, exact: &[Box<str>]) -> Json {
    let json = Json::from_serialize(arguments).unwrap_or_else(|_| Value::Null.into());
    if exact.is_empty() {
        return json;
    }
    Json::parse(&numbers::with_exact_numbers(json.text().to_owned(), exact)).unwrap_or(json)
}

impl fmt::Debug for ToolRequest {
    /// Omits the arguments: they may contain secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ToolRequest")
            .field("server", &self.server)
            .field("tool", &self.tool)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// The options with which a [`ServerRequest`] is sent.
#[derive(Clone)]
#[non_exhaustive]
pub struct RequestContext {
    /// As [`ToolRequest::deadline`].
    pub deadline: Instant,
    /// As [`ToolRequest::cancel`].
    pub cancel: CancellationToken,
    /// As [`ToolRequest::on_elicitation`]. A server may ask before it gives the contents of a resource or a prompt.
    pub on_elicitation: Option<ElicitationHandler>,
    /// As [`ToolRequest::trace`].
    pub trace: Option<TraceContext>,
    /// As [`ToolRequest::sent`].
    pub sent: Option<Arc<OnceLock<SentRequest>>>,
}

impl RequestContext {
    /// A request without cancellation, elicitation handler and trace; all three can be set.
    pub fn new(deadline: Instant) -> Self {
        let cancel = CancellationToken::new();
        Self { deadline, cancel, on_elicitation: None, trace: None, sent: None }
    }
}

impl fmt::Debug for RequestContext {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RequestContext").field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

/// Lists and calls the tools of one or more servers.
///
/// This crate implements it for native tools and for MCP servers. Embedders can implement it for
/// tools of another kind ([`ExecutorBuilder::dispatcher`](crate::ExecutorBuilder::dispatcher)).
///
/// Futures are polled on the script's thread with the executor's tokio runtime entered, so
/// `tokio::spawn`, timers and sockets work and outlive the run. Dropping a future cancels its work.
/// The caller enforces policy, budgets and result limits, so they apply to every implementation. A
/// panic is a failure with `TOOL_ERROR`; its message is logged, and the script does not see it.
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

    /// The tools of `server` if they are known without a request to a server, as for tools of this machine; else
    /// `None`. Returns the same `Arc` as long as the list is the same. May block for the time of reading a few small
    /// files.
    fn known(&self, _server: &str) -> Option<Arc<ToolList>> {
        None
    }

    /// A string that identifies `server` as long as it offers the same tools: the key of its list
    /// in the cache on disk. `None` if the list should not be cached.
    fn identity(&self, _server: &str) -> Option<String> {
        None
    }

    /// A string that identifies `server` as long as its tools return results of the same types: the key of its inferred
    /// output schemas on disk. `None` if they should not be stored. Nothing else may depend on it: it can be equal for
    /// servers that differ in what they may access.
    fn results_identity(&self, server: &str) -> Option<String> {
        self.identity(server)
    }

    /// Incremented whenever the tools of `server` may differ from those last listed: the server has
    /// sent a notification, or it was restarted. Must not block.
    fn generation(&self, _server: &str) -> u64 {
        0
    }

    /// Whether calls may change the tools of `server` while a script runs, as far as is known. If they cannot, a script
    /// that calls a tool which is not in the list fails for certain, and is refused before it runs. Must not block.
    fn may_change_tools(&self, _server: &str) -> bool {
        true
    }

    /// Whether `server` is told that it may ask the user questions. A stored list of a client that may not be asked
    /// is out of date then: it [can lack tools](ToolList::with_elicitation). Must not block.
    fn declares_elicitation(&self, _server: &str) -> bool {
        false
    }

    /// The tools of `server`, if they are known without waiting. Must not block.
    fn tools_now(&self, _server: &str) -> Option<Arc<ToolList>> {
        None
    }

    /// What is known of `server` besides its tools. Must not block or start anything.
    fn details(&self, _server: &str) -> ServerDetails {
        ServerDetails::default()
    }

    /// How `server` is reached, as [`details`](Self::details) says it. Asked for each call that is
    /// recorded, so an implementation can leave the other details out. Must not block.
    fn remote(&self, server: &str) -> Option<RemoteServer> {
        self.details(server).remote
    }

    /// What a call of a tool does. Must not block.
    fn kind(&self, _server: &str, _tool: &str) -> ToolKind {
        ToolKind::Ordinary
    }

    /// The script that a call of a tool of the kind [`ToolKind::ScriptChange`] would store, for a calling script in
    /// `language`; `None`, as by default, if the call stores none.
    ///
    /// It is compiled before a person is asked to approve the call. If that fails, the call does, with all mistakes, and
    /// nobody is asked.
    ///
    /// # Errors
    ///
    /// Why the call cannot succeed. Nobody is asked either.
    fn unsaved_script(
        &self,
        _server: &str,
        _tool: &str,
        _arguments: &Map<String, Value>,
        _language: Language,
    ) -> Result<Option<UnsavedScript>, ToolError> {
        Ok(None)
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
        _context: RequestContext,
    ) -> BoxFuture<'_, Result<Json, ToolError>> {
        let message = format!("server `{server}` has no resources and no prompts");
        futures::future::ready(Err(ToolError::new(ToolErrorCode::ToolNotFound, message))).boxed()
    }

    /// Closes connections and ends child processes. Idempotent; later calls fail.
    fn close(&self) {}
}
