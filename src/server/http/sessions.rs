//! The sessions of clients of the handshake revisions, and the routing of their messages to
//! streams.
//!
//! rmcp's own session manager keeps answers for clients that may reconnect, blocks a whole session
//! if its client does not read one stream, and identifies requests by the client's ids. Here a
//! request ends with its stream, streams do not block each other, and rmcp sees ids of this module,
//! as over stdio.

use std::cell::Cell;
use std::collections::HashMap;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::Stream;
use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, ClientNotification,
    GetExtensions, GetMeta as _, JsonRpcMessage, ProgressToken, RequestId, ServerJsonRpcMessage,
    ServerNotification,
};
use rmcp::service::OriginatingRequestId;
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::shares::{Eviction, Held, PeerKey, select_for_eviction};
use crate::server::calls::CallsInFlight;
use crate::server::metrics;
use crate::server::random_name::random_name;
use crate::server::session::McpSession;
use crate::server::shared::Shared;

/// Maximum number of messages that wait for the client to read a stream. Further notifications are
/// dropped, as over stdio.
const MAX_WAITING: usize = 256;

/// Slots of a stream's queue that notifications leave free for approval prompts, which must not be
/// lost.
const KEPT_FOR_QUESTIONS: usize = 8;

/// Slot that all other messages leave free for the answer.
const KEPT_FOR_ANSWER: usize = 1;

/// Maximum number of messages that wait to be received by rmcp. Receiving takes little time: rmcp
/// makes a task of each.
const MAX_INCOMING: usize = 1_024;

/// A session in use is evicted for another one of its own peer only after it has been idle for this
/// long.
const MIN_LIFE: Duration = Duration::from_secs(60);

/// Maximum interval between two checks for expired sessions.
const EXPIRY: Duration = Duration::from_secs(15);

tokio::task_local! {
    /// Whether the request of this task could not start a session because there are too many. rmcp
    /// returns one error for all reasons, and a client that may retry has to be told.
    pub(crate) static REFUSED: Cell<bool>;

    /// The peer of this task's request.
    pub(crate) static PEER: PeerKey;
}

/// Maximum number of sessions, and their maximum idle time.
#[derive(Clone, Copy)]
pub(crate) struct SessionBounds {
    pub(crate) most: usize,
    pub(crate) idle: Duration,
}

/// All sessions over HTTP.
pub(crate) struct Sessions {
    shared: Arc<Shared>,
    bounds: SessionBounds,
    /// Cancels the runs of all sessions.
    runs: CancellationToken,
    /// The calls of all sessions.
    calls: Arc<CallsInFlight>,
    open: Mutex<HashMap<SessionId, Arc<HttpSession>>>,
}

/// One client's session.
struct HttpSession {
    /// Attached to each message, so that it is handled in this session.
    session: Arc<McpSession>,
    /// The peer that sent its first request.
    peer: PeerKey,
    incoming: mpsc::Sender<ClientJsonRpcMessage>,
    /// Cancelled when the client has ended the session, or when it has expired or was evicted.
    ended: CancellationToken,
    streams: Arc<Mutex<Streams>>,
}

/// The streams of a session, and the requests that they belong to.
struct Streams {
    /// By this module's ids, which are never reused.
    requests: HashMap<i64, RequestStream>,
    last_id: i64,
    /// The standalone stream (GET), if the client has opened one.
    standalone: Option<mpsc::Sender<ServerSseMessage>>,
    /// The server's requests that the client has not answered, with the stream that each was sent
    /// on.
    questions: HashMap<RequestId, mpsc::Sender<ServerSseMessage>>,
    used: Instant,
    /// Whether the client has sent anything after its first request. Every real client does so at
    /// once.
    is_used: bool,
}

/// A request that is being answered.
struct RequestStream {
    client_id: RequestId,
    progress: Option<ProgressToken>,
    sender: mpsc::Sender<ServerSseMessage>,
}

