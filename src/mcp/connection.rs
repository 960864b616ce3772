//! One connection to one server, and the requests over it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientRequest, JsonObject, ProtocolVersion, RequestId,
    RequestMetaObject, TASKS_EXTENSION_ID,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use rmcp::{Peer, RoleClient};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::answers::{self, RequestTrace};
use super::connect::{CLOSED, ConnectionEnd};
use super::counted::{CountedOperation, OperationKeys};
use super::errors::{self, unavailable};
use super::input::{self, Rounds};
use super::notifications::{Listening, Notifications};
use super::questions::Caller;
use super::results::{self, CallAnswer};
use super::skills::SkillFiles;
use super::task_making::TaskMaking;
use super::task_state::{TaskState, TaskTools};
use crate::conventions;
use crate::json::Json;
use crate::tools::{ProgressListener, SentRequest, ServerFailureKind, ToolError, ToolErrorCode, ToolResult};

/// How long a failed request waits for the reason why the connection ended.
const REASON_TIME: Duration = Duration::from_secs(1);

/// Maximum number of tasks that are being cancelled at once, as many as a run has calls in flight. A server that does
/// not answer is told of no more; its tasks end by themselves.
const MAX_TASK_CANCELLATIONS: usize = 64;

/// How long establishing a connection took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StartTimes {
    /// Starting the process; `None` over HTTP.
    pub(crate) process: Option<Duration>,
    /// The handshake, until its last message.
    pub(crate) handshake: Duration,
}

/// Why a call has no result.
pub(crate) struct CallFailure {
    pub(crate) error: ToolError,
    /// Whether no part of it has left this process, so that it can safely be sent again.
    pub(crate) is_unsent: bool,
    /// Whether the server only limits how often it is asked, or a subscription has failed. This is no failure of it.
    pub(crate) is_limited: bool,
}

/// What a server has answered to a call.
pub(crate) enum Called {
    Result(ToolResult),
    /// It has made a task of the call.
    Task(TaskState),
}

impl CallFailure {
    /// The failure of a call of which the server has got something.
    pub(crate) fn after_sending(error: ToolError) -> Self {
        Self { error, is_unsent: false, is_limited: false }
    }

    /// The failure of a call that its server has begun, from the error of a later request for it.
    pub(crate) fn of_begun(error: ToolError) -> Self {
        let is_limited = error.code == ToolErrorCode::RateLimited;
        Self { error: errors::begun(error), is_unsent: false, is_limited }
    }
}

/// A live connection, shared by all runs. It ends with the server's stdout and is not used again.
pub(crate) struct Connection {
    pub(crate) server: Arc<str>,
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) handle: Handle,
    pub(crate) notifications: Notifications,
    /// Whether the server has answered anything but the handshake.
    pub(crate) has_answered: AtomicBool,
    /// Whether its end has been counted as a failure of the server.
    is_counted: AtomicBool,
    /// Why the last list was cut.
    pub(crate) list_problem: Mutex<Option<String>>,
    pub(crate) skill_files: SkillFiles,
    pub(crate) task_tools: TaskTools,
    /// Permits for requests that cancel tasks.
    pub(crate) task_cancellations: Arc<Semaphore>,
    /// Cancelled when no more answers will come.
    pub(crate) ended: CancellationToken,
    /// Cancelled when nothing more may be sent, at the latest with `ended`.
    retired: CancellationToken,
    /// Cancelled when the owner wants the server to end.
    pub(crate) stop: CancellationToken,
    /// How it ended. Set when the cleanup is complete.
    pub(crate) end: OnceLock<ConnectionEnd>,
    pub(crate) finished: CancellationToken,
    /// `pipe` or `tcp`.
    transport: &'static str,
    operation_keys: OperationKeys,
    protocol_version: OnceLock<Option<Arc<str>>>,
    pub(crate) start_times: StartTimes,
    began: Instant,
}

