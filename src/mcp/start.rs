//! Starts connections, over the pipes of a child process and over HTTP, and watches for their end.

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::RoleClient;
use rmcp::service::RunningService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::activity::Elapsed;
use super::connect::{self, CLOSED, ConnectionEnd, Process};
use super::connection::{Connection, StartTimes};
use super::errors::closed;
use super::handshake::{HandshakeFailure, Revisions, Start, shake_hands};
use super::http::{self, Deadlines, HttpState};
use super::notifications::{NotificationHandler, Notifications};
use super::oauth::Authorization;
use super::settings::{HttpTransport, StdioTransport};
use super::stdio::LineTransport;
use super::tool_changes;
use crate::conventions;
use crate::tools::{ServerFailureKind, ToolError};

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

/// How long a killed process may take to end.
const KILL_TIME: Duration = Duration::from_secs(1);

/// Why there is no connection.
pub(crate) struct StartFailure {
    pub(crate) error: ToolError,
    /// The revisions with which another attempt may succeed. Some old servers end if anything is
    /// sent before their handshake; a new server that is slow to start may receive the handshake,
    /// which it refuses.
    pub(crate) try_instead: Option<Revisions>,
}

impl StartFailure {
    /// A failure that no other revision would avoid.
    pub(crate) fn certain(error: ToolError) -> Self {
        Self { error, try_instead: None }
    }
}

