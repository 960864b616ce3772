//! One upstream server: its connection, which is made when it is needed and again after it was
//! lost, and the list of its tools. `calls.rs` has the steps of a call.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::{sleep_until, timeout, timeout_at};

use super::activity::ConnectTime;
use super::backoff::StartBackoff;
use super::breaker::Phase;
use super::connect::Process;
use super::connection::Connection;
use super::counted::CallKeys;
use super::errors::closed;
use super::handshake::{Revisions, Start};
use super::http;
use super::limiter::Limiter;
use super::lists::LIST_TIMEOUT;
use super::notifications::Notifications;
use super::oauth::Authorization;
use super::questions::Questions;
use super::settings::{McpServer, McpTransport};
use super::start::{self, StartFailure};
use super::stats::{CallTimes, ServerState, ServerStats};
use crate::tools::{ToolError, ToolErrorCode, ToolList};

/// How long a graceful shutdown may take: two grace periods of a second each, and the killing.
pub(crate) const SHUTDOWN_TIME: Duration = Duration::from_secs(4);

/// A configured server.
pub(crate) struct UpstreamServer {
    pub(crate) name: Arc<str>,
    pub(crate) settings: McpServer,
    /// Identifies the server: see [`McpServer::identity`].
    pub(crate) identity: String,
    /// Grows whenever the tools may have changed: for a new connection, and when the server
    /// announces a change.
    pub(crate) generation: Arc<AtomicU64>,
    handle: Handle,
    /// The authorization for an HTTP server.
    authorization: Option<Arc<Authorization>>,
    /// Which of the two HTTP transports it used last.
    http_kind: Arc<http::LastKind>,
    pub(crate) limiter: Limiter,
    pub(crate) times: CallTimes,
    pub(crate) call_keys: CallKeys,
    state: Mutex<ConnectionState>,
}

struct ConnectionState {
    closed: bool,
    /// The current connection, or the attempt to make it, shared by all callers that need it.
    start: Option<Driven<Arc<Connection>>>,
    backoff: StartBackoff,
    /// The current process. It is stored here so that it can be killed before its handshake is
    /// complete.
    process: Option<Arc<Process>>,
    /// Which protocol revisions to try.
    revisions: Revisions,
    listing: Option<Listing>,
    /// The last list. It is kept across restarts, so that an equal new list is replaced by it.
    tools: Option<Arc<ToolList>>,
    /// How long the last list took.
    list_time: Option<Duration>,
    last_error: Option<String>,
    last_call: Instant,
}

/// A list of tools, or the request for it, and the connection and count of changes that it is valid
/// for.
struct Listing {
    connection: Arc<Connection>,
    list_changes: u64,
    result: Driven<Arc<ToolList>>,
}

/// The result of work that always runs to its end, even if every caller is cancelled.
pub(crate) type Driven<T> = Shared<BoxFuture<'static, Result<T, ToolError>>>;

fn drive<T: Clone + Send + Sync + 'static>(
    handle: &Handle,
    work: impl Future<Output = Result<T, ToolError>> + Send + 'static,
) -> Driven<T> {
    let driven = work.boxed().shared();
    // The task ends by itself: all work here has deadlines.
    handle.spawn(driven.clone().map(drop));
    driven
}

impl UpstreamServer {
    pub(crate) fn new(settings: McpServer, state_directory: Option<&Path>, handle: &Handle) -> Arc<Self> {
        let name: Arc<str> = Arc::from(settings.name.as_str());
        Arc::new(Self {
            limiter: Limiter::new(&name, &settings),
            authorization: state_directory
                .and_then(|directory| Authorization::new(&settings, directory))
                .map(Arc::new),
            http_kind: Arc::default(),
            identity: settings.identity(),
            generation: Arc::default(),
            handle: handle.clone(),
            times: CallTimes::default(),
            call_keys: CallKeys::new(&name),
            state: Mutex::new(ConnectionState::new()),
            name,
            settings,
        })
    }

    /// The tools, if they are known and current. Does not wait.
    pub(crate) fn known_tools(&self) -> Option<Arc<ToolList>> {
        let state = self.state.lock();
        let Some(Ok(connection)) = state.start.as_ref()?.peek() else { return None };
        let listing = state.listing.as_ref()?;
        let is_current = connection.is_alive() && listing.is_for(connection);
        listing.result.peek().filter(|_| is_current)?.as_ref().ok().cloned()
    }