impl Connection {
    pub(crate) fn new(
        server: Arc<str>,
        peer: &Peer<RoleClient>,
        notifications: &Notifications,
        ended: &CancellationToken,
        retired: &CancellationToken,
        transport: &'static str,
        start_times: StartTimes,
    ) -> Arc<Self> {
        let makes_tasks = peer.peer_info().is_some_and(|info| {
            let extensions = info.capabilities.extensions.as_ref();
            info.protocol_version < ProtocolVersion::V_2026_07_28
                && extensions.is_some_and(|extensions| extensions.contains_key(answers::TASKS_OF_CALLS))
        });
        Arc::new(Self {
            server,
            peer: peer.clone(),
            handle: Handle::current(),
            notifications: notifications.clone(),
            has_answered: AtomicBool::new(false),
            is_counted: AtomicBool::new(false),
            list_problem: Mutex::default(),
            skill_files: SkillFiles::default(),
            task_tools: TaskTools::new(makes_tasks),
            task_cancellations: Arc::new(Semaphore::new(MAX_TASK_CANCELLATIONS)),
            ended: ended.clone(),
            retired: retired.clone(),
            stop: CancellationToken::new(),
            end: OnceLock::new(),
            finished: CancellationToken::new(),
            transport,
            operation_keys: OperationKeys::new(transport),
            protocol_version: OnceLock::new(),
            start_times,
            began: Instant::now(),
        })
    }

    /// The negotiated protocol revision. It does not change: a connection is made after the handshake.
    pub(crate) fn protocol_version(&self) -> Option<Arc<str>> {
        let version = || Some(self.peer.peer_info()?.protocol_version.as_str().into());
        self.protocol_version.get_or_init(version).clone()
    }

    /// Whether the server uses the stateless revision, in which it announces changes only to
    /// subscribers.
    pub(crate) fn is_stateless(&self) -> bool {
        self.peer.peer_info().is_some_and(|info| info.protocol_version >= ProtocolVersion::V_2026_07_28)
    }

    /// Whether the server says that it announces changes of its tools.
    pub(crate) fn announces_changes(&self) -> bool {
        self.peer.peer_info().is_some_and(|info| {
            info.capabilities.tools.as_ref().is_some_and(|tools| tools.list_changed == Some(true))
        })
    }

