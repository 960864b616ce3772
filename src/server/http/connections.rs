//! The open connections: what each of them is doing, and which one makes room for another.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Error;
use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::shares::{Held, Peer, Standing, displaced};

/// How long a request may be on its way before its connection makes room for others. An honest one comes in one piece,
/// but for large bodies over slow lines, and those have this much time even then.
const MIN_REQUEST_TIME: Duration = Duration::from_secs(5);

/// All open connections.
pub(super) struct Connections {
    most: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    by_number: HashMap<u64, Arc<Connection>>,
    last_number: u64,
}

/// One connection, as long as it is open.
pub(super) struct Connection {
    peer: Peer,
    state: Mutex<State>,
    /// Another connection takes its place.
    displaced: CancellationToken,
}

struct State {
    phase: Phase,
    since: Instant,
    /// Whether a request of it was allowed.
    is_admitted: bool,
    /// Whether a request of it was answered, so that there may be something to write yet.
    has_answered: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// There is no request, or its head is not whole.
    Head,
    /// The rest of a request is on its way, or a short answer that nobody waited for.
    Request,
    /// A client listens to what comes beside its requests.
    Listening,
    /// A request is being handled, or its answer is written.
    Answering,
}

/// A connection that is counted until this is dropped.
pub(super) struct OpenConnection {
    pub(super) connection: Arc<Connection>,
    connections: Arc<Connections>,
    number: u64,
    /// Given back after the connection is no longer listed.
    _permit: OwnedSemaphorePermit,
}

impl Connections {
    /// None yet, and never more than `most`.
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, open: Mutex::default() })
    }

    /// How many are open.
    pub(super) fn count(&self) -> usize {
        self.open.lock().by_number.len()
    }

    /// Counts a new connection.
    pub(super) fn open(self: &Arc<Self>, peer: Peer, permit: OwnedSemaphorePermit) -> OpenConnection {
        let connection = Arc::new(Connection {
            peer,
            state: Mutex::new(State {
                phase: Phase::Head,
                since: Instant::now(),
                is_admitted: false,
                has_answered: false,
            }),
            displaced: CancellationToken::new(),
        });
        let mut open = self.open.lock();
        open.last_number += 1;
        let number = open.last_number;
        open.by_number.insert(number, Arc::clone(&connection));
        OpenConnection { connection, connections: Arc::clone(self), number, _permit: permit }
    }

    /// Ends a connection so that `newcomer` can have one, if there is one that makes room. It is over soon after.
    pub(super) fn make_room(&self, newcomer: Peer) -> bool {
        let open = self.open.lock();
        let staying = open.by_number.values().filter(|connection| !connection.displaced.is_cancelled());
        let held = staying.map(Connection::held).collect();
        let Some(connection) = displaced(held, newcomer, self.most) else { return false };
        connection.displaced.cancel();
        true
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.connections.open.lock().by_number.remove(&self.number);
    }
}

impl Connection {
    pub(super) fn peer(&self) -> Peer {
        self.peer
    }

    /// Completes when the connection has to end for another one. Returns whether it may have something to write yet.
    pub(super) async fn displaced(&self) -> bool {
        self.displaced.cancelled().await;
        let state = self.state.lock();
        state.phase == Phase::Head && state.has_answered
    }

    /// The head of a request has come.
    pub(super) fn begin_request(&self) {
        self.enter(Phase::Request);
    }

    /// The request may ask.
    pub(super) fn admit(&self) {
        self.state.lock().is_admitted = true;
    }

    /// The request has come and is handled.
    pub(super) fn begin_answer(&self) {
        self.enter(Phase::Answering);
    }

    /// The client listens.
    pub(super) fn begin_listening(&self) {
        self.enter(Phase::Listening);
    }

    /// Wraps an answer so that its end is noticed.
    pub(super) fn watch(self: Arc<Self>, response: Response) -> Response {
        response.map(|body| Body::new(AnswerBody { body, _end: AnswerEnd(self) }))
    }

    fn enter(&self, phase: Phase) {
        let mut state = self.state.lock();
        state.phase = phase;
        state.since = Instant::now();
    }

    fn held(self: &Arc<Self>) -> Held<Arc<Self>> {
        let state = self.state.lock();
        let standing = match state.phase {
            Phase::Head if !state.is_admitted => Standing::Yields(0),
            Phase::Head => Standing::Yields(1),
            Phase::Request if state.since.elapsed() >= MIN_REQUEST_TIME => Standing::Yields(2),
            Phase::Request => Standing::YieldsShare(3),
            Phase::Listening => Standing::YieldsShare(4),
            Phase::Answering => Standing::Stays,
        };
        Held { key: Arc::clone(self), peer: self.peer, standing, since: state.since }
    }
}

/// The end of an answer, as far as it is known here: all of it has been handed to the connection, or nobody wants it.
struct AnswerEnd(Arc<Connection>);

impl Drop for AnswerEnd {
    fn drop(&mut self) {
        self.0.state.lock().has_answered = true;
        self.0.enter(Phase::Head);
    }
}

/// An answer's body, the same in every respect.
struct AnswerBody {
    body: Body,
    _end: AnswerEnd,
}

impl HttpBody for AnswerBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