/// Why a session operation fails.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    /// There is no session of this id, or it has ended.
    #[error("the session is over")]
    Over,
    /// The maximum number of sessions is reached and none can be evicted.
    #[error("too many sessions")]
    TooMany,
    /// Streams are not kept for clients that reconnect.
    #[error("streams cannot be resumed")]
    NotKept,
    /// The system provides no random numbers.
    #[error("no session id can be made")]
    NoId,
}

/// The client does not read, or is gone.
#[derive(Debug, thiserror::Error)]
#[error("the client does not read")]
pub(crate) struct NotRead;

impl Sessions {
    pub(crate) fn new(
        shared: Arc<Shared>,
        bounds: SessionBounds,
        runs: CancellationToken,
        calls: Arc<CallsInFlight>,
    ) -> Self {
        Self { shared, bounds, runs, calls, open: Mutex::default() }
    }

    /// The number of sessions.
    pub(crate) fn count(&self) -> usize {
        self.open.lock().len()
    }

    /// Whether there is a session of this id.
    pub(crate) fn knows(&self, id: &str) -> bool {
        self.open.lock().contains_key(id)
    }

    /// Whether the session's client has a standalone stream open.
    pub(crate) fn is_listening(&self, id: &str) -> bool {
        let session = self.open.lock().get(id).cloned();
        session.is_some_and(|session| session.streams.lock().standalone().is_some())
    }

    /// Interval of the checks for expired sessions.
    pub(crate) fn expiry_interval(&self) -> Duration {
        self.bounds.idle.clamp(Duration::from_millis(10), EXPIRY)
    }

    /// Ends the sessions that were idle for too long.
    pub(crate) fn expire(&self) {
        let idle = self.bounds.idle;
        let mut open = self.open.lock();
        open.retain(|_, session| {
            let is_kept = session.idle_time().is_none_or(|time| time <= idle);
            if !is_kept {
                session.end();
            }
            is_kept
        });
    }

    /// Ends all standalone streams, so that their connections can end.
    pub(crate) fn end_listening(&self) {
        for session in self.open.lock().values() {
            session.streams.lock().standalone = None;
        }
    }

    fn session(&self, id: &SessionId) -> Result<Arc<HttpSession>, SessionError> {
        self.open.lock().get(id).cloned().ok_or(SessionError::Over)
    }
}

/// Evicts a session for a new one of `peer`: one whose client sent nothing after its first request,
/// or one that has been idle for [`MIN_LIFE`], or one of a peer above its share.
fn make_room(
    open: &mut HashMap<SessionId, Arc<HttpSession>>,
    peer: PeerKey,
    most: usize,
) -> Result<(), SessionError> {
    let held = open.iter().map(|(id, session)| session.held(Arc::clone(id))).collect();
    let id = select_for_eviction(held, peer, most).ok_or(SessionError::TooMany)?;
    if let Some(session) = open.remove(&id) {
        metrics::count_evicted("session");
        session.end();
    }
    Ok(())
}