    /// Whether it has answered anything since the handshake.
    pub(crate) fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }

    /// Counts the connection's end as a failure of the server. Returns whether this is the first
    /// time.
    pub(crate) fn count_end(&self) -> bool {
        !self.is_counted.swap(true, Ordering::Relaxed)
    }

    /// Completes when no more answers will come.
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Whether calls can be sent.
    pub(crate) fn is_alive(&self) -> bool {
        ![&self.ended, &self.retired, &self.stop].iter().any(|token| token.is_cancelled())
    }

    /// Number of times that the server has announced a change of its tools.
    pub(crate) fn list_changes(&self) -> u64 {
        self.notifications.tool_changes()
    }

    /// Cancelled when nothing more may be sent.
    pub(crate) fn retired(&self) -> &CancellationToken {
        &self.retired
    }

    /// Makes the connection end, without waiting for it.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Ends the server: closes its stdin, then sends SIGTERM, then kills it. Returns when it has
    /// ended.
    pub(crate) async fn shutdown(&self) {
        self.stop.cancel();
        self.finished.cancelled().await;
    }

    /// Calls a tool once. Dropping the future tells the server that the call is cancelled.
    ///
    /// A server of the stateless revision may ask for input instead of answering. The call is then sent again with that
    /// input, as the revision specifies, within bounds.
    pub(crate) async fn call(
        self: &Arc<Self>,
        tool: &str,
        arguments: Json,
        caller: &Arc<Caller>,
        on_progress: Option<ProgressListener>,
    ) -> Result<ToolResult, CallFailure> {
        match self.call_declaring(tool, arguments, caller, on_progress, None).await? {
            Called::Result(result) => Ok(result),
            Called::Task(_) => {
                let error = errors::unreadable(&self.server, "it makes a task, for which it was not asked");
                Err(CallFailure::after_sending(error))
            }
        }
    }

    /// As [`call`](Self::call). With `tasks`, the server is told that it may make a task of the call in the stateless
    /// revision; it receives what ends the listening to the task's progress. A task that is made when nobody waits for
    /// the call any more is cancelled.
    pub(crate) async fn call_declaring(
        self: &Arc<Self>,
        tool: &str,
        arguments: Json,
        caller: &Arc<Caller>,
        on_progress: Option<ProgressListener>,
        mut tasks: Option<&mut Option<Listening>>,
    ) -> Result<Called, CallFailure> {
        let mut rounds = Rounds::default();
        let mut more = None;
        loop {
            let mut request = answers::call_request(tool, arguments.clone(), Arc::clone(caller), more.take());
            if tasks.is_some() {
                answers::declare_tasks(&mut request);
            }
            let (trace, on_progress) = (&caller.trace, on_progress.clone());
            // Until the input is given that the answer may ask for.
            let mut own = None;
            let answer = match tasks.as_deref_mut() {
                Some(listening) => {
                    let made = TaskMaking::begin(self, request, caller, on_progress).made().await;
                    *listening = made.listening;
                    made.answer
                }
                None => self.exchange_listening(request, Some(caller), trace, on_progress, &mut own).await,
            };
            let text = match answer {
                Ok(text) => text,
                // After the first round the server has begun to work.
                Err(error) => return Err(self.call_failure(tool, caller, error, rounds.is_first()).await),
            };
            self.has_answered.store(true, Ordering::Relaxed);
            if tasks.is_some() {
                let task = TaskState::created_statelessly(&self.server, &text);
                if let Some(task) = task.map_err(CallFailure::after_sending)? {
                    return Ok(Called::Task(task));
                }
            }
            let answer = results::call_answer(&self.server, &text, self.is_stateless());
            match answer.map_err(CallFailure::after_sending)? {
                CallAnswer::Complete(result) => return Ok(Called::Result(result)),
                CallAnswer::InputRequired(required) => {
                    let given =
                        rounds.give(self.notifications.questions(), &self.server, caller, required).await;
                    more = Some(given.map_err(CallFailure::after_sending)?);
                }
            }
        }
    }

    /// Why a request for a call has no result. `is_first` is whether the server has got no earlier one for this call.
    pub(crate) async fn call_failure(
        &self,
        tool: &str,
        caller: &Arc<Caller>,
        error: ServiceError,
        is_first: bool,
    ) -> CallFailure {
        if let ServiceError::McpError(error) = error {
            self.has_answered.store(true, Ordering::Relaxed);
            let questions = self.notifications.questions();
            let error = input::call_error(questions, &self.server, tool, caller, &error).await;
            return if is_first { CallFailure::after_sending(error) } else { CallFailure::of_begun(error) };
        }
        self.unanswered(error, is_first, "the call was running; whether it took effect is unknown").await
    }

    /// The failure of a request that is lost, with what the server was doing. `is_first` is as in
    /// [`call_failure`](Self::call_failure).
    pub(crate) async fn unanswered(
        &self,
        error: ServiceError,
        is_first: bool,
        meanwhile: &str,
    ) -> CallFailure {
        let is_unsent = matches!(error, ServiceError::TransportSend(_)) && is_first;
        CallFailure { error: self.lost(error, meanwhile).await, is_unsent, is_limited: false }
    }

    /// Sends a request whose answer passes through rmcp as text, and returns the text.
    pub(crate) async fn exchange(
        &self,
        request: ClientRequest,
        caller: Option<&Arc<Caller>>,
        trace: &RequestTrace,
        on_progress: Option<ProgressListener>,
    ) -> Result<String, ServiceError> {
        self.exchange_listening(request, caller, trace, on_progress, &mut None).await
    }

    /// As [`exchange`](Self::exchange). `listening` receives what ends the listening to the request's progress, which
    /// may go on after the answer.
    pub(crate) async fn exchange_listening(
        &self,
        mut request: ClientRequest,
        caller: Option<&Arc<Caller>>,
        trace: &RequestTrace,
        on_progress: Option<ProgressListener>,
        listening: &mut Option<Listening>,
    ) -> Result<String, ServiceError> {
        let mut options = PeerRequestOptions::no_options();
        let can_ask = caller.is_some_and(|caller| caller.can_ask());
        let declares_tasks = answers::declares_tasks(&request);
        if self.is_stateless() && (!can_ask || declares_tasks) {
            // Each request states the client's capabilities, and by default that the user can be asked.
            let mut capabilities = self.notifications.questions().capabilities(can_ask);
            if declares_tasks {
                let extensions = capabilities.extensions.get_or_insert_default();
                extensions.insert(TASKS_EXTENSION_ID.to_owned(), JsonObject::new());
            }
            let mut meta = RequestMetaObject::new();
            meta.set_client_capabilities(capabilities);
            options = options.with_meta(meta);
        }
        if let Some(context) = &trace.context {
            answers::attach_context(&mut request, context.clone());
        }
        let mut counted = CountedOperation::new(&self.operation_keys, request.method());
        let handle = self.peer.send_cancellable_request(request, options).await.inspect_err(|_lost| {
            counted.error = Some("connection");
        })?;
        if let Some(sent) = &trace.sent {
            let request_id = handle.id.to_string();
            let protocol_version = self.protocol_version();
            // The slot keeps the id of the first request if a call is sent again with input, or a list has several
            // pages.
            let _again = sent.set(SentRequest { request_id, protocol_version });
        }
        *listening =
            on_progress.map(|listener| self.notifications.listen(handle.progress_token.clone(), listener));
        let mut guard = CancelOnDrop { connection: self, id: Some(handle.id.clone()) };
        let response = handle.await_response().await;
        guard.id = None;
        let text =
            response.and_then(|result| answers::result_text(result).ok_or(ServiceError::UnexpectedResponse));
        counted.error = match &text {
            Ok(text) if counted.is_call() && answers::is_tool_error(text) => Some(conventions::TOOL_ERROR),
            Ok(_) => None,
            Err(ServiceError::McpError(error)) => Some(conventions::json_rpc_error_type(error.code.0)),
            Err(_) => Some("connection"),
        };
        text
    }

    /// Explains why a request has no answer. Waits briefly for the process's exit status.
    pub(crate) async fn lost(&self, error: ServiceError, meanwhile: &str) -> ToolError {
        let server = &self.server;
        match error {
            ServiceError::UnexpectedResponse => errors::unreadable(server, "it answers another request"),
            ServiceError::TransportSend(error) => {
                unavailable(format!("nothing can be sent to server `{server}`: {error}"))
            }
            _ => {
                let _elapsed = timeout(REASON_TIME, self.finished.cancelled()).await;
                let (status, stderr_tail) =
                    self.end.get().map_or((CLOSED, ""), |end| (&*end.status, &*end.stderr_tail));
                let problem = format!("server `{server}` {status} while {meanwhile}");
                ToolError::of_server(ServerFailureKind::Other, problem, stderr_tail)
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        metrics::histogram!(conventions::CLIENT_SESSION, conventions::LABEL_TRANSPORT => self.transport)
            .record(self.began.elapsed());
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
        let reason = Some("the caller no longer waits".to_owned());
        let parameters = CancelledNotificationParam::new(Some(id), reason);
        // The task ends at once: the message is queued, or the connection is over.
        self.connection.handle.spawn(async move {
            let cancelled = CancelledNotification::new(parameters);
            let _connection_is_over = peer.send_notification(cancelled.into()).await;
        });
    }
}
