//! One session of a client of a handshake revision: what it receives, and what ends with it.

use std::future::{Future, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::Stream;
use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, GetExtensions as _, GetMeta as _, JsonRpcMessage,
    ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::accepted::AcceptedToken;
use super::events::{NotRead, NotResumed, Resumption, StreamEvents, StreamReader};
use super::kept::KeptEvents;
use super::shares::{Eviction, EvictionCandidate, Holder, TenantKey};
use super::streams::{RequestStream, Streams, cancellation};
use crate::conventions;
use crate::server::answer_size::AnswerSize;
use crate::server::request_id::ClientRequestId;
use crate::server::request_span::CountedSession;
use crate::server::session::McpSession;

/// Maximum number of messages that rmcp has not received yet. Receiving takes little time: rmcp starts a task for each.
const MAX_INCOMING: usize = 1_024;

/// A session in use is evicted for another one of its own peer only after it has been idle for this
/// long.
const MIN_LIFE: Duration = Duration::from_secs(60);

/// One client's session. Lives until the client ends it, or it expires or is evicted.
pub(crate) struct HttpSession {
    /// Attached to each message, so that it is handled in this session.
    pub(crate) mcp: Arc<McpSession>,
    /// The tenant and the peer that sent the first request.
    holder: Holder,
    /// The token of that request, if clients must send one.
    token: Option<Arc<AcceptedToken>>,
    incoming: mpsc::Sender<ClientJsonRpcMessage>,
    /// Cancelled when the client has ended the session, or when it has expired or was evicted.
    ended: CancellationToken,
    pub(crate) streams: Arc<Mutex<Streams>>,
    /// What is kept for clients of all sessions that resume a stream.
    kept: Arc<KeptEvents>,
    _counted: CountedSession,
}

/// Why a session operation fails.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionError {
    /// There is no session of this id, or it has ended.
    #[error("the session has ended")]
    Ended,
    /// The maximum number of sessions is reached and none can be evicted.
    #[error("too many sessions")]
    TooMany,
    /// A stream cannot be resumed.
    #[error(transparent)]
    NotResumed(NotResumed),
    /// The system provides no random numbers.
    #[error("no session id can be made: {0}")]
    NoId(io::Error),
    /// The request did not pass authentication. This does not happen, because every request passes it first.
    #[error("it is not known who asks for a session")]
    NoRequester,
}

impl HttpSession {
    /// Makes a session for a client of `holder` with this token, and the transport through which rmcp serves it.
    pub(crate) fn new(
        mcp: McpSession,
        holder: Holder,
        token: Option<Arc<AcceptedToken>>,
        kept: Arc<KeptEvents>,
    ) -> (Arc<Self>, SessionTransport) {
        let (incoming, messages) = mpsc::channel(MAX_INCOMING);
        let session = Arc::new(Self {
            mcp: Arc::new(mcp),
            holder,
            token,
            incoming,
            ended: CancellationToken::new(),
            streams: Arc::new(Mutex::new(Streams::new())),
            kept,
            _counted: CountedSession::begin(conventions::TCP),
        });
        let transport = SessionTransport {
            messages,
            ended: session.ended.clone(),
            mcp: Arc::clone(&session.mcp),
            streams: Arc::clone(&session.streams),
        };
        (session, transport)
    }

    /// Whether the session belongs to a client of this tenant.
    pub(crate) fn is_of(&self, tenant: TenantKey) -> bool {
        self.holder.tenant == tenant
    }

    /// Whether its first request was sent with this token.
    pub(crate) fn was_begun_with(&self, token: &Arc<AcceptedToken>) -> bool {
        self.token.as_ref().is_some_and(|own| Arc::ptr_eq(own, token))
    }

    /// Whether the client has a standalone stream open.
    pub(crate) fn is_listening(&self) -> bool {
        self.streams.lock().standalone().is_some()
    }

    /// Opens the standalone stream. It replaces an earlier one.
    pub(crate) fn listen(self: Arc<Self>) -> SessionStream {
        let (sender, reader) = StreamEvents::plain();
        {
            let mut streams = self.streams.lock();
            streams.is_used = true;
            streams.standalone = Some(sender);
        }
        SessionStream { reader, request: None, session: self }
    }

    /// Ends the standalone stream, so that its connection can end.
    pub(crate) fn end_listening(&self) {
        self.streams.lock().standalone = None;
    }

    /// Reads the revision in the answer to `initialize`. From 2025-11-25 on streams of requests can be resumed.
    pub(crate) fn note_revision(&self, answer: &ServerJsonRpcMessage) {
        if let JsonRpcMessage::Response(response) = answer
            && let ServerResult::InitializeResult(result) = &response.result
        {
            let first = ProtocolVersion::V_2025_11_25;
            self.streams.lock().are_resumable = result.protocol_version.as_str() >= first.as_str();
        }
    }

    /// Passes a request on that was sent with `token`. Its notifications and its answer are sent on the returned
    /// stream. If the stream is dropped, and its client cannot resume it, the request is cancelled.
    pub(crate) async fn begin(
        self: Arc<Self>,
        message: ClientJsonRpcMessage,
        token: Option<Arc<AcceptedToken>>,
    ) -> Result<SessionStream, SessionError> {
        let JsonRpcMessage::Request(mut request) = message else { return Err(SessionError::Ended) };
        let (number, reader) = {
            let mut streams = self.streams.lock();
            streams.last_id += 1;
            let number = streams.last_id;
            let (sender, reader) = if streams.are_resumable {
                let (holder, kept) = (self.holder, Arc::clone(&self.kept));
                StreamEvents::resumable(Resumption { request: number, token, holder, kept })
            } else {
                StreamEvents::plain()
            };
            let client_id = std::mem::replace(&mut request.id, RequestId::Number(number));
            request.request.extensions_mut().insert(ClientRequestId::from(&client_id));
            let progress = request.request.get_meta().get_progress_token();
            streams.requests.insert(number, RequestStream { client_id, progress, sender, away: None });
            streams.used = Instant::now();
            (number, reader)
        };
        let stream = SessionStream { reader, request: Some(number), session: Arc::clone(&self) };
        request.request.extensions_mut().insert(Arc::clone(&self.mcp));
        self.pass_on(JsonRpcMessage::Request(request)).await?;
        Ok(stream)
    }

