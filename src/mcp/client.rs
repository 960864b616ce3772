//! One connection to one server: handshake, list, call, end.

use std::process::ExitStatus;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ErrorCode, Implementation,
    PaginatedRequestParams,
};
use rmcp::service::{ClientCacheConfig, ClientInitializeError, RunningService, ServiceError};
use rmcp::{ClientHandler, Peer, RoleClient, ServiceExt as _};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::connect::{self, Process};
use super::convert::{self, ToolList};
use super::lines::LineTransport;
use super::settings::StdioTransport;
use crate::tools::{ToolDefinition, ToolError, ToolErrorCode, ToolResult};

/// Servers answer the handshake when they have started; ten seconds let `npx` fetch a small package.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Listing reads memory in every server known. This is for all pages together.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// No server is known to have more; an endless list stops here.
const MOST_PAGES: usize = 100;
const MOST_TOOLS: usize = 10_000;

/// How long the rest of a dead server's output may take to be read: it is in the pipe already.
const DRAIN_TIME: Duration = Duration::from_millis(250);

/// How long a server that has closed its stdout may take to exit, so that its status is known.
const EXIT_TIME: Duration = Duration::from_millis(250);

/// How long a server may take to end when its stdin ends, and again when it is asked by a signal.
const GRACE: Duration = Duration::from_secs(1);

/// How long a killed process may take to be gone, and how long a failed call waits to learn why.
const KILL_TIME: Duration = Duration::from_secs(1);

/// What this client tells a server about itself: no capabilities, so no sampling, no questions to
/// the user, no roots.
struct Client;

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(
            ClientCapabilities::default(),
            Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")),
        )
    }
}

/// A live connection, shared by all runs. Over when the server's stdout ends, and not used again.
pub(super) struct Connection {
    server: Arc<str>,
    peer: Peer<RoleClient>,
    list_changes: Arc<AtomicU64>,
    /// No more answers will come.
    ended: CancellationToken,
    /// The owner wants the server to end.
    stop: CancellationToken,
    /// How it ended, when everything has been tidied up.
    end: OnceLock<String>,
    finished: CancellationToken,
}

/// A connection without a process: what is left when the pipes are given.
pub(super) struct Wire {
    running: RunningService<RoleClient, Client>,
    list_changes: Arc<AtomicU64>,
    ended: CancellationToken,
    writing: JoinHandle<()>,
}

impl Connection {
    /// Starts the server and shakes hands with it.
    ///
    /// `adopt` is given the process as soon as there is one, so that the owner can kill it at any
    /// time; it returns whether the server is still wanted.
    pub(super) async fn start(
        config: &StdioTransport,
        server: Arc<str>,
        handle: &Handle,
        adopt: impl FnOnce(&Arc<Process>) -> bool,
    ) -> Result<Arc<Self>, ToolError> {
        let (process, pipes) =
            connect::spawn(config, handle).await.map_err(|error| not_started(&server, config, &error))?;
        let process = Arc::new(process);
        tracing::info!(server = &*server, process = process.id(), "server started");
        if !adopt(&process) {
            return Err(closed(&server));
        }
        let drained = tokio::spawn(process.drain(pipes.stderr));
        match Wire::new(Arc::clone(&server), pipes.stdout, pipes.stdin).await {
            Ok(wire) => Ok(Self::watched(server, process, wire, drained)),
            Err(failure) => {
                let end = finish(&process, drained).await;
                tracing::info!(server = &*server, process = process.id(), end = %end.status, "server did not start");
                Err(failure.into_error(&server, &end))
            }
        }
    }

    fn watched(server: Arc<str>, process: Arc<Process>, wire: Wire, drained: JoinHandle<()>) -> Arc<Self> {
        let connection = Arc::new(Self {
            server,
            peer: wire.running.peer().clone(),
            list_changes: Arc::clone(&wire.list_changes),
            ended: wire.ended.clone(),
            stop: CancellationToken::new(),
            end: OnceLock::new(),
            finished: CancellationToken::new(),
        });
        // Ends with the process, which the owner ends through `stop` or by killing it.
        tokio::spawn(watch(Arc::clone(&connection), process, wire, drained));
        connection
    }

    /// Whether calls can be sent.
    pub(super) fn is_alive(&self) -> bool {
        !self.ended.is_cancelled()
    }

    /// How often the server has said that its tools changed.
    pub(super) fn list_changes(&self) -> u64 {
        self.list_changes.load(Ordering::Acquire)
    }

