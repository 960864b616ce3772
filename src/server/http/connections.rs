//! The open connections, their phases, and the eviction of one for a new one.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Error;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio_util::sync::CancellationToken;

use super::accepted::AcceptedToken;
use super::shares::{
    Eviction, EvictionCandidate, Holder, PeerKey, TenantKey, select_for_eviction, with_most,
};
use super::socket::SocketActivity;
use crate::server::metrics;

/// How long a request may be incomplete before its connection may be evicted. Only large bodies
/// over slow networks take longer, and they are evicted only if all connections are in use.
const MIN_REQUEST_TIME: Duration = Duration::from_secs(5);

/// Maximum bytes of answers that clients have not read, of all connections together. Most answers have less than
/// 100 kB; one with images can have 20 MB.
const MAX_UNREAD_BYTES: usize = 256 << 20;

/// Bytes of a part of an answer from which on that is checked. Smaller parts stay within hyper's buffer of each
/// connection.
const LARGE_PART: usize = 64 << 10;

#[cfg(test)]
thread_local! {
    /// Bytes of the largest answer of which a connection was told on this thread.
    pub(super) static MADE: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// All open connections.
pub(crate) struct Connections {
    max: usize,
    /// The tenant of a connection on which no request has been accepted.
    unknown: TenantKey,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    by_number: HashMap<u64, Arc<Connection>>,
    last_number: u64,
}

/// One connection, as long as it is open.
pub(crate) struct Connection {
    peer: PeerKey,
    state: Mutex<ConnectionUse>,
    pub(crate) activity: SocketActivity,
    /// Cancelled when the connection has to end: for a new connection, or because the token of its request was revoked.
    evicted: CancellationToken,
    /// Whether nothing more may be written then, because too much waits to be read.
    is_cut: AtomicBool,
    /// Sends the permit to the new connection.
    successor: Mutex<Option<oneshot::Sender<OwnedSemaphorePermit>>>,
    all: Weak<Connections>,
}

struct ConnectionUse {
    phase: Phase,
    since: Instant,
    /// The tenant of the last accepted request. A proxy may send requests of several tenants on one connection.
    tenant: TenantKey,
    /// The token of the request in progress, if clients must send one.
    token: Option<Arc<AcceptedToken>>,
    /// Whether any request on it has passed authentication.
    is_admitted: bool,
    /// Whether any request on it was answered. The end of the answer may not have been written yet.
    has_answered: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No request is in progress, or the head of the next one is incomplete.
    Head,
    /// The head has been read, and the body is incomplete.
    Request,
    /// A listening stream (GET) is open.
    Listening,
    /// A request is being handled, or its answer is being written.
    Answering,
}

/// What an evicted connection may still write.
pub(crate) enum Unwritten {
    Nothing,
    /// The end of an answer that was complete before the eviction.
    EndOfAnswer,
}

/// A connection that is counted until this is dropped.
pub(crate) struct OpenConnection {
    pub(crate) connection: Arc<Connection>,
    connections: Arc<Connections>,
    number: u64,
    /// `None` only while this is dropped.
    permit: Option<OwnedSemaphorePermit>,
}

impl Connections {
    /// Starts with no connections; there are never more than `max`. `has_tenants` says whether tenants have shares of
    /// them.
    pub(crate) fn new(max: usize, has_tenants: bool) -> Arc<Self> {
        let unknown = if has_tenants { TenantKey::Unknown } else { TenantKey::Only };
        Arc::new(Self { max, unknown, open: Mutex::default() })
    }

    /// The number of open connections.
    pub(crate) fn count(&self) -> usize {
        self.open.lock().by_number.len()
    }

    /// Counts a new connection.
    pub(crate) fn open(self: &Arc<Self>, peer: PeerKey, permit: OwnedSemaphorePermit) -> OpenConnection {
        let connection = Arc::new(Connection {
            peer,
            activity: SocketActivity::default(),
            state: Mutex::new(ConnectionUse {
                phase: Phase::Head,
                since: Instant::now(),
                tenant: self.unknown,
                token: None,
                is_admitted: false,
                has_answered: false,
            }),
            evicted: CancellationToken::new(),
            is_cut: AtomicBool::new(false),
            successor: Mutex::default(),
            all: Arc::downgrade(self),
        });
        let mut open = self.open.lock();
        open.last_number += 1;
        let number = open.last_number;
        open.by_number.insert(number, Arc::clone(&connection));
        OpenConnection { connection, connections: Arc::clone(self), number, permit: Some(permit) }
    }

    /// Evicts a connection for a new one of `peer`, if one may be evicted. When the evicted connection has ended, the
    /// receiver gets its permit directly: if the permit went back to the semaphore, another connection could take it.
    pub(crate) fn make_room(&self, peer: PeerKey) -> Option<oneshot::Receiver<OwnedSemaphorePermit>> {
        let open = self.open.lock();
        let staying = open.by_number.values().filter(|connection| !connection.evicted.is_cancelled());
        let held = staying.map(Connection::held).collect();
        let newcomer = Holder { tenant: self.unknown, peer };
        let connection = select_for_eviction(held, newcomer, self.max)?;
        let (sender, permit) = oneshot::channel();
        // Set before the connection is removed from the list, which takes the same lock. So the
        // connection finds its successor when it ends.
        *connection.successor.lock() = Some(sender);
        connection.evicted.cancel();
        Some(permit)
    }

    /// Ends connections until what the clients of the others have not read has at most `max` bytes, or one is left. See
    /// [`next_to_cut`].
    fn bound_unread(&self, max: usize) {
        let (open, now) = (self.open.lock(), Instant::now());
        let staying = open.by_number.values().filter(|connection| !connection.evicted.is_cancelled());
        let mut unread: Vec<UnreadAnswer> = staying
            .map(|connection| connection.unread_answer(now))
            .filter(|answer| answer.bytes > 0)
            .collect();
        let mut bytes: usize = unread.iter().map(|answer| answer.bytes).sum();
        while bytes > max && unread.len() > 1 {
            let UnreadAnswer { connection, bytes: less, .. } = unread.swap_remove(next_to_cut(&unread));
            bytes = bytes.saturating_sub(less);
            connection.is_cut.store(true, Ordering::Relaxed);
            connection.evicted.cancel();
            metrics::count_evicted("connection");
        }
    }

    /// Ends the connections with a request in progress that was sent with this token.
    pub(crate) fn end_of(&self, token: &Arc<AcceptedToken>) {
        let open = self.open.lock();
        for connection in open.by_number.values().filter(|connection| connection.has_token(token)) {
            connection.evicted.cancel();
        }
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.open.lock().by_number.remove(&self.number);
        let successor = self.connection.successor.lock().take();
        if let Some((successor, permit)) = successor.zip(self.permit.take()) {
            // If the successor no longer waits, the permit goes back to the semaphore.
            let _given_back = successor.send(permit);
        }
    }
}

impl Connection {
    pub(crate) fn peer(&self) -> PeerKey {
        self.peer
    }

    /// Completes when the connection is evicted. Returns what the connection may still write.
    pub(crate) async fn evicted(&self) -> Unwritten {
        self.evicted.cancelled().await;
        let state = self.state.lock();
        if state.phase == Phase::Head && state.has_answered && !self.is_cut.load(Ordering::Relaxed) {
            Unwritten::EndOfAnswer
        } else {
            Unwritten::Nothing
        }
    }

    /// Records that the head of a request was read.
    pub(crate) fn begin_request(&self) {
        self.activity.begin_request();
        self.enter(Phase::Request);
    }

    /// Records that the request has passed authentication. `tenant` is its tenant, if there is one, and `token` the
    /// token that it was sent with.
    pub(crate) fn admit(&self, tenant: Option<TenantKey>, token: Option<Arc<AcceptedToken>>) {
        let mut state = self.state.lock();
        state.is_admitted = true;
        state.tenant = tenant.unwrap_or(state.tenant);
        state.token = token;
    }

    fn has_token(&self, token: &Arc<AcceptedToken>) -> bool {
        self.state.lock().token.as_ref().is_some_and(|own| Arc::ptr_eq(own, token))
    }

    /// Records that the request is complete and is being handled.
    pub(crate) fn begin_answer(&self) {
        self.activity.begin_answer();
        self.enter(Phase::Answering);
    }

    /// Whether a request that was read has no complete answer yet. A listening stream does not count, because it never
    /// completes.
    pub(crate) fn owes_answer(&self) -> bool {
        self.activity.has_next() || matches!(self.state.lock().phase, Phase::Request | Phase::Answering)
    }

    /// Records that the request opens a listening stream.
    pub(crate) fn begin_listening(&self) {
        self.enter(Phase::Listening);
    }

    /// Wraps an answer to detect its end and, for a stream of events, that its client is gone.
    pub(crate) fn watch(self: Arc<Self>, response: Response) -> Response {
        let kind = response.headers().get(CONTENT_TYPE);
        let may_probe = kind.is_some_and(|kind| kind.as_bytes().starts_with(EVENT_STREAM));
        response.map(|body| Body::new(AnswerBody { body, may_probe, end: AnswerEnd(self) }))
    }

    /// Records that the answer to the request in progress is made, and has this many bytes. hyper has it only when its
    /// client has read what comes before it on the same stream.
    pub(crate) fn note_made(&self, bytes: usize) {
        let state = self.state.lock();
        // Otherwise the stream of the answer has ended, and nobody gets it. A client can make a request that is no
        // subscription look like one.
        if matches!(state.phase, Phase::Answering | Phase::Listening) {
            #[cfg(test)]
            MADE.set(MADE.get().max(bytes));
            self.activity.note_made(bytes);
            drop(state);
            self.note_large(bytes);
        }
    }

    /// Records that hyper was given a part of an answer.
    fn note_given(&self, bytes: usize) {
        self.activity.note_given(bytes);
        self.note_large(bytes);
    }

    /// Checks what all clients have not read, after this many more bytes.
    fn note_large(&self, bytes: usize) {
        if bytes >= LARGE_PART
            && let Some(all) = self.all.upgrade()
        {
            all.bound_unread(MAX_UNREAD_BYTES);
        }
    }

    fn unread_answer(self: &Arc<Self>, now: Instant) -> UnreadAnswer {
        let holder = Holder { tenant: self.state.lock().tenant, peer: self.peer };
        let pace = &self.activity.pace;
        // A client for whom no data has waited yet may be quick.
        let speed = pace.bytes_per_second(now).unwrap_or(u64::MAX);
        let (bytes, is_slow) = (self.activity.unread(), pace.is_slow(now));
        UnreadAnswer { connection: Arc::clone(self), holder, bytes, speed, is_slow }
    }

    fn enter(&self, phase: Phase) {
        let mut state = self.state.lock();
        state.phase = phase;
        state.since = Instant::now();
        // Under the lock, so that an answer that is made at the same time is counted before, or not at all.
        self.activity.note_made(0);
    }

    fn held(self: &Arc<Self>) -> EvictionCandidate<Arc<Self>> {
        let state = self.state.lock();
        let eviction = match state.phase {
            Phase::Head if !state.is_admitted => Eviction::Allowed(0),
            Phase::Head => Eviction::Allowed(1),
            Phase::Request if state.since.elapsed() >= MIN_REQUEST_TIME => Eviction::Allowed(2),
            Phase::Request => Eviction::OverShare(3),
            Phase::Listening => Eviction::OverShare(4),
            Phase::Answering if self.activity.pace.is_slow(Instant::now()) => Eviction::Allowed(3),
            Phase::Answering => Eviction::Never,
        };
        let holder = Holder { tenant: state.tenant, peer: self.peer };
        EvictionCandidate { key: Arc::clone(self), holder, eviction, since: state.since }
    }
}

/// What the client of a connection has not read.
struct UnreadAnswer {
    connection: Arc<Connection>,
    holder: Holder,
    bytes: usize,
    /// The bytes that the client reads in a second.
    speed: u64,
    /// Whether the client has read so slowly for so long that its connection may be evicted anyway.
    is_slow: bool,
}

/// The position of the connection that ends next: of the tenant that has most, and of its peer that has most, the one
/// whose client reads slowest. As long as there are slow clients, only their connections count: clients that read
/// nothing, on many connections of different peers, do not end those of a client that reads a long answer.
fn next_to_cut(unread: &[UnreadAnswer]) -> usize {
    let has_slow = unread.iter().any(|answer| answer.is_slow);
    let mut candidates: Vec<(usize, &UnreadAnswer)> =
        unread.iter().enumerate().filter(|(_, answer)| answer.is_slow || !has_slow).collect();
    let tenant = with_most(candidates.iter().map(|(_, answer)| (answer.holder.tenant, answer.bytes)));
    candidates.retain(|(_, answer)| Some(answer.holder.tenant) == tenant);
    let peer = with_most(candidates.iter().map(|(_, answer)| (answer.holder.peer, answer.bytes)));
    candidates.retain(|(_, answer)| Some(answer.holder.peer) == peer);
    candidates.into_iter().min_by_key(|(_, answer)| answer.speed).map_or(0, |(position, _)| position)
}

/// Records the end of an answer when it is dropped: hyper has consumed all of it, or the client is
/// gone.
struct AnswerEnd(Arc<Connection>);

impl Drop for AnswerEnd {
    fn drop(&mut self) {
        {
            let mut state = self.0.state.lock();
            state.has_answered = true;
            state.token = None;
        }
        self.0.enter(Phase::Head);
    }
}

/// An answer's body with a guard for its end. When the client has closed its sending side, a stream of events gets one
/// comment, which clients ignore: a client that is gone answers with a reset.
struct AnswerBody {
    body: Body,
    may_probe: bool,
    end: AnswerEnd,
}

const EVENT_STREAM: &[u8] = b"text/event-stream";
const COMMENT: Bytes = Bytes::from_static(b":\n\n");

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if frame.is_pending() && self.may_probe && self.end.0.activity.is_half_closed() {
            self.may_probe = false;
            return Poll::Ready(Some(Ok(Frame::data(COMMENT))));
        }
        if let Poll::Ready(Some(Ok(part))) = &frame
            && let Some(data) = part.data_ref()
        {
            self.end.0.note_given(data.len());
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