    /// Connects if necessary and lists the tools. If the connection is lost meanwhile, it is made
    /// once more: listing has no effects.
    pub(crate) async fn tools(self: Arc<Self>, deadline: Instant) -> Result<Arc<ToolList>, ToolError> {
        let list = async {
            let mut connection = self.connection_for_list()?.await?;
            let result = self.listing(&connection).await;
            match result {
                Err(error) if error.code == ToolErrorCode::UpstreamUnavailable && !connection.is_alive() => {
                    connection = self.connection_for_list()?.await?;
                    self.listing(&connection).await
                }
                result => result,
            }
        };
        timeout_at(deadline.into(), list).await.unwrap_or_else(|_elapsed| {
            let message = format!("server `{}` did not list its tools in time", self.name);
            Err(ToolError::new(ToolErrorCode::ToolTimeout, message))
        })
    }

    /// Whether its tools may change while it runs: true unless there is a connection and the server has declared that
    /// it announces no changes.
    pub(crate) fn may_change_tools(&self) -> bool {
        let state = self.state.lock();
        let connection = state.start.as_ref().and_then(Shared::peek).and_then(|start| start.as_ref().ok());
        connection.is_none_or(|connection| connection.announces_changes())
    }

    /// Connects and lists the tools ahead of the first call.
    pub(crate) async fn warm(self: Arc<Self>) -> Result<(), ToolError> {
        let deadline = self.connect_time().latest() + LIST_TIMEOUT;
        self.tools(deadline).await.map(drop)
    }

    /// As [`connection`](Self::connection), for listing tools, which is not a call: a server whose circuit is open is
    /// not started for that either.
    fn connection_for_list(self: &Arc<Self>) -> Result<Driven<Arc<Connection>>, ToolError> {
        if let Some(start) = self.state.lock().usable_start() {
            return Ok(start);
        }
        // The permit is dropped when the start has begun: the server may start and still fail its calls. A failed start
        // is counted separately.
        let _permit = self.limiter.enter_breaker().map_err(|error| self.with_last_error(error))?;
        self.connection()
    }

