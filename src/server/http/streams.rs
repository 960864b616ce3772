//! The streams of one session, and which of them a message is sent on.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, ClientNotification,
    GetExtensions, JsonRpcMessage, ProgressToken, RequestId, ServerJsonRpcMessage, ServerNotification,
};
use rmcp::service::OriginatingRequestId;
use tokio::sync::OwnedSemaphorePermit;

use super::accepted::AcceptedToken;
use super::events::{
    MessageKind, NotRead, NotResumed, StreamEvents, StreamReader, StreamSender, parse_event_id,
};
use super::kept::KeptEvents;
use crate::server::answer_size::AnswerSize;
use crate::server::unserved;

/// How long a request goes on without a connection, and how long a stream is kept that has ended. Clients resume a
/// stream after a second, and try again for some seconds; a machine that changes its network needs longer. After that
/// its client is taken to be gone, so that no script acts for it.
pub(crate) const GRACE: Duration = Duration::from_secs(60);

/// Maximum number of requests of a session that go on without a connection: as many as runs that go on after their
/// answer.
pub(crate) const MAX_AWAY: usize = 16;

/// Maximum number of ended streams that a session keeps. Only those that ended in the last seconds matter.
const MAX_ENDED: usize = 64;

/// The streams of a session, and the requests that they belong to.
pub(crate) struct Streams {
    /// By this module's ids, which are never reused.
    pub(crate) requests: HashMap<i64, RequestStream>,
    pub(crate) last_id: i64,
    /// Streams of requests that were answered or cancelled, the oldest first.
    pub(crate) ended: VecDeque<EndedStream>,
    /// Whether the streams of requests can be resumed. Clients of earlier revisions than 2025-11-25 cannot read the
    /// event without a message with which such a stream begins.
    pub(crate) are_resumable: bool,
    /// The standalone stream (GET), if the client has opened one.
    pub(crate) standalone: Option<StreamSender>,
    /// The server's requests that the client has not answered, with the stream that each was sent
    /// on.
    pub(crate) server_requests: HashMap<RequestId, Arc<StreamEvents>>,
    /// When the client last sent something, or a stream ended.
    pub(crate) used: Instant,
    /// Whether the client has sent anything after its first request. Every real client does so at
    /// once.
    pub(crate) is_used: bool,
}

/// A request that is being answered.
pub(crate) struct RequestStream {
    pub(crate) client_id: RequestId,
    pub(crate) progress: Option<ProgressToken>,
    pub(crate) sender: StreamSender,
    /// Set while no connection reads the stream, and the client may resume it.
    pub(crate) away: Option<ClientAway>,
}

/// Since when a client has been away from the stream of a request.
pub(crate) struct ClientAway {
    pub(crate) since: Instant,
    _permit: OwnedSemaphorePermit,
}

/// The stream of a request that was answered or cancelled. The client may not have received all of it.
pub(crate) struct EndedStream {
    number: i64,
    events: Arc<StreamEvents>,
    pub(crate) since: Instant,
}

impl Streams {
    pub(crate) fn new() -> Self {
        Self {
            requests: HashMap::new(),
            last_id: 0,
            ended: VecDeque::new(),
            are_resumable: false,
            standalone: None,
            server_requests: HashMap::new(),
            used: Instant::now(),
            is_used: false,
        }
    }

    /// The standalone stream, if the client still reads it.
    pub(crate) fn standalone(&self) -> Option<&Arc<StreamEvents>> {
        self.standalone.as_ref().map(StreamSender::events).filter(|events| !events.is_closed())
    }

    /// This module's ids of the requests with the client's id `client_id`.
    pub(crate) fn numbers_of(&self, client_id: Option<&RequestId>) -> Vec<i64> {
        let requests = self.requests.iter();
        requests
            .filter(|(_, stream)| Some(&stream.client_id) == client_id)
            .map(|(&number, _)| number)
            .collect()
    }

    /// The stream of the request that a message belongs to, or else the standalone stream.
    fn stream_of(&self, message: &impl GetExtensions) -> Option<&Arc<StreamEvents>> {
        let of = match message.extensions().get::<OriginatingRequestId>() {
            Some(OriginatingRequestId(RequestId::Number(number))) => self.requests.get(number),
            _ => None,
        };
        of.map(|stream| stream.sender.events()).or_else(|| self.standalone())
    }

    /// Queues a message on its stream. Answers get the client's id. Notifications are dropped if
    /// their stream is full.
    ///
    /// # Errors
    ///
    /// If another message cannot be queued.
    pub(crate) fn route(&mut self, mut message: ServerJsonRpcMessage) -> Result<(), NotRead> {
        match &mut message {
            JsonRpcMessage::Response(response) => {
                let Some((number, stream)) = self.remove(&response.id) else { return Ok(()) };
                response.id = stream.client_id;
                self.answer(number, stream.sender, message)
            }
            JsonRpcMessage::Error(error) => {
                let removed = error.id.as_ref().and_then(|id| self.remove(id));
                let Some((number, stream)) = removed else { return Ok(()) };
                error.id = Some(stream.client_id);
                unserved::explain(&mut error.error);
                self.answer(number, stream.sender, message)
            }
            JsonRpcMessage::Request(request) => {
                let events = self.stream_of(&request.request).cloned().ok_or(NotRead)?;
                self.server_requests.retain(|_, events| !events.is_closed());
                let id = request.id.clone();
                events.push(message, MessageKind::Prompt)?;
                self.server_requests.insert(id, events);
                Ok(())
            }
            JsonRpcMessage::Notification(notification) => {
                let events = match &notification.notification {
                    ServerNotification::ProgressNotification(progress) => {
                        let token = Some(&progress.params.progress_token);
                        let stream = self.requests.values().find(|stream| stream.progress.as_ref() == token);
                        stream.map(|stream| Arc::clone(stream.sender.events()))
                    }
                    ServerNotification::CancelledNotification(cancelled) => {
                        let id = cancelled.params.request_id.as_ref();
                        id.and_then(|id| self.server_requests.remove(id))
                    }
                    other => self.stream_of(other).cloned(),
                };
                if let Some(events) = events {
                    // Notifications are best effort: they are dropped when the queue is full.
                    let _dropped = events.push(message, MessageKind::Notification);
                }
                Ok(())
            }
        }
    }