/// Starts the server and performs the handshake.
///
/// `adopt` gets the process as soon as it exists, so that the owner can kill it at any time; it
/// returns whether the server is still wanted.
pub(crate) async fn over_pipes(
    config: &StdioTransport,
    start: Start<'_>,
    adopt: impl FnOnce(&Arc<Process>) -> bool,
) -> Result<Arc<Connection>, StartFailure> {
    let server = Arc::clone(&start.server);
    let began = Instant::now();
    let spawned =
        timeout_at((start.time.since + start.time.plain).into(), connect::spawn(config, start.handle)).await;
    let spawned = spawned.unwrap_or_else(|_elapsed| {
        connect::abandon_spawning_thread();
        Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "the system does not start it"))
    });
    let (process, pipes) =
        spawned.map_err(|error| StartFailure::certain(not_started(&server, config, &error)))?;
    let process = Arc::new(process);
    let process_time = began.elapsed();
    tracing::info!(server = &*server, process = process.id(), "server started");
    if !adopt(&process) {
        return Err(StartFailure::certain(closed(&server)));
    }
    let drained = tokio::spawn(process.drain(pipes.stderr));
    let revisions = start.revisions;
    let elapsed = start.time.elapsed_for(&process);
    let piped = PipeConnection::new(start, pipes.stdout, pipes.stdin, elapsed).await;
    match piped {
        Ok(piped) => {
            let connection = Connection::new(
                server,
                piped.running.peer(),
                &piped.notifications,
                &piped.ended,
                &piped.ended,
                conventions::PIPE,
                StartTimes {
                    process: Some(process_time),
                    handshake: began.elapsed().saturating_sub(process_time),
                },
            );
            tool_changes::begin(&connection);
            // The task ends with the process, which the owner ends through `stop` or by killing
            // it.
            tokio::spawn(watch(Arc::clone(&connection), process, piped, drained));
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
pub(crate) async fn over_http(
    config: &HttpTransport,
    start: Start<'_>,
    authorization: Option<Arc<Authorization>>,
    last_kind: Arc<http::LastKind>,
    request_time: Duration,
) -> Result<Arc<Connection>, StartFailure> {
    let deadlines = Deadlines { connect: start.time.plain, request: request_time };
    let server = Arc::clone(&start.server);
    let (transport, state) = http::connect_transport(
        Arc::clone(&server),
        config,
        authorization,
        last_kind,
        start.notifications.clone(),
        deadlines,
    )
    .map_err(StartFailure::certain)?;
    let began = Instant::now();
    match shake_hands(&start, transport, start.time.elapsed()).await {
        Ok(running) => {
            let times = StartTimes { process: None, handshake: began.elapsed() };
            tracing::info!(server = &*server, "connected");
            let (notifications, ended) = (&start.notifications, &state.ended);
            let peer = running.peer();
            let (retired, tcp) = (&state.retired, conventions::TCP);
            let connection = Connection::new(server, peer, notifications, ended, retired, tcp, times);
            tool_changes::begin(&connection);
            // The task ends with the connection.
            tokio::spawn(watch_http(Arc::clone(&connection), running, state));
            Ok(connection)
        }
        Err(failure) => {
            // The transport's own error is more precise than the one that rmcp derives from it.
            let error = state.failure().cloned().unwrap_or_else(|| {
                let status = state.end_reason().unwrap_or(CLOSED).to_owned();
                failure.into_error(&server, &ConnectionEnd { status, stderr_tail: String::new() })
            });
            Err(StartFailure::certain(error))
        }
    }
}

/// A connection over a pair of pipes, without its process.
struct PipeConnection {
    running: RunningService<RoleClient, NotificationHandler>,
    notifications: Notifications,
    ended: CancellationToken,
    writing: JoinHandle<()>,
}

impl PipeConnection {
    /// Performs the handshake over a pair of pipes.
    async fn new(
        start: Start<'_>,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        elapsed: impl Future<Output = Elapsed>,
    ) -> Result<Self, HandshakeFailure> {
        let ended = CancellationToken::new();
        let time = start.time.latest().saturating_duration_since(Instant::now());
        // A server that has refused the old handshake is new and only slow, so the probe gets all
        // the time.
        let probe_time =
            if start.revisions == Revisions::Stateless { time } else { PROBE_TIME.min(start.time.plain / 2) };
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
        match shake_hands(&start, transport, elapsed).await {
            Ok(running) => Ok(Self { running, notifications: start.notifications, ended, writing }),
            Err(failure) => {
                writing.abort();
                Err(failure)
            }
        }
    }
}

/// Waits for the end of the server, whatever causes it, and cleans up.
async fn watch(
    connection: Arc<Connection>,
    process: Arc<Process>,
    piped: PipeConnection,
    drained: JoinHandle<()>,
) {
    let PipeConnection { running, ended, mut writing, .. } = piped;
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
    let _first = connection.end.set(end);
    connection.finished.cancel();
}

/// Waits for the end of an HTTP connection and cleans up.
async fn watch_http(
    connection: Arc<Connection>,
    running: RunningService<RoleClient, NotificationHandler>,
    state: Arc<HttpState>,
) {
    let is_stopped = tokio::select! {
        () = state.ended.cancelled() => false,
        () = connection.stop.cancelled() => true,
    };
    connection.notifications.connection_lost();
    if is_stopped {
        // Tells the server that the session is over.
        let _elapsed = timeout(GRACE, running.cancel()).await;
    } else {
        // The connection ends by itself, after the answers that have arrived: cancelling it could drop them.
        let _elapsed = timeout(GRACE, running.waiting()).await;
    }
    state.end("was closed");
    let status = state.end_reason().unwrap_or(CLOSED);
    tracing::info!(server = &*connection.server, end = status, "connection ended");
    let _first = connection.end.set(ConnectionEnd { status: status.to_owned(), stderr_tail: String::new() });
    connection.finished.cancel();
}

/// Ensures that the process and its descendants have ended, and returns how it ended.
async fn finish(process: &Process, mut drained: JoinHandle<()>) -> ConnectionEnd {
    let ended_itself = timeout(EXIT_TIME, process.ended()).await.is_ok();
    process.kill();
    let _elapsed = timeout(KILL_TIME, process.ended()).await;
    let status: Option<ExitStatus> = process.reap();
    let _finished: Result<Result<(), JoinError>, _> = timeout(DRAIN_TIME, &mut drained).await;
    drained.abort();
    let status = if ended_itself { connect::describe(status) } else { CLOSED.to_owned() };
    ConnectionEnd { status, stderr_tail: process.stderr_tail() }
}

fn not_started(name: &str, config: &StdioTransport, error: &std::io::Error) -> ToolError {
    let command = &config.command;
    let hint = match (error.kind(), &config.cwd) {
        (std::io::ErrorKind::NotFound, _) if is_command_line(command) => {
            "; it is the name of one program: its arguments belong into `args`".to_owned()
        }
        (std::io::ErrorKind::NotFound, Some(cwd)) if command.contains('/') && !command.starts_with('/') => {
            format!("; a relative path is seen from its `cwd`, `{}`", cwd.display())
        }
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
    let problem = format!("server `{name}` cannot be started: `{command}`: {error}{hint}");
    ToolError::of_server(ServerFailureKind::NotStarted, problem, "")
}

/// Whether what should be a program is one with arguments, and not a path with a space.
fn is_command_line(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or_default();
    words.next().is_some() && (!program.contains('/') || std::path::Path::new(program).is_file())
}
