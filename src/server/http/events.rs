//! The events of one stream: those that its client has not read, and those that it may ask for again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::model::ServerJsonRpcMessage;
use rmcp::transport::streamable_http_server::session::ServerSseMessage;

use super::accepted::AcceptedToken;
use super::kept::KeptEvents;
use super::shares::Holder;
use crate::server::answer_size::AnswerSize;
use crate::server::json_size::measure;
use crate::server::waiting_bytes::{HeldBytes, WaitingBytes};

/// Maximum number of messages that wait for the client to read a stream. Further notifications are
/// dropped, as over stdio. Of a stream that can be resumed, as many are kept together with those that were read.
pub(crate) const MAX_WAITING: usize = 256;

/// Slots of a stream's queue that notifications leave free for approval prompts, which must not be
/// lost.
pub(super) const KEPT_FOR_PROMPTS: usize = 8;

/// Slot that all other messages leave free for the answer.
pub(super) const KEPT_FOR_ANSWER: usize = 1;

/// Maximum bytes of the events of one stream that are kept after a connection has taken them, and from which on nothing
/// but the answer is added while it has no connection. That is 200 of the longest printed lines.
const MAX_KEPT_BYTES: usize = 1 << 20;

/// Bytes of them that notifications leave free for prompts.
const BYTES_FOR_PROMPTS: usize = 64 << 10;

/// How long a client waits before it resumes a stream. A proxy that has cut one is there again at once; one that is
/// being replaced needs a moment, and clients try only a few times.
const RETRY: Duration = Duration::from_secs(1);

/// Bytes of memory that an event takes beside its message, and that each piece of a message's text stands for: a number
/// in a list is two pieces, and a value of 72 bytes.
const EVENT_BYTES: usize = 512;
const PIECE_BYTES: usize = 32;

/// The events of one stream. Lives as long as they can be sent.
pub(crate) struct StreamEvents {
    /// `None` if the stream cannot be resumed: its events have no ids, and are gone when a connection has taken them.
    resumption: Option<Resumption>,
    /// Bounds the notifications that wait.
    notifications: WaitingBytes,
    queue: Mutex<EventQueue>,
}

/// What a stream that can be resumed has: the stream of a request.
pub(crate) struct Resumption {
    /// The request's number, which no other request of the session has. The ids of the events begin with it.
    pub(crate) request: i64,
    /// The token that the request was sent with, if clients must send one.
    pub(crate) token: Option<Arc<AcceptedToken>>,
    /// The holder of the session.
    pub(crate) holder: Holder,
    pub(crate) kept: Arc<KeptEvents>,
}

/// The sending side of a stream, which ends when this is dropped.
pub(crate) struct StreamSender(Arc<StreamEvents>);

/// The reading side of a stream for one connection. A newer connection replaces it.
pub(crate) struct StreamReader {
    events: Arc<StreamEvents>,
    connection: u64,
}

/// The client does not read, or is gone.
#[derive(Debug, thiserror::Error)]
#[error("the client does not read")]
pub(crate) struct NotRead;

/// Why a stream cannot be resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotResumed {
    /// The client that asks never got this event, or what came after it is no longer kept.
    #[error("nothing is kept after this event")]
    NotKept,
    /// The stream has ended with this event.
    #[error("nothing comes after this event")]
    Complete,
}

/// What a message is, which decides how many slots it leaves free.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageKind {
    Notification,
    /// An approval prompt or another request of the server, or the end of one.
    Prompt,
    /// The last message of the stream.
    Answer,
}

struct StreamEvent {
    number: u64,
    message: ServerSseMessage,
    bytes: usize,
    /// Those of a notification, until a connection has taken it. The connection counts those of an answer, and there
    /// are few prompts.
    held: Option<HeldBytes>,
}