    /// Returns the live connection, or the attempt to make one.
    pub(crate) fn connection(self: &Arc<Self>) -> Result<Driven<Arc<Connection>>, ToolError> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(closed(&self.name));
        }
        let now = Instant::now();
        if let Some(start) = state.usable_start() {
            return Ok(start);
        }
        // A server that had answered before it died is started again without a pause.
        let last = state.start.as_ref().and_then(Shared::peek);
        if last.is_some_and(|last| last.as_ref().is_ok_and(|connection| connection.has_answered())) {
            state.backoff.reset();
        }
        let not_before = state.backoff.begin(now).map_err(|pause| {
            let reason = state.last_error.as_deref().unwrap_or("it did not start");
            let message = format!("server `{}` is backing off: {reason}", self.name);
            let error = ToolError::new(ToolErrorCode::UpstreamUnavailable, message);
            ToolError { retry_after: Some(pause), ..error }
        })?;
        let start = drive(&self.handle, Arc::clone(self).start(not_before));
        state.start = Some(start.clone());
        Ok(start)
    }

    async fn start(self: Arc<Self>, not_before: Instant) -> Result<Arc<Connection>, ToolError> {
        sleep_until(not_before.into()).await;
        let time = self.connect_time();
        let revisions = self.state.lock().revisions;
        let mut result = self.connect(time, revisions).await;
        if let Err(StartFailure { try_instead: Some(revisions), .. }) = result
            && Instant::now() < time.latest()
        {
            result = self.connect(time.again(), revisions).await;
            if result.is_ok() {
                self.state.lock().revisions = revisions;
            }
        }
        match result {
            Ok(connection) => {
                self.generation.fetch_add(1, Ordering::Release);
                let mut state = self.state.lock();
                state.last_call = Instant::now();
                if state.closed {
                    drop(state);
                    connection.stop();
                    return Err(closed(&self.name));
                }
                drop(state);
                if let Some(idle) = self.settings.idle_timeout {
                    // The task ends with the connection.
                    self.handle.spawn(Arc::clone(&self).stop_when_idle(Arc::clone(&connection), idle));
                }
                Ok(connection)
            }
            Err(StartFailure { error, .. }) => {
                self.note_failure(&error);
                Err(self.count_failed_start(error))
            }
        }
    }

    /// Counts a failed start with the circuit breaker, and adds to its error the time until a retry
    /// makes sense.
    fn count_failed_start(&self, mut error: ToolError) -> ToolError {
        let now = Instant::now();
        let breaker = &self.limiter.breaker;
        let pause = {
            let state = self.state.lock();
            if state.closed {
                return error;
            }
            state.backoff.pause(now)
        };
        breaker.record_failed_start(now);
        let open = match breaker.phase() {
            Phase::Open { until } => until.saturating_duration_since(now),
            Phase::Closed { .. } | Phase::HalfOpen => Duration::ZERO,
        };
        error.retry_after = error.retry_after.max(Some(pause.max(open)));
        error
    }

    /// The time for connecting, from now on.
    fn connect_time(&self) -> ConnectTime {
        let McpServer { connect_timeout: plain, busy_connect_timeout: busy, .. } = self.settings;
        let is_process = matches!(self.settings.transport, McpTransport::Stdio(_));
        ConnectTime { since: Instant::now(), plain, busy: if is_process { busy } else { plain } }
    }

    async fn connect(
        self: &Arc<Self>,
        time: ConnectTime,
        revisions: Revisions,
    ) -> Result<Arc<Connection>, StartFailure> {
        let start = Start {
            server: Arc::clone(&self.name),
            handle: &self.handle,
            notifications: Notifications::new(Arc::clone(&self.generation), Questions::new(&self.settings)),
            time,
            revisions,
        };
        match &self.settings.transport {
            McpTransport::Stdio(stdio) => {
                let adopt = |process: &Arc<Process>| {
                    let mut state = self.state.lock();
                    if !state.closed {
                        state.process = Some(Arc::clone(process));
                    }
                    !state.closed
                };
                start::over_pipes(stdio, start, adopt).await
            }
            McpTransport::Http(http) => {
                let (authorization, known) = (self.authorization.clone(), Arc::clone(&self.http_kind));
                let request_time = self.settings.call_timeout.max(LIST_TIMEOUT);
                start::over_http(http, start, authorization, known, request_time).await
            }
        }
    }

    /// Ends the connection when it has not been used for `idle`.
    async fn stop_when_idle(self: Arc<Self>, connection: Arc<Connection>, idle: Duration) {
        loop {
            let since = self.state.lock().last_call;
            tokio::select! {
                () = sleep_until((since + idle).into()) => {}
                () = connection.ended() => return,
            }
            if connection.is_followed() || !self.take_idle(&connection, idle) {
                // The connection is in use: it is checked again when it may have been idle for long enough.
                tokio::time::sleep(idle.min(Duration::from_secs(1))).await;
                continue;
            }
            tracing::info!(
                server = &*self.name,
                "server stopped after {} s without a call",
                idle.as_secs_f64()
            );
            let _elapsed = timeout(SHUTDOWN_TIME, connection.shutdown()).await;
            return;
        }
    }

    /// Removes the connection from the state if it is idle. Calls pass the limiter before they
    /// request a connection, so no call can be about to use this one.
    fn take_idle(&self, connection: &Arc<Connection>, idle: Duration) -> bool {
        let mut state = self.state.lock();
        let is_listing = state.listing.as_ref().is_some_and(|listing| listing.result.peek().is_none());
        if self.limiter.active() > 0 || is_listing || state.last_call.elapsed() < idle {
            return false;
        }
        let is_current = matches!(state.start.as_ref().and_then(Shared::peek), Some(Ok(current)) if Arc::ptr_eq(current, connection));
        if is_current {
            state.start = None;
            state.backoff.reset();
        }
        is_current
    }

    /// Returns the list over this connection. It is requested if there is none, or if the server
    /// has announced a change.
    pub(crate) fn listing(self: &Arc<Self>, connection: &Arc<Connection>) -> Driven<Arc<ToolList>> {
        let mut state = self.state.lock();
        if let Some(listing) = &state.listing
            && listing.is_for(connection)
            && !matches!(listing.result.peek(), Some(Err(_)))
        {
            return listing.result.clone();
        }
        let list_changes = connection.list_changes();
        let (server, listed) = (Arc::clone(self), Arc::clone(connection));
        let result = drive(&self.handle, async move {
            let began = Instant::now();
            let list = listed.list().await?;
            server.state.lock().list_time = Some(began.elapsed());
            if let Some(problem) = &list.problem {
                let problem = format!("server `{}`: {problem}", server.name);
                server.state.lock().last_error = Some(problem);
            }
            // Reported last: a list that was cut lacks more than the entries that were left out above.
            server.note_list_problem(&listed);
            Ok(server.keep(list))
        });
        state.listing =
            Some(Listing { connection: Arc::clone(connection), list_changes, result: result.clone() });
        result
    }

    /// Reports an incomplete list in `health`.
    pub(crate) fn note_list_problem(&self, connection: &Connection) {
        if let Some(problem) = connection.take_list_problem() {
            self.state.lock().last_error = Some(problem);
        }
    }

    /// Keeps a new list, or returns the last one if they are equal.
    fn keep(&self, list: ToolList) -> Arc<ToolList> {
        let mut state = self.state.lock();
        match &state.tools {
            Some(tools) if **tools == list => Arc::clone(tools),
            _ => Arc::clone(state.tools.insert(Arc::new(list))),
        }
    }

    /// Records that a call begins now, so that the connection is not idle.
    pub(crate) fn note_call(&self, now: Instant) {
        self.state.lock().last_call = now;
    }

    /// Reports a failure in `health`.
    pub(crate) fn note_failure(&self, error: &ToolError) {
        self.state.lock().last_error = Some(error.message.clone());
    }

    /// Adds the last error to the error of an open circuit.
    pub(crate) fn with_last_error(&self, mut error: ToolError) -> ToolError {
        if error.code == ToolErrorCode::CircuitOpen
            && let Some(last) = &self.state.lock().last_error
        {
            error.message = format!("{}; the last failure: {last}", error.message);
        }
        error
    }

    /// Lets the next start begin at once.
    #[cfg(test)]
    pub(crate) fn forget_pauses(&self) {
        self.state.lock().backoff.reset();
    }

    /// The current figures of the server.
    pub(crate) fn stats(&self) -> ServerStats {
        let state = self.state.lock();
        let connection = state.start.as_ref().map(Shared::peek);
        let (server_state, live) = match connection {
            None => (ServerState::Stopped, None),
            Some(None) => (ServerState::Connecting, None),
            Some(Some(Ok(connection))) if connection.is_alive() => (ServerState::Connected, Some(connection)),
            Some(Some(_)) => (ServerState::Failed, None),
        };
        let times = live.map(|connection| connection.start_times);
        let mut stats = ServerStats {
            name: self.name.to_string(),
            state: server_state,
            protocol_version: live
                .and_then(|connection| connection.protocol_version())
                .map(|version| version.to_string()),
            start_time: times.and_then(|times| times.process),
            handshake_time: times.map(|times| times.handshake),
            list_time: state.list_time,
            tools: state.tools.as_ref().map(|list| list.tools.len()),
            last_error: state.last_error.clone(),
            ..ServerStats::default()
        };
        drop(state);
        self.limiter.fill(&mut stats);
        self.times.fill(&mut stats);
        stats
    }

    /// Closes the server to new calls and returns its former state, so that it is ended outside the
    /// lock.
    fn close(&self) -> ConnectionState {
        std::mem::replace(&mut *self.state.lock(), ConnectionState { closed: true, ..ConnectionState::new() })
    }

    /// Kills the process at once.
    pub(crate) fn kill(&self) -> Option<Arc<Process>> {
        let ConnectionState { start, process, .. } = self.close();
        if let Some(Ok(connection)) = start.as_ref().and_then(Shared::peek) {
            connection.stop();
        }
        let process = process?;
        process.kill();
        Some(process)
    }

    /// Ends the server gracefully: closes its stdin, then sends SIGTERM, then kills it. Takes at most
    /// [`SHUTDOWN_TIME`], or longer if tokens are being renewed.
    pub(crate) async fn shutdown(self: Arc<Self>) {
        let ConnectionState { start, process, .. } = self.close();
        if let Some(Ok(connection)) = start.as_ref().and_then(Shared::peek) {
            let _elapsed = timeout(SHUTDOWN_TIME, connection.shutdown()).await;
        }
        // A process that is still starting is killed at once: it has nothing to save.
        if let Some(process) = process {
            process.kill();
        }
        if let Some(authorization) = &self.authorization {
            authorization.finish().await;
        }
    }
}

impl ConnectionState {
    /// The live connection, or the attempt to make one that has not ended.
    fn usable_start(&self) -> Option<Driven<Arc<Connection>>> {
        let start = self.start.as_ref()?;
        let is_usable = match start.peek() {
            None => true,
            Some(result) => result.as_ref().is_ok_and(|connection| connection.is_alive()),
        };
        is_usable.then(|| start.clone())
    }

    fn new() -> Self {
        Self {
            closed: false,
            start: None,
            backoff: StartBackoff::new(),
            process: None,
            revisions: Revisions::Both,
            listing: None,
            tools: None,
            list_time: None,
            last_error: None,
            last_call: Instant::now(),
        }
    }
}

impl Listing {
    fn is_for(&self, connection: &Arc<Connection>) -> bool {
        Arc::ptr_eq(&self.connection, connection) && self.list_changes == connection.list_changes()
    }
}