    /// Ends the server: closes its stdin, then asks, then kills. Returns when it is gone.
    pub(super) async fn shutdown(&self) {
        self.stop.cancel();
        self.finished.cancelled().await;
    }

    /// Calls a tool once. Dropping the future tells the server that nobody waits any more.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<ToolResult, ToolError> {
        let parameters = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        match self.peer.call_tool_once(parameters).await {
            Ok(response) => convert::tool_result(&self.server, response),
            Err(ServiceError::McpError(error)) => Err(convert::call_error(&self.server, tool, &error)),
            Err(error) => {
                Err(self.lost(error, "the call was running; whether it took effect is unknown").await)
            }
        }
    }

    /// Lists all tools, within bounds.
    pub(super) async fn list(&self) -> Result<Vec<ToolDefinition>, ToolError> {
        let pages = self.list_pages();
        timeout(LIST_TIMEOUT, pages).await.unwrap_or_else(|_elapsed| {
            Err(ToolError::new(
                ToolErrorCode::ToolTimeout,
                format!(
                    "server `{}` did not list its tools within {} s",
                    self.server,
                    LIST_TIMEOUT.as_secs()
                ),
            ))
        })
    }

    async fn list_pages(&self) -> Result<Vec<ToolDefinition>, ToolError> {
        let mut list = ToolList::new(&self.server);
        let mut cursors: Vec<String> = Vec::new();
        loop {
            let cursor = cursors.last().cloned();
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let page = match self.peer.list_tools(Some(page)).await {
                Ok(page) => page,
                // A server of prompts or resources only, which has said so.
                Err(ServiceError::McpError(error))
                    if error.code == ErrorCode::METHOD_NOT_FOUND && !self.has_tools() =>
                {
                    return Ok(Vec::new());
                }
                Err(ServiceError::McpError(error)) => return Err(convert::list_error(&self.server, &error)),
                Err(error) => return Err(self.lost(error, "it listed its tools").await),
            };
            for tool in page.tools {
                if list.len() >= MOST_TOOLS || list.is_full() {
                    tracing::warn!(
                        server = &*self.server,
                        kept = list.len(),
                        "the server has too many tools"
                    );
                    return Ok(list.finish());
                }
                list.push(tool);
            }
            let Some(next) = page.next_cursor else { return Ok(list.finish()) };
            if cursors.contains(&next) || cursors.len() + 1 >= MOST_PAGES {
                tracing::warn!(
                    server = &*self.server,
                    pages = cursors.len() + 1,
                    "the list of tools does not end"
                );
                return Ok(list.finish());
            }
            cursors.push(next);
        }
    }

    fn has_tools(&self) -> bool {
        self.peer.peer_info().is_some_and(|info| info.capabilities.tools.is_some())
    }

    /// Why a request has no answer. Waits a moment for the process's status.
    async fn lost(&self, error: ServiceError, meanwhile: &str) -> ToolError {
        let server = &self.server;
        match error {
            ServiceError::UnexpectedResponse => convert::unreadable(server, "it answers another question"),
            ServiceError::TransportSend(error) => {
                unavailable(format!("nothing can be sent to server `{server}`: {error}"))
            }
            _ => {
                let _elapsed = timeout(KILL_TIME, self.finished.cancelled()).await;
                let end = self.end.get().map_or("closed the connection", String::as_str);
                let (status, last_words) = end.split_once('\n').unwrap_or((end, ""));
                unavailable(with_last_words(
                    format!("server `{server}` {status} while {meanwhile}"),
                    last_words,
                ))
            }
        }
    }
}

/// Why there is no connection though there is a process.
pub(super) enum HandshakeFailure {
    Elapsed,
    Refused(Box<ClientInitializeError>),
}

impl HandshakeFailure {
    fn into_error(self, server: &str, end: &End) -> ToolError {
        let message = match self {
            Self::Elapsed => {
                format!(
                    "server `{server}` did not answer the handshake within {} s",
                    HANDSHAKE_TIMEOUT.as_secs()
                )
            }
            Self::Refused(error) => match *error {
                ClientInitializeError::JsonRpcError(error) => {
                    if let Some(error) = convert::own_error(server, &error) {
                        return error;
                    }
                    format!("server `{server}` refused the handshake: {}", convert::message(&error))
                }
                ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => {
                    format!("server `{server}` {} before it answered the handshake", end.status)
                }
                _ => return convert::unreadable(server, "it is not an answer to the handshake"),
            },
        };
        unavailable(with_last_words(message, &end.last_words))
    }
}