#[derive(Default)]
struct EventQueue {
    /// The oldest first. Those that a connection has taken come before those that wait.
    events: VecDeque<StreamEvent>,
    taken: usize,
    taken_bytes: usize,
    waiting_bytes: usize,
    /// The number of the next event.
    next: u64,
    /// The bytes of it that [`KeptEvents`] counts.
    counted: usize,
    /// Whether any event was taken, so that the client can know an id.
    has_begun: bool,
    /// Whether no more events come.
    has_ended: bool,
    /// The connection that reads. `None` while there is none.
    reader: Option<u64>,
    /// The first event of a connection that resumes the stream, without a message: it has the id that the client has
    /// named. Clients resume from the last id of their connection, and there may be none before it is cut.
    priming: Option<ServerSseMessage>,
    /// The number of connections that have read it.
    connections: u64,
    /// Is told how much waits for a connection that resumes the stream. The connection of the request is told by the
    /// request's handler.
    size: Option<AnswerSize>,
    waker: Option<Waker>,
}

impl StreamEvents {
    /// A stream that ends with its connection.
    pub(crate) fn plain() -> (StreamSender, StreamReader) {
        Self::open(None)
    }

    /// A stream that can be resumed. Its first event has no message: it tells the client an id to resume from.
    pub(crate) fn resumable(resumption: Resumption) -> (StreamSender, StreamReader) {
        let kept = Arc::clone(&resumption.kept);
        let (sender, reader) = Self::open(Some(resumption));
        kept.add(&sender.0);
        (sender, reader)
    }

    fn open(resumption: Option<Resumption>) -> (StreamSender, StreamReader) {
        let mut queue = EventQueue { reader: Some(1), connections: 1, ..EventQueue::default() };
        if let Some(Resumption { request, .. }) = &resumption {
            queue.append(ServerSseMessage::priming(event_id(*request, 0), RETRY), EVENT_BYTES, None);
        }
        let notifications = WaitingBytes::new();
        let events = Arc::new(Self { resumption, notifications, queue: Mutex::new(queue) });
        (StreamSender(Arc::clone(&events)), StreamReader { events, connection: 1 })
    }

    /// Adds a message at once, if there is space for it.
    ///
    /// # Errors
    ///
    /// If there is not, or nobody will read it.
    pub(crate) fn push(&self, message: ServerJsonRpcMessage, kind: MessageKind) -> Result<(), NotRead> {
        let is_notification = kind == MessageKind::Notification;
        let text_bytes =
            if self.is_resumable() || is_notification { measure(&message, PIECE_BYTES) } else { 0 };
        let bytes = text_bytes.saturating_add(EVENT_BYTES);
        let held = match is_notification {
            true => Some(self.notifications.hold(text_bytes).ok_or(NotRead)?),
            false => None,
        };
        let size = {
            let mut queue = self.queue.lock();
            if !queue.has_space(bytes, kind, self.is_resumable()) {
                return Err(NotRead);
            }
            let message = match &self.resumption {
                Some(Resumption { request, .. }) => {
                    ServerSseMessage::new(event_id(*request, queue.next), message)
                }
                None => ServerSseMessage::from_message(message),
            };
            queue.append(message, bytes, held);
            self.recount(&mut queue);
            let size = queue.size.clone().filter(|_| kind == MessageKind::Answer);
            size.map(|size| (size, queue.waiting_bytes))
        };
        if let Some((size, waiting)) = size {
            size.note(waiting);
        }
        self.bound_all();
        Ok(())
    }

    /// Whether nobody will read what is added.
    pub(crate) fn is_closed(&self) -> bool {
        let queue = self.queue.lock();
        queue.reader.is_none() && (queue.has_ended || !self.is_resumable())
    }

    /// Whether its events are kept.
    pub(crate) const fn is_resumable(&self) -> bool {
        self.resumption.is_some()
    }

    /// Whether a client that was cut off can ask for the rest: it knows an id of this stream.
    pub(crate) fn can_be_resumed(&self) -> bool {
        self.is_resumable() && self.queue.lock().has_begun
    }

