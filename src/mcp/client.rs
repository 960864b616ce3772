//! One connection to one server: handshake, lists, calls, shutdown.

use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientRequest, CustomRequest, ErrorCode,
    ListToolsRequest, PaginatedRequestParams, ProtocolVersion, RequestId, SubscriptionFilter,
};
use rmcp::service::{
    ClientCacheConfig, ClientInitializeError, ClientLifecycleMode, PeerRequestOptions, RunningService,
    ServiceError, serve_client_with_lifecycle,
};
use rmcp::transport::Transport;
use rmcp::{Peer, RoleClient};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::connect::{self, Process};
use super::answers;
use super::definitions::{self, ListBuilder, MAX_TOOLS};
use super::errors;
use super::results;
use super::http::{self, Deadlines, HttpState};
use super::notifications::{Client, Notifications};
use super::oauth::Authorization;
use super::pages::{ListCut, Pages};
use super::settings::{HttpTransport, StdioTransport};
use super::stdio::{LineTransport, NO_ANSWER};
use crate::json::{self, Json};
use crate::tools::{ProgressListener, ToolError, ToolErrorCode, ToolList, ToolResult};

/// Maximum time for listing the tools, all pages together. All known servers list from memory.
pub(super) const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a server may take to answer the probe for the newest revision; at most half of the time
/// for connecting. It is short, because some old servers never answer the probe. A new server that
/// is slow to start is probed again when it refuses the handshake.
const PROBE_TIME: Duration = Duration::from_secs(2);

/// How long reading the remaining output of a dead server may take. The output is in the pipe
/// already.
const DRAIN_TIME: Duration = Duration::from_millis(250);

/// How long a server that has closed its stdout may take to exit, so that its exit status is known.
const EXIT_TIME: Duration = Duration::from_millis(250);

/// How long a server may take to end after its stdin is closed, and again after SIGTERM.
const GRACE: Duration = Duration::from_secs(1);

/// How long a killed process may take to end, and how long a failed call waits for the reason.
const KILL_TIME: Duration = Duration::from_secs(1);

/// The parameters of a new connection.
pub(super) struct Start<'a> {
    pub(super) server: Arc<str>,
    pub(super) handle: &'a Handle,
    pub(super) notifications: Notifications,
    /// Deadline of the handshake.
    pub(super) deadline: Instant,
    /// The time for connecting, for error messages.
    pub(super) connect_timeout: Duration,
    /// Which revisions to try.
    pub(super) revisions: Revisions,
}

/// Protocol revisions to try. Those before 2026-07-28 are the handshake revisions; later ones are
/// stateless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Revisions {
    /// The stateless revision, then the handshake revisions if the server does not support it.
    Both,
    /// Only the handshake revisions.
    Handshake,
    /// Only the stateless revision.
    Stateless,
}

/// Why there is no connection.
pub(super) struct StartFailure {
    pub(super) error: ToolError,
    /// The revisions with which another attempt may succeed. Some old servers end if anything is
    /// sent before their handshake; a new server that is slow to start may receive the handshake,
    /// which it refuses.
    pub(super) try_instead: Option<Revisions>,
}

/// Why a call has no result.
pub(super) struct CallFailure {
    pub(super) error: ToolError,
    /// Whether no part of it has left this process, so that it can safely be sent again.
    pub(super) is_unsent: bool,
}

/// A live connection, shared by all runs. It ends with the server's stdout and is not used again.
pub(super) struct Connection {
    server: Arc<str>,
    peer: Peer<RoleClient>,
    handle: Handle,
    notifications: Notifications,
    /// Whether the server has answered anything but the handshake.
    has_answered: AtomicBool,
    /// Whether its end has been counted as a failure of the server.
    is_counted: AtomicBool,
    /// Why its last incomplete list was cut.
    list_problem: Mutex<Option<String>>,
    /// Cancelled when no more answers will come.
    ended: CancellationToken,
    /// Cancelled when the owner wants the server to end.
    stop: CancellationToken,
    /// How it ended. Set when the cleanup is complete.
    end: OnceLock<String>,
    finished: CancellationToken,
}

/// A connection over a pair of pipes, without its process.
pub(super) struct Wire {
    running: RunningService<RoleClient, Client>,
    notifications: Notifications,
    ended: CancellationToken,
    writing: JoinHandle<()>,
}