impl Wire {
    /// Shakes hands over a pair of pipes.
    pub(super) async fn new(
        server: Arc<str>,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<Self, HandshakeFailure> {
        let list_changes = Arc::new(AtomicU64::new(0));
        let ended = CancellationToken::new();
        let (transport, writing) =
            LineTransport::new(server, reader, writer, Arc::clone(&list_changes), ended.clone());
        // Ends when the transport is dropped or the pipe breaks; `watch` ends it for certain.
        let writing = tokio::spawn(writing);
        let served = timeout(HANDSHAKE_TIMEOUT, Client.serve(transport)).await;
        let running = match served {
            Ok(Ok(running)) => running,
            Ok(Err(error)) => {
                writing.abort();
                return Err(HandshakeFailure::Refused(Box::new(error)));
            }
            Err(_elapsed) => {
                writing.abort();
                return Err(HandshakeFailure::Elapsed);
            }
        };
        // It would serve stale lists, for up to a day, when a server fails.
        running.peer().set_response_cache_config(ClientCacheConfig::disabled()).await;
        Ok(Self { running, list_changes, ended, writing })
    }
}

/// Waits for the end of the server, whoever brings it about, and tidies up behind it.
async fn watch(connection: Arc<Connection>, process: Arc<Process>, wire: Wire, drained: JoinHandle<()>) {
    let Wire { running, ended, writing, .. } = wire;
    tokio::select! {
        () = process.ended() => {
            // A descendant may hold the pipe open for ever.
            let _elapsed = timeout(DRAIN_TIME, ended.cancelled()).await;
        }
        () = ended.cancelled() => {}
        () = connection.stop.cancelled() => {
            running.cancellation_token().cancel();
            if timeout(GRACE, process.ended()).await.is_err() {
                process.terminate();
                let _elapsed = timeout(GRACE, process.ended()).await;
            }
        }
    }
    drop(running);
    // Normally done by now; a server that does not read would keep it waiting.
    writing.abort();
    let end = finish(&process, drained).await;
    tracing::info!(server = &*connection.server, process = process.id(), end = %end.status, "server ended");
    let _first = connection.end.set(format!("{}\n{}", end.status, end.last_words));
    connection.finished.cancel();
}

/// How a process ended.
pub(super) struct End {
    status: String,
    last_words: String,
}

/// Makes sure that the process and its descendants are gone, and learns how it ended.
async fn finish(process: &Process, mut drained: JoinHandle<()>) -> End {
    let ended_itself = timeout(EXIT_TIME, process.ended()).await.is_ok();
    process.kill();
    let _elapsed = timeout(KILL_TIME, process.ended()).await;
    let status: Option<ExitStatus> = process.reap();
    let _finished: Result<Result<(), JoinError>, _> = timeout(DRAIN_TIME, &mut drained).await;
    drained.abort();
    let status = if ended_itself { connect::describe(status) } else { "closed the connection".to_owned() };
    End { status, last_words: process.last_words() }
}

fn not_started(name: &str, config: &StdioTransport, error: &std::io::Error) -> ToolError {
    let command = &config.command;
    let hint = match (error.kind(), &config.cwd) {
        (std::io::ErrorKind::NotFound, Some(cwd)) => {
            format!("; is it installed, and is `{}` a directory?", cwd.display())
        }
        (std::io::ErrorKind::NotFound, None) if command.contains('/') => {
            "; paths are seen from the directory in which this process was started".to_owned()
        }
        (std::io::ErrorKind::NotFound, None) => "; is it installed and in `PATH`?".to_owned(),
        (std::io::ErrorKind::PermissionDenied, _) => "; is it executable?".to_owned(),
        _ => String::new(),
    };
    unavailable(format!("server `{name}` cannot be started: `{command}`: {error}{hint}"))
}

/// The error for a server that was closed by its owner.
pub(super) fn closed(server: &str) -> ToolError {
    unavailable(format!("server `{server}` was closed"))
}

fn unavailable(message: String) -> ToolError {
    ToolError::new(ToolErrorCode::UpstreamUnavailable, message)
}

fn with_last_words(message: String, last_words: &str) -> String {
    if last_words.is_empty() { message } else { format!("{message}; the end of its stderr:\n{last_words}") }
}