    /// Lets a connection read what comes after event `after`, for a request with this token. An earlier connection then
    /// gets no more.
    ///
    /// # Errors
    ///
    /// If there is no such event, the stream has another token, or nothing comes or is kept after it.
    pub(crate) fn resume(
        self: &Arc<Self>,
        after: u64,
        token: Option<&Arc<AcceptedToken>>,
        size: Option<AnswerSize>,
    ) -> Result<StreamReader, NotResumed> {
        let Some(resumption) = &self.resumption else { return Err(NotResumed::NotKept) };
        if resumption.token.as_ref().map(Arc::as_ptr) != token.map(Arc::as_ptr) {
            return Err(NotResumed::NotKept);
        }
        let (connection, waiting) = {
            let mut queue = self.queue.lock();
            if after >= queue.next {
                return Err(NotResumed::NotKept);
            }
            if queue.has_ended && after + 1 == queue.next {
                return Err(NotResumed::Complete);
            }
            if queue.has_ended && queue.events.is_empty() {
                return Err(NotResumed::NotKept);
            }
            queue.rewind(after);
            queue.priming = Some(ServerSseMessage::priming(event_id(resumption.request, after), RETRY));
            queue.connections += 1;
            queue.reader = Some(queue.connections);
            queue.size.clone_from(&size);
            queue.wake();
            self.recount(&mut queue);
            (queue.connections, queue.waiting_bytes)
        };
        if let Some(size) = size {
            size.note(waiting);
        }
        Ok(StreamReader { events: Arc::clone(self), connection })
    }

    /// Drops what is kept for clients that may resume the stream.
    pub(super) fn forget(&self) {
        let mut queue = self.queue.lock();
        let forgotten = if queue.reader.is_some() { queue.taken } else { queue.events.len() };
        for _ in 0..forgotten {
            queue.drop_first();
        }
        queue.events.shrink_to_fit();
        self.recount(&mut queue);
    }

    /// What is kept for clients that may resume it: its holder, its bytes, and whether no connection has taken them.
    pub(super) fn kept(&self) -> (Holder, usize, bool) {
        let queue = self.queue.lock();
        let holder = self.resumption.as_ref().map(|resumption| resumption.holder).unwrap_or_default();
        (holder, queue.counted, queue.reader.is_none() && queue.waiting_bytes > 0)
    }

    /// Counts what was taken, and what waits while no connection reads it. What waits for a connection counts as what
    /// its client has not read.
    fn recount(&self, queue: &mut EventQueue) {
        let Some(Resumption { kept, .. }) = &self.resumption else { return };
        let waiting = if queue.reader.is_none() { queue.waiting_bytes } else { 0 };
        let counted = queue.taken_bytes + waiting;
        kept.count(queue.counted, counted);
        queue.counted = counted;
    }

    /// Must be called without the lock of the queue.
    fn bound_all(&self) {
        if let Some(Resumption { kept, .. }) = &self.resumption {
            kept.bound();
        }
    }
}

impl Drop for StreamEvents {
    fn drop(&mut self) {
        if let Some(Resumption { kept, .. }) = &self.resumption {
            kept.count(self.queue.get_mut().counted, 0);
        }
    }
}

impl StreamSender {
    pub(crate) const fn events(&self) -> &Arc<StreamEvents> {
        &self.0
    }
}

impl Drop for StreamSender {
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock();
        queue.has_ended = true;
        queue.wake();
    }
}

impl StreamReader {
    /// The next event; `None` when the stream has ended, or another connection reads it.
    pub(crate) fn poll_next(&self, context: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        let events = &self.events;
        let mut queue = events.queue.lock();
        if queue.reader != Some(self.connection) {
            return Poll::Ready(None);
        }
        if let Some(priming) = queue.priming.take() {
            return Poll::Ready(Some(priming));
        }
        let Some(message) = queue.take(events.is_resumable()) else {
            if queue.has_ended {
                return Poll::Ready(None);
            }
            if let Some(size) = &queue.size {
                // All that waited was taken. Its text has fewer bytes than were noted.
                size.note(0);
            }
            queue.waker = Some(context.waker().clone());
            return Poll::Pending;
        };
        events.recount(&mut queue);
        drop(queue);
        events.bound_all();
        Poll::Ready(Some(message))
    }