impl Connection {
    /// Starts the server and performs the handshake.
    ///
    /// `adopt` gets the process as soon as it exists, so that the owner can kill it at any time; it
    /// returns whether the server is still wanted.
    pub(super) async fn over_pipes(
        config: &StdioTransport,
        start: Start<'_>,
        adopt: impl FnOnce(&Arc<Process>) -> bool,
    ) -> Result<Arc<Self>, StartFailure> {
        let server = Arc::clone(&start.server);
        let spawned = timeout_at(start.deadline.into(), connect::spawn(config, start.handle)).await;
        let spawned = spawned.unwrap_or_else(|_elapsed| {
            connect::give_up_spawning();
            Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "the system does not start it"))
        });
        let (process, pipes) =
            spawned.map_err(|error| StartFailure::certain(not_started(&server, config, &error)))?;
        let process = Arc::new(process);
        tracing::info!(server = &*server, process = process.id(), "server started");
        if !adopt(&process) {
            return Err(StartFailure::certain(closed(&server)));
        }
        let drained = tokio::spawn(process.drain(pipes.stderr));
        let revisions = start.revisions;
        match Wire::new(start, pipes.stdout, pipes.stdin).await {
            Ok(wire) => {
                let connection = Self::new(server, wire.running.peer(), &wire.notifications, &wire.ended);
                // The task ends with the process, which the owner ends through `stop` or by killing
                // it.
                tokio::spawn(watch(Arc::clone(&connection), process, wire, drained));
                Ok(connection)
            }
            Err(failure) => {
                let end = finish(&process, drained).await;
                tracing::info!(server = &*server, process = process.id(), end = %end.status, "server did not start");
                let try_instead = failure.try_instead().filter(|_| revisions == Revisions::Both);
                Err(StartFailure { error: failure.into_error(&server, &end), try_instead })
            }
        }
    }

    /// Connects to an HTTP server.
    pub(super) async fn over_http(
        config: &HttpTransport,
        start: Start<'_>,
        authorization: Option<Arc<Authorization>>,
        known: Arc<http::Known>,
        request_time: Duration,
    ) -> Result<Arc<Self>, StartFailure> {
        let deadlines = Deadlines { connect: start.connect_timeout, request: request_time };
        let server = Arc::clone(&start.server);
        let (transport, state) = http::connect_transport(
            Arc::clone(&server),
            config,
            authorization,
            known,
            start.notifications.clone(),
            deadlines,
        )
        .map_err(StartFailure::certain)?;
        match shake_hands(&start, transport).await {
            Ok(running) => {
                tracing::info!(server = &*server, "connected");
                let connection = Self::new(server, running.peer(), &start.notifications, &state.ended);
                // The task ends with the connection.
                tokio::spawn(watch_http(Arc::clone(&connection), running, state));
                Ok(connection)
            }
            Err(failure) => {
                // The transport's own error is more precise than the one that rmcp derives from it.
                let error = state.failure().cloned().unwrap_or_else(|| {
                    let status = state.end_reason().unwrap_or("closed the connection").to_owned();
                    failure.into_error(&server, &End { status, last_words: String::new() })
                });
                Err(StartFailure::certain(error))
            }
        }
    }

    fn new(
        server: Arc<str>,
        peer: &Peer<RoleClient>,
        notifications: &Notifications,
        ended: &CancellationToken,
    ) -> Arc<Self> {
        let connection = Arc::new(Self {
            server,
            peer: peer.clone(),
            handle: Handle::current(),
            notifications: notifications.clone(),
            has_answered: AtomicBool::new(false),
            is_counted: AtomicBool::new(false),
            list_problem: Mutex::default(),
            ended: ended.clone(),
            stop: CancellationToken::new(),
            end: OnceLock::new(),
            finished: CancellationToken::new(),
        });
        if connection.is_modern() {
            // The task ends with the connection.
            tokio::spawn(subscribe(Arc::clone(&connection)));
        }
        connection
    }

    /// The negotiated protocol revision.
    pub(super) fn protocol_version(&self) -> Option<String> {
        self.peer.peer_info().map(|info| info.protocol_version.to_string())
    }

    /// Whether the server uses the stateless revision, in which it announces changes only to
    /// subscribers.
    fn is_modern(&self) -> bool {
        self.peer.peer_info().is_some_and(|info| info.protocol_version >= ProtocolVersion::V_2026_07_28)
    }

    /// Whether it has answered anything since the handshake.
    pub(super) fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }

    /// Counts the connection's end as a failure of the server. Returns whether this is the first
    /// time.
    pub(super) fn count_end(&self) -> bool {
        !self.is_counted.swap(true, Ordering::Relaxed)
    }

    /// Completes when no more answers will come.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Whether calls can be sent.
    pub(super) fn is_alive(&self) -> bool {
        !self.ended.is_cancelled() && !self.stop.is_cancelled()
    }

    /// How often the server has announced that its tools changed.
    pub(super) fn list_changes(&self) -> u64 {
        self.notifications.tool_changes()
    }

    /// Makes the connection end, without waiting for it.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Ends the server: closes its stdin, then sends SIGTERM, then kills it. Returns when it has
    /// ended.
    pub(super) async fn shutdown(&self) {
        self.stop.cancel();
        self.finished.cancelled().await;
    }

    /// Calls a tool once. Dropping the future tells the server that the call is cancelled.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Json,
        on_progress: Option<ProgressListener>,
    ) -> Result<ToolResult, CallFailure> {
        let request = answers::call_request(tool, arguments);
        let response = self.exchange(request, on_progress).await;
        let result = match response {
            Ok(text) => results::tool_result(&self.server, &text),
            Err(ServiceError::McpError(error)) => Err(errors::call_error(&self.server, tool, &error)),
            Err(error) => {
                let is_unsent = matches!(error, ServiceError::TransportSend(_));
                let meanwhile = "the call was running; whether it took effect is unknown";
                return Err(CallFailure { error: self.lost(error, meanwhile).await, is_unsent });
            }
        };
        self.has_answered.store(true, Ordering::Relaxed);
        result.map_err(|error| CallFailure { error, is_unsent: false })
    }

    /// Sends any other request once and returns its result unchanged. Dropping the future tells the
    /// server that the request is cancelled.
    pub(super) async fn request(&self, method: &str, parameters: Value) -> Result<Json, CallFailure> {
        let text = self.request_text(method, parameters).await?;
        let unreadable = |error: serde_json::Error| errors::unreadable(&self.server, &error.to_string());
        Json::parse(&text).map_err(|error| CallFailure { error: unreadable(error), is_unsent: false })
    }

    async fn request_text(&self, method: &str, parameters: Value) -> Result<String, CallFailure> {
        let request = ClientRequest::CustomRequest(CustomRequest::new(method, Some(parameters)));
        let result = match self.exchange(request, None).await {
            Ok(text) => Ok(text),
            Err(ServiceError::McpError(error)) => Err(errors::call_error(&self.server, method, &error)),
            Err(error) => {
                let is_unsent = matches!(error, ServiceError::TransportSend(_));
                return Err(CallFailure { error: self.lost(error, "it was asked").await, is_unsent });
            }
        };
        self.has_answered.store(true, Ordering::Relaxed);
        result.map_err(|error| CallFailure { error, is_unsent: false })
    }

    /// Sends a request whose answer passes through rmcp as text, and returns the text.
    async fn exchange(
        &self,
        request: ClientRequest,
        on_progress: Option<ProgressListener>,
    ) -> Result<String, ServiceError> {
        let handle = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
        let _listening =
            on_progress.map(|listener| self.notifications.listen(handle.progress_token.clone(), listener));
        let mut guard = CancelOnDrop { connection: self, id: Some(handle.id.clone()) };
        let response = handle.await_response().await;
        guard.id = None;
        answers::result_text(response?).ok_or(ServiceError::UnexpectedResponse)
    }

    /// Returns everything that a list method lists as one array, within the bounds of a list of
    /// tools.
    pub(super) async fn list_all(&self, method: &str, key: &str) -> Result<Json, CallFailure> {
        let unreadable = |error: serde_json::Error| CallFailure {
            error: errors::unreadable(&self.server, &error.to_string()),
            is_unsent: false,
        };
        let mut all = String::from("[");
        let mut count = 0;
        let mut pages = Pages::new();
        let mut parameters = json!({});
        let cut = loop {
            let page = self.request_text(method, parameters).await?;
            let mut next = None;
            let mut items = Ok(Vec::new());
            json::each_field(&page, |field, value| {
                if field == key && value.get().starts_with('[') {
                    // One more than the maximum is read, to detect that there are more.
                    items = json::items(value.get(), MAX_TOOLS + 1 - count);
                } else if field == "nextCursor" {
                    next = serde_json::from_str::<String>(value.get()).ok();
                }
            })
            .map_err(unreadable)?;
            let mut cut = None;
            for item in items.map_err(unreadable)? {
                if count >= MAX_TOOLS {
                    cut = Some(ListCut::ManyEntries { most: MAX_TOOLS });
                    break;
                }
                if all.len() + item.get().len() > definitions::SERVER_BYTES {
                    cut = Some(ListCut::Large { most: definitions::SERVER_BYTES });
                    break;
                }
                if count > 0 {
                    all.push(',');
                }
                all.push_str(item.get());
                count += 1;
            }
            if cut.is_some() {
                break cut;
            }
            let Some(next) = next else { break None };
            match pages.follow(next) {
                Ok(cursor) => parameters = json!({ "cursor": cursor }),
                Err(cut) => break Some(cut),
            }
        };
        if let Some(cut) = cut {
            self.note_cut(method, &pages, cut);
        }
        all.push(']');
        Json::parse(&all).map_err(unreadable)
    }

    /// Records that a list is incomplete. The entries so far can be used.
    fn note_cut(&self, method: &str, pages: &Pages, cut: ListCut) {
        let (server, page) = (&*self.server, pages.number());
        let problem = format!(
            "server `{server}`: the list of `{method}` is cut at page {page}, and what is on later pages is missing: {cut}"
        );
        tracing::warn!(server, method, page, "{problem}");
        *self.list_problem.lock() = Some(problem);
    }

    /// Removes and returns the reason why a list was cut.
    pub(super) fn take_list_problem(&self) -> Option<String> {
        self.list_problem.lock().take()
    }

    /// Lists all tools, within bounds.
    pub(super) async fn list(&self) -> Result<ToolList, ToolError> {
        let pages = self.list_pages();
        let list = timeout(LIST_TIMEOUT, pages).await.unwrap_or_else(|_elapsed| {
            Err(ToolError::new(
                ToolErrorCode::ToolTimeout,
                format!(
                    "server `{}` did not list its tools within {} s",
                    self.server,
                    LIST_TIMEOUT.as_secs()
                ),
            ))
        })?;
        self.has_answered.store(true, Ordering::Relaxed);
        Ok(list)
    }

    async fn list_pages(&self) -> Result<ToolList, ToolError> {
        let mut list = ListBuilder::new(&self.server);
        let mut ttl = None;
        let mut pages = Pages::new();
        let mut cursor = None;
        let cut = loop {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let request = ListToolsRequest::with_param(page);
            let page = match self.exchange(ClientRequest::ListToolsRequest(request), None).await {
                Ok(page) => page,
                // The server has only prompts or resources, and has declared that.
                Err(ServiceError::McpError(error))
                    if error.code == ErrorCode::METHOD_NOT_FOUND && !self.has_tools() =>
                {
                    return Ok(ToolList::default());
                }
                Err(ServiceError::McpError(error)) => return Err(errors::list_error(&self.server, &error)),
                Err(error) => return Err(self.lost(error, "it listed its tools").await),
            };
            let page = definitions::read_tools(&page, MAX_TOOLS + 1)
                .map_err(|error| errors::unreadable(&self.server, &error.to_string()))?;
            // The shortest lifetime of all pages applies to the whole list.
            ttl = [ttl, page.ttl].into_iter().flatten().min();
            if let Some(cut) = push_all(&mut list, page.tools) {
                break cut;
            }
            let Some(next) = page.next_cursor else { return Ok(list.finish(ttl)) };
            match pages.follow(next) {
                Ok(next) => cursor = Some(next),
                Err(cut) => break cut,
            }
        };
        self.note_cut("tools/list", &pages, cut);
        Ok(list.finish(ttl))
    }

    fn has_tools(&self) -> bool {
        self.peer.peer_info().is_some_and(|info| info.capabilities.tools.is_some())
    }

    /// Explains why a request has no answer. Waits briefly for the process's exit status.
    async fn lost(&self, error: ServiceError, meanwhile: &str) -> ToolError {
        let server = &self.server;
        match error {
            ServiceError::UnexpectedResponse => errors::unreadable(server, "it answers another question"),
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

/// Adds the tools of a page. Returns why some of them do not fit, if so.
fn push_all(list: &mut ListBuilder<'_>, tools: Vec<&RawValue>) -> Option<ListCut> {
    for tool in tools {
        if list.len() >= MAX_TOOLS {
            return Some(ListCut::ManyEntries { most: MAX_TOOLS });
        }
        if list.is_full() {
            return Some(ListCut::Large { most: definitions::SERVER_BYTES });
        }
        list.push(tool);
    }
    None
}

/// Why the handshake failed although there is a process.
pub(super) enum HandshakeFailure {
    Elapsed(Duration),
    Refused(Box<ClientInitializeError>),
}

impl StartFailure {
    /// A failure that no other revision would avoid.
    pub(super) fn certain(error: ToolError) -> Self {
        Self { error, try_instead: None }
    }
}

impl HandshakeFailure {
    fn try_instead(&self) -> Option<Revisions> {
        let Self::Refused(error) = self else { return None };
        match &**error {
            ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => {
                Some(Revisions::Handshake)
            }
            ClientInitializeError::LegacyFallbackFailed { discover, .. } => {
                matches!(&**discover, ClientInitializeError::JsonRpcError(error) if error.message == NO_ANSWER)
                    .then_some(Revisions::Stateless)
            }
            _ => None,
        }
    }

    fn into_error(self, server: &str, end: &End) -> ToolError {
        let error = match self {
            Self::Refused(error) => match *error {
                ClientInitializeError::LegacyFallbackFailed { fallback, .. } => Self::Refused(fallback),
                error => Self::Refused(Box::new(error)),
            },
            elapsed @ Self::Elapsed(_) => elapsed,
        };
        let message = match error {
            Self::Elapsed(time) => {
                format!("server `{server}` did not answer the handshake within {} s", time.as_secs_f64())
            }
            Self::Refused(error) => match *error {
                ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
                    let versions: Vec<_> = server_supported.iter().map(ToString::to_string).collect();
                    format!(
                        "server `{server}` speaks no revision of the protocol that this client does: {}",
                        versions.join(", ")
                    )
                }
                ClientInitializeError::JsonRpcError(error) => {
                    if let Some(error) = errors::own_error(server, &error) {
                        return error;
                    }
                    format!("server `{server}` refused the handshake: {}", errors::message(&error))
                }
                ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => {
                    format!("server `{server}` {} before it answered the handshake", end.status)
                }
                _ => return errors::unreadable(server, "it is not an answer to the handshake"),
            },
        };
        unavailable(with_last_words(message, &end.last_words))
    }
}

impl Wire {
    /// Performs the handshake over a pair of pipes.
    pub(super) async fn new(
        start: Start<'_>,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<Self, HandshakeFailure> {
        let ended = CancellationToken::new();
        let time = start.deadline.saturating_duration_since(Instant::now());
        // A server that has refused the old handshake is new and only slow, so the probe gets all
        // the time.
        let probe_time =
            if start.revisions == Revisions::Stateless { time } else { PROBE_TIME.min(time / 2) };
        let (transport, writing) = LineTransport::new(
            Arc::clone(&start.server),
            reader,
            writer,
            start.notifications.clone(),
            probe_time,
            ended.clone(),
        );
        // The task ends when the transport is dropped or the pipe breaks; `watch` aborts it
        // otherwise.
        let writing = tokio::spawn(writing);
        match shake_hands(&start, transport).await {
            Ok(running) => Ok(Self { running, notifications: start.notifications, ended, writing }),
            Err(failure) => {
                writing.abort();
                Err(failure)
            }
        }
    }
}

/// Negotiates the newest revision that both sides support.
async fn shake_hands<T>(
    start: &Start<'_>,
    transport: T,
) -> Result<RunningService<RoleClient, Client>, HandshakeFailure>
where
    T: Transport<RoleClient> + 'static,
{
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let lifecycle = match start.revisions {
        Revisions::Handshake => ClientLifecycleMode::Initialize,
        Revisions::Stateless => ClientLifecycleMode::Discover { preferred_versions },
        Revisions::Both => {
            let legacy_version = Some(ProtocolVersion::LATEST_WITH_INITIALIZE);
            ClientLifecycleMode::Auto { preferred_versions, legacy_version }
        }
    };
    let client = Client { notifications: start.notifications.clone() };
    let served =
        timeout_at(start.deadline.into(), serve_client_with_lifecycle(client, transport, lifecycle)).await;
    let running = match served {
        Ok(Ok(running)) => running,
        Ok(Err(error)) => return Err(HandshakeFailure::Refused(Box::new(error))),
        Err(_elapsed) => return Err(HandshakeFailure::Elapsed(start.connect_timeout)),
    };
    // rmcp's response cache would return stale lists, up to a day old, when a server fails.
    running.peer().set_response_cache_config(ClientCacheConfig::disabled()).await;
    Ok(running)
}

/// Subscribes to the changes of a server of the stateless revision and records them. Ends with the
/// connection.
async fn subscribe(connection: Arc<Connection>) {
    let announces = connection.peer.peer_info().is_some_and(|info| {
        info.capabilities.tools.as_ref().is_some_and(|tools| tools.list_changed == Some(true))
    });
    if !announces {
        return;
    }
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    let listening = async {
        let mut subscription = connection.peer.listen(filter).await.ok()?;
        while let Ok(Some(_changed)) = subscription.next().await {
            connection.notifications.tools_changed();
        }
        Some(())
    };
    tokio::select! {
        _over = listening => {}
        () = connection.ended.cancelled() => {}
        () = connection.stop.cancelled() => {}
    }
}

/// Tells the server that a request is cancelled, unless it has been answered.
struct CancelOnDrop<'a> {
    connection: &'a Connection,
    id: Option<RequestId>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let peer = self.connection.peer.clone();
        let reason = Some("nobody waits any more".to_owned());
        let parameters = CancelledNotificationParam::new(Some(id), reason);
        // The task ends at once: the message is queued, or the connection is over.
        self.connection.handle.spawn(async move {
            let cancelled = CancelledNotification::new(parameters);
            let _connection_is_over = peer.send_notification(cancelled.into()).await;
        });
    }
}

