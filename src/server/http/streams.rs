//! The streams of one session, and which of them a message is sent on.

use std::collections::HashMap;
use std::task::{Context, Poll};
use std::time::Instant;

use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, ClientNotification,
    GetExtensions, JsonRpcMessage, ProgressToken, RequestId, ServerJsonRpcMessage, ServerNotification,
};
use rmcp::service::OriginatingRequestId;
use rmcp::transport::streamable_http_server::session::ServerSseMessage;
use tokio::sync::mpsc;

use crate::server::tasks::bytes_of;
use crate::server::unserved;
use crate::server::waiting_bytes::{HeldBytes, WaitingBytes};

/// Maximum number of messages that wait for the client to read a stream. Further notifications are
/// dropped, as over stdio.
const MAX_WAITING: usize = 256;

/// Slots of a stream's queue that notifications leave free for approval prompts, which must not be
/// lost.
const KEPT_FOR_PROMPTS: usize = 8;

/// Slot that all other messages leave free for the answer.
const KEPT_FOR_ANSWER: usize = 1;

/// The streams of a session, and the requests that they belong to.
pub(crate) struct Streams {
    /// By this module's ids, which are never reused.
    pub(crate) requests: HashMap<i64, RequestStream>,
    pub(crate) last_id: i64,
    /// The standalone stream (GET), if the client has opened one.
    pub(crate) standalone: Option<StreamSender>,
    /// The server's requests that the client has not answered, with the stream that each was sent
    /// on.
    pub(crate) server_requests: HashMap<RequestId, StreamSender>,
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
}

/// The queue of a stream, for what is sent on it.
#[derive(Clone)]
pub(crate) struct StreamSender {
    queue: mpsc::Sender<WaitingMessage>,
    bytes: WaitingBytes,
}

/// The same queue, for the client that reads the stream.
pub(crate) struct StreamReceiver(mpsc::Receiver<WaitingMessage>);

struct WaitingMessage {
    message: ServerSseMessage,
    /// Those of a notification. The connection counts those of an answer, and there are few prompts.
    _bytes: Option<HeldBytes>,
}

/// Makes the queue of a stream.
pub(crate) fn stream_queue() -> (StreamSender, StreamReceiver) {
    let (queue, receiver) = mpsc::channel(MAX_WAITING);
    (StreamSender { queue, bytes: WaitingBytes::new() }, StreamReceiver(receiver))
}

impl StreamReceiver {
    /// The next message. `None` when the stream has ended.
    pub(crate) async fn recv(&mut self) -> Option<ServerSseMessage> {
        self.0.recv().await.map(|waiting| waiting.message)
    }

    /// The same, for a stream.
    pub(crate) fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        self.0.poll_recv(context).map(|waiting| waiting.map(|waiting| waiting.message))
    }
}

/// The client does not read, or is gone.
#[derive(Debug, thiserror::Error)]
#[error("the client does not read")]
pub(crate) struct NotRead;

impl Streams {
    pub(crate) fn new() -> Self {
        Self {
            requests: HashMap::new(),
            last_id: 0,
            standalone: None,
            server_requests: HashMap::new(),
            used: Instant::now(),
            is_used: false,
        }
    }

    /// The standalone stream, if the client still reads it.
    pub(crate) fn standalone(&self) -> Option<&StreamSender> {
        self.standalone.as_ref().filter(|sender| !sender.queue.is_closed())
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
    fn stream_of(&self, message: &impl GetExtensions) -> Option<&StreamSender> {
        let of = match message.extensions().get::<OriginatingRequestId>() {
            Some(OriginatingRequestId(RequestId::Number(number))) => self.requests.get(number),
            _ => None,
        };
        of.map(|stream| &stream.sender).or_else(|| self.standalone())
    }

    /// Queues a message on its stream. Answers get the client's id. Notifications are dropped if
    /// their stream is full, or has too many bytes of them.
    ///
    /// # Errors
    ///
    /// If another message cannot be queued.
    pub(crate) fn route(&mut self, mut message: ServerJsonRpcMessage) -> Result<(), NotRead> {
        match &mut message {
            JsonRpcMessage::Response(response) => {
                let Some(stream) = self.remove(&response.id) else { return Ok(()) };
                self.cancel_prompts(&stream.sender);
                response.id = stream.client_id;
                push(&stream.sender, message, None, 0)
            }
            JsonRpcMessage::Error(error) => {
                let Some(stream) = error.id.as_ref().and_then(|id| self.remove(id)) else { return Ok(()) };
                self.cancel_prompts(&stream.sender);
                error.id = Some(stream.client_id);
                unserved::explain(&mut error.error);
                push(&stream.sender, message, None, 0)
            }
            JsonRpcMessage::Request(request) => {
                let sender = self.stream_of(&request.request).cloned().ok_or(NotRead)?;
                self.server_requests.retain(|_, sender| !sender.queue.is_closed());
                let id = request.id.clone();
                push(&sender, message, None, KEPT_FOR_ANSWER)?;
                self.server_requests.insert(id, sender);
                Ok(())
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
                        id.and_then(|id| self.server_requests.remove(id))
                    }
                    other => self.stream_of(other).cloned(),
                };
                // Notifications are best effort: they are dropped when the queue is full.
                if let Some(sender) = sender
                    && let Some(held) = sender.bytes.hold(bytes_of(&message))
                {
                    let _dropped = push(&sender, message, Some(held), KEPT_FOR_PROMPTS);
                }
                Ok(())
            }
        }
    }

    /// Cancels the open prompts of a stream that is about to end, because they belong to its call.
    fn cancel_prompts(&mut self, sender: &StreamSender) {
        self.server_requests.retain(|id, asked_in| {
            let is_kept = !asked_in.queue.same_channel(&sender.queue);
            if !is_kept {
                let params = CancelledNotificationParam::new(Some(id.clone()), None);
                let notification =
                    ServerNotification::CancelledNotification(CancelledNotification::new(params));
                let message = JsonRpcMessage::notification(notification);
                let _dropped = push(sender, message, None, KEPT_FOR_ANSWER);
            }
            is_kept
        });
    }

    fn remove(&mut self, id: &RequestId) -> Option<RequestStream> {
        let RequestId::Number(number) = id else { return None };
        self.used = Instant::now();
        self.requests.remove(number)
    }
}

/// Queues a message at once, if at least `left` slots stay free.
fn push(
    sender: &StreamSender,
    message: ServerJsonRpcMessage,
    bytes: Option<HeldBytes>,
    left: usize,
) -> Result<(), NotRead> {
    if sender.queue.capacity() <= left {
        return Err(NotRead);
    }
    let waiting = WaitingMessage { message: ServerSseMessage::from_message(message), _bytes: bytes };
    sender.queue.try_send(waiting).map_err(|_full| NotRead)
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