    /// Records that the connection is gone. Returns whether no newer one reads the stream.
    pub(crate) fn leave(&self) -> bool {
        {
            let mut queue = self.events.queue.lock();
            if queue.reader != Some(self.connection) {
                return false;
            }
            (queue.reader, queue.size, queue.waker) = (None, None, None);
            if !self.events.is_resumable() {
                // Nobody can read them, and a session keeps its standalone stream.
                (queue.events, queue.waiting_bytes) = (VecDeque::new(), 0);
            }
            self.events.recount(&mut queue);
        }
        self.events.bound_all();
        true
    }
}

impl EventQueue {
    fn has_space(&self, bytes: usize, kind: MessageKind, can_be_resumed: bool) -> bool {
        if self.has_ended || self.reader.is_none() && !can_be_resumed {
            return false;
        }
        let (left, max_bytes) = match kind {
            MessageKind::Notification => (KEPT_FOR_PROMPTS, MAX_KEPT_BYTES - BYTES_FOR_PROMPTS),
            MessageKind::Prompt => (KEPT_FOR_ANSWER, MAX_KEPT_BYTES),
            // There is one, and nothing comes after it.
            MessageKind::Answer => return true,
        };
        let is_kept = self.reader.is_some() || self.waiting_bytes + bytes <= max_bytes;
        is_kept && self.events.len() - self.taken + left < MAX_WAITING
    }

    fn append(&mut self, message: ServerSseMessage, bytes: usize, held: Option<HeldBytes>) {
        self.events.push_back(StreamEvent { number: self.next, message, bytes, held });
        self.next += 1;
        self.waiting_bytes += bytes;
        self.trim();
        self.wake();
    }

    /// The next event that waits. It is kept if the stream can be resumed.
    fn take(&mut self, can_be_resumed: bool) -> Option<ServerSseMessage> {
        if !can_be_resumed {
            let event = self.events.pop_front()?;
            self.waiting_bytes -= event.bytes;
            return Some(event.message);
        }
        let event = self.events.get_mut(self.taken)?;
        event.held = None;
        let message = event.message.clone();
        self.has_begun = true;
        self.taken += 1;
        self.taken_bytes += event.bytes;
        self.waiting_bytes -= event.bytes;
        self.trim();
        Some(message)
    }

    /// Drops the oldest events that were taken beyond the bounds. The last one stays, because it may be the answer.
    fn trim(&mut self) {
        while self.taken > 1 && (self.taken_bytes > MAX_KEPT_BYTES || self.events.len() > MAX_WAITING) {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        let Some(event) = self.events.pop_front() else { return };
        if self.taken > 0 {
            self.taken -= 1;
            self.taken_bytes -= event.bytes;
        } else {
            self.waiting_bytes -= event.bytes;
        }
    }

    /// Lets the events after `after` wait again.
    fn rewind(&mut self, after: u64) {
        self.taken = self.events.partition_point(|event| event.number <= after);
        self.taken_bytes = self.events.range(..self.taken).map(|event| event.bytes).sum();
        self.waiting_bytes = self.events.range(self.taken..).map(|event| event.bytes).sum();
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// The id of an event. No two events of a session have the same.
fn event_id(request: i64, number: u64) -> String {
    format!("{request}-{number}")
}

/// The numbers of a request and of an event of its stream, from the event's id.
pub(crate) fn parse_event_id(id: &str) -> Option<(i64, u64)> {
    let (request, number) = id.split_once('-')?;
    Some((request.parse().ok()?, number.parse().ok()?))
}

#[cfg(test)]
mod tests;