    /// Sends the answer to a request that was removed, and keeps the stream if it can be resumed.
    fn answer(
        &mut self,
        number: i64,
        sender: StreamSender,
        message: ServerJsonRpcMessage,
    ) -> Result<(), NotRead> {
        let events = sender.events();
        self.cancel_prompts(events);
        events.push(message, MessageKind::Answer)?;
        self.keep_ended(number, events);
        Ok(())
    }

    /// Keeps the stream of a request that was removed, if it can be resumed.
    fn keep_ended(&mut self, number: i64, events: &Arc<StreamEvents>) {
        if events.is_resumable() {
            if self.ended.len() >= MAX_ENDED {
                self.ended.pop_front();
            }
            let events = Arc::clone(events);
            self.ended.push_back(EndedStream { number, events, since: Instant::now() });
        }
    }

    /// Cancels the open prompts of a stream that is about to end, because they belong to its call.
    fn cancel_prompts(&mut self, events: &Arc<StreamEvents>) {
        self.server_requests.retain(|id, asked_in| {
            let is_kept = !Arc::ptr_eq(asked_in, events);
            if !is_kept {
                let params = CancelledNotificationParam::new(Some(id.clone()), None);
                let notification =
                    ServerNotification::CancelledNotification(CancelledNotification::new(params));
                let _dropped = events.push(JsonRpcMessage::notification(notification), MessageKind::Prompt);
            }
            is_kept
        });
    }

    /// Ends the stream of a request that its client has cancelled: there is no answer.
    pub(crate) fn cancel(&mut self, number: i64) {
        if let Some(stream) = self.requests.remove(&number) {
            let events = stream.sender.events();
            self.cancel_prompts(events);
            // Its client may resume it, and is told then that nothing comes.
            self.keep_ended(number, events);
        }
    }

    fn remove(&mut self, id: &RequestId) -> Option<(i64, RequestStream)> {
        let RequestId::Number(number) = id else { return None };
        self.used = Instant::now();
        self.requests.remove(number).map(|stream| (*number, stream))
    }

    /// Lets a request go on without a connection, if its client can resume the stream. Returns false if it must be
    /// cancelled, and ends its stream then.
    pub(crate) fn let_go_on(&mut self, number: i64, kept: &KeptEvents) -> bool {
        let away = self.requests.values().filter(|stream| stream.away.is_some()).count();
        let Some(stream) = self.requests.get_mut(&number) else { return true };
        let may_go_on = away < MAX_AWAY && stream.sender.events().can_be_resumed();
        if let Some(permit) = may_go_on.then(|| kept.away_permit()).flatten() {
            stream.away = Some(ClientAway { since: Instant::now(), _permit: permit });
            return true;
        }
        self.requests.remove(&number);
        false
    }

    /// Lets another connection read a stream from the event with this id on. Returns the request's number too.
    ///
    /// # Errors
    ///
    /// If the session has no such event, it belongs to another token, or nothing comes or is kept after it.
    pub(crate) fn resume(
        &mut self,
        event_id: &str,
        token: Option<&Arc<AcceptedToken>>,
        size: Option<AnswerSize>,
    ) -> Result<(i64, StreamReader), NotResumed> {
        let (number, event) = parse_event_id(event_id).ok_or(NotResumed::NotKept)?;
        let reader = if let Some(stream) = self.requests.get_mut(&number) {
            let reader = stream.sender.events().resume(event, token, size)?;
            stream.away = None;
            reader
        } else {
            let stream = self.ended.iter().find(|stream| stream.number == number);
            stream.ok_or(NotResumed::NotKept)?.events.resume(event, token, size)?
        };
        self.used = Instant::now();
        Ok((number, reader))
    }

    /// Drops what is kept for clients that have been away for too long. Returns the requests that have to be cancelled.
    pub(crate) fn expire(&mut self) -> Vec<i64> {
        self.ended.retain(|stream| stream.since.elapsed() < GRACE);
        let is_over = |away: &ClientAway| away.since.elapsed() >= GRACE;
        self.requests
            .extract_if(|_, stream| stream.away.as_ref().is_some_and(is_over))
            .map(|(number, _)| number)
            .collect()
    }

    /// Whether no connection reads the stream of any request.
    pub(crate) fn are_all_away(&self) -> bool {
        self.requests.values().all(|stream| stream.away.is_some())
    }
}

/// The notification that cancels a request.
pub(crate) fn cancellation(number: i64) -> ClientJsonRpcMessage {
    let params = CancelledNotificationParam::new(Some(RequestId::Number(number)), None);
    JsonRpcMessage::notification(ClientNotification::CancelledNotification(CancelledNotification::new(
        params,
    )))
}

#[cfg(test)]
mod tests;