    /// The rest of a stream after the event with this id, for a request with this token on a new connection, which is
    /// told how much waits for it.
    ///
    /// # Errors
    ///
    /// If the session has no such event, it belongs to another token, or nothing comes or is kept after it.
    pub(crate) fn resume(
        self: Arc<Self>,
        event_id: &str,
        token: Option<&Arc<AcceptedToken>>,
        size: Option<AnswerSize>,
    ) -> Result<SessionStream, NotResumed> {
        let (number, reader) = self.streams.lock().resume(event_id, token, size)?;
        Ok(SessionStream { reader, request: Some(number), session: self })
    }

    /// Passes on a message that gets no answer.
    pub(crate) async fn accept(&self, mut message: ClientJsonRpcMessage) -> Result<(), SessionError> {
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
                        for &number in &cancelled {
                            streams.cancel(number);
                        }
                        if cancelled.is_empty() {
                            return Ok(());
                        }
                    } else {
                        notification.notification.extensions_mut().insert(Arc::clone(&self.mcp));
                    }
                }
                JsonRpcMessage::Response(response) => {
                    streams.server_requests.remove(&response.id);
                }
                JsonRpcMessage::Error(error) => {
                    if let Some(id) = &error.id {
                        streams.server_requests.remove(id);
                    }
                }
                JsonRpcMessage::Request(_) => return Err(SessionError::Ended),
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
            passed = self.incoming.send(message) => passed.map_err(|_gone| SessionError::Ended),
            () = self.ended.cancelled() => Err(SessionError::Ended),
        }
    }

    /// Cancels a request whose stream has ended.
    fn cancel(&self, number: i64) {
        if self.incoming.try_send(cancellation(number)).is_err() {
            // The session has ended, or its queue is so full that it has to end.
            self.end();
        }
    }

    /// Cancels the requests of clients that have not come back in time, and forgets streams that have ended.
    pub(crate) fn expire_streams(&self) {
        let expired = self.streams.lock().expire();
        for number in expired {
            self.cancel(number);
        }
    }

    /// How long the session has been idle. `None` while it is in use.
    pub(crate) fn idle_time(&self) -> Option<Duration> {
        let streams = self.streams.lock();
        let is_idle = !self.has_calls(&streams) && streams.standalone().is_none();
        is_idle.then(|| streams.used.elapsed())
    }

    fn has_calls(&self, streams: &Streams) -> bool {
        // A task is a call without a stream.
        !streams.requests.is_empty() || !self.mcp.calls.is_empty()
    }

    /// Whether all calls go on without a connection, which the client may have left for good. A task is another call.
    fn are_calls_away(&self, streams: &Streams) -> bool {
        streams.are_all_away() && self.mcp.calls.count() <= streams.requests.len()
    }

    /// Determines which peers may evict the session.
    pub(crate) fn held(&self, id: SessionId) -> EvictionCandidate<SessionId> {
        let streams = self.streams.lock();
        let eviction = if self.has_calls(&streams) && !self.are_calls_away(&streams) {
            // The executor bounds the number and the duration of calls.
            Eviction::Never
        } else if self.has_calls(&streams) || streams.standalone().is_some() {
            Eviction::OverShare(3)
        } else if !streams.is_used {
            Eviction::Allowed(0)
        } else if streams.used.elapsed() >= MIN_LIFE {
            Eviction::Allowed(1)
        } else {
            Eviction::OverShare(2)
        };
        EvictionCandidate { key: id, holder: self.holder, eviction, since: streams.used }
    }

    /// Ends the session and its runs.
    pub(crate) fn end(&self) {
        self.mcp.runs.cancel();
        self.ended.cancel();
        self.end_listening();
    }
}

/// A stream that a client reads on one connection: the messages of one request, or the standalone stream.
pub(crate) struct SessionStream {
    reader: StreamReader,
    request: Option<i64>,
    session: Arc<HttpSession>,
}

impl Stream for SessionStream {
    type Item = ServerSseMessage;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        self.reader.poll_next(context)
    }
}

impl Drop for SessionStream {
    fn drop(&mut self) {
        let cancelled = {
            let mut streams = self.session.streams.lock();
            streams.used = Instant::now();
            // Otherwise a newer connection reads the stream.
            let was_last = self.reader.leave();
            self.request.filter(|&number| was_last && !streams.let_go_on(number, &self.session.kept))
        };
        if let Some(number) = cancelled {
            self.session.cancel(number);
        }
    }
}

/// A session as rmcp's transport.
pub(crate) struct SessionTransport {
    messages: mpsc::Receiver<ClientJsonRpcMessage>,
    ended: CancellationToken,
    mcp: Arc<McpSession>,
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
        self.mcp.runs.cancel();
        {
            let mut streams = self.streams.lock();
            streams.requests.clear();
            streams.ended.clear();
            streams.standalone = None;
        }
        // No other session can read its records or use its state.
        self.mcp.forget();
        Ok(())
    }
}