impl SessionManager for Sessions {
    type Error = SessionError;
    type Transport = SessionTransport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), SessionError> {
        let id = SessionId::from(random_name().ok_or(SessionError::NoId)?);
        let peer = PEER.try_with(|&peer| peer).unwrap_or_default();
        let mut open = self.open.lock();
        if open.len() >= self.bounds.most
            && let Err(refused) = make_room(&mut open, peer, self.bounds.most)
        {
            let _elsewhere = REFUSED.try_with(|is_refused| is_refused.set(true));
            return Err(refused);
        }
        let calls = Arc::new(CallsInFlight::within(&self.calls));
        let session = McpSession::new(Arc::clone(&self.shared), self.runs.child_token(), calls);
        let (incoming, messages) = mpsc::channel(MAX_INCOMING);
        let session = Arc::new(HttpSession {
            session: Arc::new(session.with_own_state(&id)),
            peer,
            incoming,
            ended: CancellationToken::new(),
            streams: Arc::new(Mutex::new(Streams::new())),
        });
        let transport = SessionTransport {
            messages,
            ended: session.ended.clone(),
            session: Arc::clone(&session.session),
            streams: Arc::clone(&session.streams),
        };
        open.insert(Arc::clone(&id), session);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionError> {
        let mut answers = self.session(id)?.begin(message).await?;
        let answer = answers.next().await.and_then(|event| event.message);
        answer.map(Arc::unwrap_or_clone).ok_or(SessionError::Over)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionError> {
        Ok(self.knows(id))
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionError> {
        if let Some(session) = self.open.lock().remove(id) {
            session.end();
        }
        Ok(())
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        let session = self.session(id)?;
        session.streams.lock().is_used = true;
        session.begin(message).await
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionError> {
        self.session(id)?.accept(message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        let session = self.session(id)?;
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        {
            let mut streams = session.streams.lock();
            streams.is_used = true;
            streams.standalone = Some(sender);
        }
        Ok(SessionStream { receiver, request: None, session })
    }

    async fn resume(
        &self,
        _id: &SessionId,
        _last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        Err::<futures::stream::Empty<_>, _>(SessionError::NotKept)
    }
}

impl HttpSession {
    /// Passes a request on. Its notifications and its answer are sent on the returned stream.
    /// Dropping the stream cancels the request.
    async fn begin(self: Arc<Self>, message: ClientJsonRpcMessage) -> Result<SessionStream, SessionError> {
        let JsonRpcMessage::Request(mut request) = message else { return Err(SessionError::Over) };
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        let number = {
            let mut streams = self.streams.lock();
            streams.last_id += 1;
            let number = streams.last_id;
            let client_id = std::mem::replace(&mut request.id, RequestId::Number(number));
            let progress = request.request.get_meta().get_progress_token();
            streams.requests.insert(number, RequestStream { client_id, progress, sender });
            streams.used = Instant::now();
            number
        };
        let stream = SessionStream { receiver, request: Some(number), session: Arc::clone(&self) };
        request.request.extensions_mut().insert(Arc::clone(&self.session));
        self.pass_on(JsonRpcMessage::Request(request)).await?;
        Ok(stream)
    }

    /// Passes on a message that gets no answer.
    async fn accept(&self, mut message: ClientJsonRpcMessage) -> Result<(), SessionError> {
        let mut cancelled = Vec::new();
        {
            let mut streams = self.streams.lock();
            streams.used = Instant::now();
            streams.is_used = true;
            match &mut message {
                JsonRpcMessage::Notification(notification) => {
                    if let ClientNotification::CancelledNotification(cancel) = &notification.notification {
                        let id = cancel.params.request_id.as_ref();
                        cancelled = streams.numbers_of(id);
                        for number in &cancelled {
                            // A cancelled request gets no answer.
                            streams.requests.remove(number);
                        }
                        if cancelled.is_empty() {
                            return Ok(());
                        }
                    } else {
                        notification.notification.extensions_mut().insert(Arc::clone(&self.session));
                    }
                }
                JsonRpcMessage::Response(response) => {
                    streams.questions.remove(&response.id);
                }
                JsonRpcMessage::Error(error) => {
                    if let Some(id) = &error.id {
                        streams.questions.remove(id);
                    }
                }
                JsonRpcMessage::Request(_) => return Err(SessionError::Over),
            }
        }
        if cancelled.is_empty() {
            return self.pass_on(message).await;
        }
        for number in cancelled {
            self.pass_on(cancellation(number)).await?;
        }
        Ok(())
    }

    async fn pass_on(&self, message: ClientJsonRpcMessage) -> Result<(), SessionError> {
        tokio::select! {
            passed = self.incoming.send(message) => passed.map_err(|_gone| SessionError::Over),
            () = self.ended.cancelled() => Err(SessionError::Over),
        }
    }

    /// How long the session has been idle. `None` while it is in use.
    fn idle_time(&self) -> Option<Duration> {
        let streams = self.streams.lock();
        let is_idle = !self.has_calls(&streams) && streams.standalone().is_none();
        is_idle.then(|| streams.used.elapsed())
    }

    fn has_calls(&self, streams: &Streams) -> bool {
        // A task is a call without a stream.
        !streams.requests.is_empty() || !self.session.calls.is_empty()
    }

    /// Determines for which peers the session may be evicted.
    fn held(&self, id: SessionId) -> Held<SessionId> {
        let streams = self.streams.lock();
        let eviction = if self.has_calls(&streams) {
            // The executor bounds the number and the duration of calls.
            Eviction::Never
        } else if streams.standalone().is_some() {
            Eviction::OverShare(3)
        } else if !streams.is_used {
            Eviction::Allowed(0)
        } else if streams.used.elapsed() >= MIN_LIFE {
            Eviction::Allowed(1)
        } else {
            Eviction::OverShare(2)
        };
        Held { key: id, peer: self.peer, eviction, since: streams.used }
    }

    fn end(&self) {
        self.session.runs.cancel();
        self.ended.cancel();
        self.streams.lock().standalone = None;
    }
}

impl Streams {
    fn new() -> Self {
        Self {
            requests: HashMap::new(),
            last_id: 0,
            standalone: None,
            questions: HashMap::new(),
            used: Instant::now(),
            is_used: false,
        }
    }

    fn standalone(&self) -> Option<&mpsc::Sender<ServerSseMessage>> {
        self.standalone.as_ref().filter(|sender| !sender.is_closed())
    }

    /// This module's ids of the requests with the client's id `client_id`.
    fn numbers_of(&self, client_id: Option<&RequestId>) -> Vec<i64> {
        let requests = self.requests.iter();
        requests
            .filter(|(_, stream)| Some(&stream.client_id) == client_id)
            .map(|(&number, _)| number)
            .collect()
    }

    /// The stream of the request that a message belongs to, or else the standalone stream.
    fn stream_of(&self, message: &impl GetExtensions) -> Option<&mpsc::Sender<ServerSseMessage>> {
        let of = match message.extensions().get::<OriginatingRequestId>() {
            Some(OriginatingRequestId(RequestId::Number(number))) => self.requests.get(number),
            _ => None,
        };
        of.map(|stream| &stream.sender).or_else(|| self.standalone())
    }

    fn route(&mut self, mut message: ServerJsonRpcMessage) -> Result<(), NotRead> {
        match &mut message {
            JsonRpcMessage::Response(response) => {
                let Some(stream) = self.take(&response.id) else { return Ok(()) };
                self.take_questions_back(&stream.sender);
                response.id = stream.client_id;
                push(&stream.sender, message, 0)
            }
            JsonRpcMessage::Error(error) => {
                let Some(stream) = error.id.as_ref().and_then(|id| self.take(id)) else { return Ok(()) };
                self.take_questions_back(&stream.sender);
                error.id = Some(stream.client_id);
                push(&stream.sender, message, 0)
            }
            JsonRpcMessage::Request(request) => {
                let sender = self.stream_of(&request.request).cloned().ok_or(NotRead)?;
                self.questions.retain(|_, sender| !sender.is_closed());
                self.questions.insert(request.id.clone(), sender.clone());
                push(&sender, message, KEPT_FOR_ANSWER)
            }
            JsonRpcMessage::Notification(notification) => {
                let sender = match &notification.notification {
                    ServerNotification::ProgressNotification(progress) => {
                        let token = Some(&progress.params.progress_token);
                        let stream = self.requests.values().find(|stream| stream.progress.as_ref() == token);
                        stream.map(|stream| stream.sender.clone())
                    }
                    ServerNotification::CancelledNotification(cancelled) => {
                        let id = cancelled.params.request_id.as_ref();
                        id.and_then(|id| self.questions.remove(id))
                    }
                    other => self.stream_of(other).cloned(),
                };
                if let Some(sender) = sender {
                    // Notifications are best effort: they are dropped when the queue is full.
                    let _dropped = push(&sender, message, KEPT_FOR_QUESTIONS);
                }
                Ok(())
            }
        }
    }

    /// Cancels the open prompts of a stream that is about to end, because they belong to its call.
    fn take_questions_back(&mut self, sender: &mpsc::Sender<ServerSseMessage>) {
        self.questions.retain(|id, asked_in| {
            let is_kept = !asked_in.same_channel(sender);
            if !is_kept {
                let params = CancelledNotificationParam::new(Some(id.clone()), None);
                let notification =
                    ServerNotification::CancelledNotification(CancelledNotification::new(params));
                let _dropped = push(sender, JsonRpcMessage::notification(notification), KEPT_FOR_ANSWER);
            }
            is_kept
        });
    }

    fn take(&mut self, id: &RequestId) -> Option<RequestStream> {
        let RequestId::Number(number) = id else { return None };
        self.used = Instant::now();
        self.requests.remove(number)
    }
}

/// Queues a message at once, if at least `left` slots stay free.
fn push(
    sender: &mpsc::Sender<ServerSseMessage>,
    message: ServerJsonRpcMessage,
    left: usize,
) -> Result<(), NotRead> {
    if sender.capacity() <= left {
        return Err(NotRead);
    }
    sender.try_send(ServerSseMessage::from_message(message)).map_err(|_full| NotRead)
}

fn cancellation(number: i64) -> ClientJsonRpcMessage {
    let params = CancelledNotificationParam::new(Some(RequestId::Number(number)), None);
    JsonRpcMessage::notification(ClientNotification::CancelledNotification(CancelledNotification::new(
        params,
    )))
}

/// A stream that a client reads: the messages of one request, or the standalone stream.
struct SessionStream {
    receiver: mpsc::Receiver<ServerSseMessage>,
    request: Option<i64>,
    session: Arc<HttpSession>,
}

impl SessionStream {
    async fn next(&mut self) -> Option<ServerSseMessage> {
        self.receiver.recv().await
    }
}

impl Stream for SessionStream {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        self.receiver.poll_recv(context)
    }
}

impl Drop for SessionStream {
    fn drop(&mut self) {
        let is_unanswered = {
            let mut streams = self.session.streams.lock();
            streams.used = Instant::now();
            self.request.and_then(|number| streams.requests.remove(&number)).is_some()
        };
        let Some(number) = self.request.filter(|_| is_unanswered) else { return };
        // The client has dropped the stream, and nothing is kept for it.
        if self.session.incoming.try_send(cancellation(number)).is_err() {
            // The session has ended, or its queue is so full that it has to end.
            self.session.end();
        }
    }
}

/// A session as rmcp serves it.
pub(crate) struct SessionTransport {
    messages: mpsc::Receiver<ClientJsonRpcMessage>,
    ended: CancellationToken,
    session: Arc<McpSession>,
    streams: Arc<Mutex<Streams>>,
}

impl Transport<RoleServer> for SessionTransport {
    type Error = NotRead;

    /// Queues the message at once, in the order of the calls.
    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), NotRead>> + Send + 'static {
        ready(self.streams.lock().route(message))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        tokio::select! {
            biased;
            () = self.ended.cancelled() => None,
            message = self.messages.recv() => message,
        }
    }

    async fn close(&mut self) -> Result<(), NotRead> {
        self.session.runs.cancel();
        {
            let mut streams = self.streams.lock();
            streams.requests.clear();
            streams.standalone = None;
        }
        // The session is over, so nobody can read its records or use its state.
        self.session.forget();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