/// Waits for the end of the server, whatever causes it, and cleans up.
async fn watch(connection: Arc<Connection>, process: Arc<Process>, wire: Wire, drained: JoinHandle<()>) {
    let Wire { running, ended, mut writing, .. } = wire;
    tokio::select! {
        // The server accepts no more input, but its remaining output is read.
        _over = &mut writing => {
            let _elapsed = timeout(DRAIN_TIME, ended.cancelled()).await;
        }
        () = process.ended() => {
            // A descendant may keep the pipe open forever.
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
    // No more calls are sent over this connection. The tools of the next one may be different.
    connection.stop.cancel();
    connection.notifications.connection_lost();
    drop(running);
    // Usually the task has ended by now; a server that does not read would keep it waiting.
    writing.abort();
    let end = finish(&process, drained).await;
    tracing::info!(server = &*connection.server, process = process.id(), end = %end.status, "server ended");
    let _first = connection.end.set(format!("{}\n{}", end.status, end.last_words));
    connection.finished.cancel();
}

/// Waits for the end of an HTTP connection and cleans up.
async fn watch_http(
    connection: Arc<Connection>,
    running: RunningService<RoleClient, Client>,
    state: Arc<HttpState>,
) {
    tokio::select! {
        () = state.ended.cancelled() => {}
        () = connection.stop.cancelled() => {}
    }
    connection.notifications.connection_lost();
    // Tells the server that the session is over.
    let _elapsed = timeout(GRACE, running.cancel()).await;
    state.end("was closed");
    let end = state.end_reason().unwrap_or("closed the connection");
    tracing::info!(server = &*connection.server, end, "connection ended");
    let _first = connection.end.set(end.to_owned());
    connection.finished.cancel();
}

/// How a process ended.
pub(super) struct End {
    status: String,
    last_words: String,
}

/// Ensures that the process and its descendants have ended, and returns how it ended.
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
