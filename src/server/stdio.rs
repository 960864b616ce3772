//! The server's stdio transport: one JSON-RPC message per line.
//!
//! rmcp's own line transport does not answer a line that is too long, is not JSON or has the wrong
//! form. It also identifies requests by the client's ids, so of two requests with the same id one
//! gets no answer. Here every request with a readable id is answered, rmcp sees ids of this module,
//! and answers carry the client's id as it was written.
//!
//! rmcp also starts a task for every request that it receives, without a bound. Here the requests
//! in flight are bounded. Beyond the bound, lines go to a [look-ahead](backpressure::LookAhead),
//! from which only cancellations and answers to this server's requests are handled at once. When
//! the look-ahead is full too, nothing more is read.

mod backpressure;

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::future::{Future, pending, ready};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, ErrorData, GetExtensions as _,
    JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::coop::consume_budget;
use tokio::time::sleep_until;
use tokio_util::sync::CancellationToken;

use self::backpressure::{InFlight, LookAhead, MAX_STALL, MAX_UNREAD_BYTES, ParkedLine, Slot};
use super::incoming::{DetachedInput, detach};
use crate::lines::{IdScan, LineQueue, LineReader, MAX_LINE, MAX_SKIPPED_LINE, Piece, trimmed};

/// Maximum bytes of JSON of an id that is echoed.
const MAX_ID: usize = 256;

/// One client's stdio connection. Lives as long as the connection.
pub(crate) struct ClientLines<R> {
    lines: LineReader<R>,
    outgoing: Option<LineQueue>,
    /// The requests that were passed to rmcp and are not answered yet, by this module's ids.
    requests: HashMap<i64, Request>,
    last_id: i64,
    in_flight: InFlight,
    /// Lines that were read while no more requests may be in flight.
    look_ahead: LookAhead,
    /// The client has closed its end. Lines in the look-ahead are still handled.
    is_at_end: bool,
    /// Since when the client has read nothing while nothing is read from it, and the number of
    /// writes at that time.
    stalled: Option<(Instant, usize)>,
    max_stall: Duration,
    /// Further messages for rmcp, if a line results in more than one.
    ready: VecDeque<ClientJsonRpcMessage>,
    /// Cancelled when the client is gone or has to be disconnected.
    gone: CancellationToken,
}

/// A request that is not answered yet.
struct Request {
    /// The client's id as it was written.
    id: Box<RawValue>,
    /// rmcp holds another reference, with the request, until its handler has ended. So a cancelled
    /// request counts as in flight until then.
    _slot: Arc<Slot>,
}

/// The top level of an incoming message. Its parts are parsed when their type is known.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// A request or notification in the form that rmcp's types parse.
#[derive(Serialize)]
struct Call<'a> {
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawValue>,
}

/// The parameters of `notifications/cancelled`.
#[derive(Deserialize)]
struct Cancelled<'a> {
    #[serde(borrow, rename = "requestId")]
    request_id: &'a RawValue,
    reason: Option<String>,
}

#[derive(Serialize)]
struct Answer<'a, T> {
    jsonrpc: &'static str,
    id: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a T>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a ErrorData>,
}

impl<R: AsyncRead + Send + Unpin> ClientLines<R> {
    /// Makes a connection and the task that writes to `writer`. The caller must run the task, and
    /// must cancel `gone` when the task ends. The connection also cancels `gone` when the client
    /// has closed its end or violates the protocol too badly.
    pub(crate) fn new<W: AsyncWrite + Send + Unpin + 'static>(
        reader: R,
        writer: W,
        gone: CancellationToken,
    ) -> (Self, impl Future<Output = io::Result<()>> + Send + 'static) {
        let (outgoing, writing) = LineQueue::new(writer);
        let lines = Self {
            lines: LineReader::new(reader),
            outgoing: Some(outgoing),
            requests: HashMap::new(),
            last_id: 0,
            in_flight: InFlight::default(),
            look_ahead: LookAhead::default(),
            is_at_end: false,
            stalled: None,
            max_stall: MAX_STALL,
            ready: VecDeque::new(),
            gone,
        };
        (lines, writing)
    }

    /// Handles a line, or parks it until a request in flight ends.
    fn accept_line(&mut self, line: Vec<u8>) {
        let message = trimmed(&line);
        if self.look_ahead.is_empty() && self.may_handle(message.len()) {
            self.read_line(message);
        } else {
            match order(message) {
                Order::AtOnce => self.read_line(message),
                Order::InTurn { id } => return self.look_ahead.push(ParkedLine { line, id }),
            }
        }
        self.lines.reuse(line);
    }

    /// Whether a message of this many bytes may be handled now: there is a slot for it, and the
    /// client has read enough of the earlier answers.
    fn may_handle(&self, bytes: usize) -> bool {
        let unread = self.outgoing.as_ref().map_or(0, LineQueue::unwritten_bytes);
        self.in_flight.has_room(bytes) && unread < MAX_UNREAD_BYTES
    }

    /// Handles the first line of the look-ahead if that is allowed. Returns whether it was handled.
    fn unpark(&mut self) -> bool {
        let Some(bytes) = self.look_ahead.first_bytes() else { return false };
        // At the end of the input, no further cancellations or answers can come. The remaining
        // lines are handled without a bound, so that every request of a client that still waits is
        // answered.
        if !self.is_at_end && !self.may_handle(bytes) {
            return false;
        }
        let parked = self.look_ahead.pop();
        if let Some(parked) = &parked {
            self.read_line(trimmed(&parked.line));
        }
        parked.is_some()
    }

    /// When the client has to be disconnected: the look-ahead is full, and the client reads none of
    /// the answers that wait for it. In this state the end of its input would not be noticed.
    fn stalls_at(&mut self) -> Option<Instant> {
        let outgoing = self.outgoing.as_ref();
        let outgoing = outgoing.filter(|queue| self.look_ahead.is_full() && queue.unwritten_bytes() > 0);
        let Some(writes) = outgoing.map(LineQueue::writes) else {
            self.stalled = None;
            return None;
        };
        let (since, _) = *self
            .stalled
            .insert(self.stalled.filter(|&(_, last)| last == writes).unwrap_or((Instant::now(), writes)));
        Some(since + self.max_stall)
    }

    fn read_line(&mut self, line: &[u8]) {
        if line.is_empty() {
            return;
        }
        if line[0] == b'[' {
            return self.refuse(
                None,
                ErrorCode::INVALID_REQUEST,
                "batches are not part of the protocol; send one message a line",
            );
        }
        let bytes = line.len();
        let incoming = match detach(line) {
            Ok(incoming) => incoming,
            Err(problem) => return self.refuse_large(line, &problem.to_string()),
        };
        let line = &*incoming.message;
        let envelope = match serde_json::from_slice::<Envelope<'_>>(line) {
            Ok(envelope) => envelope,
            Err(error) if line[0] == b'{' => {
                let id = IdScan::of_line(line).and_then(|id| id.to_json());
                return self.refuse(
                    id.as_deref(),
                    ErrorCode::PARSE_ERROR,
                    &format!("the message cannot be read: {error}"),
                );
            }
            Err(_) => {
                return self.refuse(
                    None,
                    ErrorCode::PARSE_ERROR,
                    "expected one JSON-RPC message, an object, on each line",
                );
            }
        };
        match (&envelope.method, envelope.id) {
            (Some(method), Some(id)) => {
                self.read_request(method, id, envelope.params, incoming.input, bytes);
            }
            (Some(method), None) => self.read_notification(method, envelope.params),
            (None, _) if envelope.result.is_some() || envelope.error.is_some() => {
                // An answer to a request of this server. rmcp ignores one that nobody waits for.
                if let Ok(message) = serde_json::from_slice(line) {
                    self.ready.push_back(message);
                }
            }
            (None, id) => {
                let id = id.filter(|id| is_id(id));
                self.refuse(
                    id,
                    ErrorCode::INVALID_REQUEST,
                    "expected `method`: the message is neither a request nor an answer",
                );
            }
        }
    }

    /// Handles a message that is too large to be parsed.
    fn refuse_large(&mut self, line: &[u8], problem: &str) {
        match serde_json::from_slice::<Envelope<'_>>(line) {
            Ok(Envelope { method: Some(_), id: None, .. }) => {}
            Ok(Envelope { method: None, id: Some(id), result, error, .. })
                if result.is_some() || error.is_some() =>
            {
                // An answer to a request of this server is not answered, but the task that waits
                // for it gets an error.
                if let Some(Ok(id)) = Some(id).filter(|id| is_id(id)).map(|id| serde_json::from_str(id.get()))
                {
                    let error = ErrorData::new(ErrorCode::INVALID_REQUEST, problem.to_owned(), None);
                    self.ready.push_back(JsonRpcMessage::error(error, Some(id)));
                }
            }
            _ => {
                let id = IdScan::of_line(line).and_then(|id| id.to_json());
                self.refuse(id.as_deref(), ErrorCode::INVALID_REQUEST, problem);
            }
        }
    }

    fn read_request(
        &mut self,
        method: &str,
        id: &RawValue,
        params: Option<&RawValue>,
        input: Option<DetachedInput>,
        bytes: usize,
    ) {
        if !is_id(id) {
            return self.refuse(
                None,
                ErrorCode::INVALID_REQUEST,
                "expected `id` to be a string or a whole number",
            );
        }
        match read_call::<ClientRequest>(method, params) {
            Ok(mut request) => {
                if let Some(input) = input {
                    request.extensions_mut().insert(input);
                }
                self.last_id += 1;
                let slot = Arc::new(self.in_flight.enter(bytes));
                request.extensions_mut().insert(Arc::clone(&slot));
                self.requests.insert(self.last_id, Request { id: id.to_owned(), _slot: slot });
                self.ready.push_back(JsonRpcMessage::request(request, RequestId::Number(self.last_id)));
            }
            Err(error) => {
                self.refuse(
                    Some(id),
                    ErrorCode::INVALID_PARAMS,
                    &format!("the parameters cannot be read: {error}"),
                );
            }
        }
    }

    fn read_notification(&mut self, method: &str, params: Option<&RawValue>) {
        if method == "notifications/cancelled" {
            return self.cancel(params);
        }
        // Notifications that cannot be parsed or are unknown are ignored, because nobody waits for
        // an answer to them.
        if let Ok(notification) = read_call::<ClientNotification>(method, params) {
            self.ready.push_back(JsonRpcMessage::notification(notification));
        }
    }

    /// Cancels the requests with this id. They get no answer. An unknown id belongs to a request
    /// that was answered.
    fn cancel(&mut self, params: Option<&RawValue>) {
        let Some(cancelled) =
            params.and_then(|params| serde_json::from_str::<Cancelled<'_>>(params.get()).ok())
        else {
            return;
        };
        self.look_ahead.cancel(cancelled.request_id.get());
        let requests = self.requests.iter();
        let of_that_id = requests.filter(|(_, request)| request.id.get() == cancelled.request_id.get());
        let ids: Vec<i64> = of_that_id.map(|(&id, _)| id).collect();
        for id in ids {
            self.requests.remove(&id);
            let params = serde_json::json!({ "requestId": id, "reason": cancelled.reason });
            let call = serde_json::json!({ "method": "notifications/cancelled", "params": params });
            if let Ok(notification) = serde_json::from_value::<ClientNotification>(call) {
                self.ready.push_back(JsonRpcMessage::notification(notification));
            }
        }
    }

    /// Answers a message that is not passed to rmcp.
    fn refuse(&mut self, id: Option<&RawValue>, code: ErrorCode, problem: &str) {
        let error = ErrorData::new(code, problem.to_owned(), None);
        if self.push_answer::<()>(id, None, Some(&error)).is_err() {
            self.gone.cancel();
        }
    }

    fn push_answer<T: Serialize>(
        &self,
        id: Option<&RawValue>,
        result: Option<&T>,
        error: Option<&ErrorData>,
    ) -> io::Result<()> {
        let outgoing = self.outgoing.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let line = serde_json::to_vec(&Answer { jsonrpc: "2.0", id, result, error })?;
        outgoing.push(line, true)
    }

    fn push(&mut self, message: &ServerJsonRpcMessage) -> io::Result<()> {
        let id = match message {
            JsonRpcMessage::Response(response) => &response.id,
            JsonRpcMessage::Error(error) => match &error.id {
                Some(id) => id,
                None => return Ok(()),
            },
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {
                let outgoing = self.outgoing.as_ref().ok_or(io::ErrorKind::NotConnected)?;
                // Notifications are best effort: they are dropped when the queue is full.
                return outgoing.push(serde_json::to_vec(message)?, false);
            }
        };
        let RequestId::Number(id) = id else { return Ok(()) };
        // A cancelled request gets no answer.
        let Some(request) = self.requests.remove(id) else { return Ok(()) };
        let id = Some(&*request.id);
        let pushed = match message {
            JsonRpcMessage::Response(response) => self.push_answer(id, Some(&response.result), None),
            JsonRpcMessage::Error(error) => self.push_answer::<()>(id, None, Some(&error.error)),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => Ok(()),
        };
        if pushed.is_err() {
            // An answer that cannot be queued means that so much is unread that the client is
            // stuck. The connection is closed, so that the client does not wait for this answer.
            self.gone.cancel();
        }
        pushed
    }
}

/// Whether a line may overtake parked lines.
enum Order {
    /// It needs no answer, and requests in flight may wait for it.
    AtOnce,
    /// It is a request, with its id if the id is valid, or a line that has to be refused.
    InTurn { id: Option<Box<str>> },
}

/// Determines whether a line may overtake others. Parses no more of it than that needs.
fn order(line: &[u8]) -> Order {
    let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(line) else {
        // An empty line needs no answer.
        return if line.is_empty() { Order::AtOnce } else { Order::InTurn { id: None } };
    };
    match (&envelope.method, envelope.id) {
        (Some(_), None) => Order::AtOnce,
        (None, _) if envelope.result.is_some() || envelope.error.is_some() => Order::AtOnce,
        (_, id) => Order::InTurn { id: id.filter(|id| is_id(id)).map(|id| id.get().into()) },
    }
}

/// Whether an id is valid, and short enough to be echoed as it was written.
fn is_id(id: &RawValue) -> bool {
    let text = id.get();
    let is_whole = || text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    text.len() <= MAX_ID && (text.starts_with('"') || is_whole())
}

fn read_call<T: serde::de::DeserializeOwned>(
    method: &str,
    params: Option<&RawValue>,
) -> serde_json::Result<T> {
    let call = serde_json::to_string(&Call { method, params })?;
    serde_json::from_str(&call)
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleServer> for ClientLines<R> {
    type Error = io::Error;

    /// Queues the message at once, in the order of the calls.
    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        ready(self.push(&message))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            // Reading never waits while a client floods the server. Without this, no request would
            // be handled meanwhile: handlers are tasks that run beside this one.
            consume_budget().await;
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            if self.unpark() {
                continue;
            }
            if self.is_at_end {
                self.gone.cancel();
                return None;
            }
            let gone = self.gone.clone();
            let stalls_at = self.stalls_at();
            let Some(outgoing) = &self.outgoing else { return None };
            let room = async {
                tokio::select! {
                    () = self.in_flight.freed() => {}
                    () = outgoing.written() => {}
                }
            };
            let stalled = async {
                match stalls_at {
                    Some(at) => sleep_until(at.into()).await,
                    None => pending().await,
                }
            };
            let piece = tokio::select! {
                biased;
                () = gone.cancelled() => return None,
                () = room, if !self.look_ahead.is_empty() => continue,
                () = stalled => {
                    tracing::warn!("the client sends requests and reads no answers; the connection ends");
                    self.gone.cancel();
                    return None;
                }
                piece = self.lines.next(), if !self.look_ahead.is_full() => piece,
            };
            match piece {
                Ok(Some(Piece::Part)) => {}
                Ok(Some(Piece::Line(line))) => self.accept_line(line),
                Ok(Some(Piece::Long { id, told, bytes, ends })) => {
                    if id.is_some() || (ends && !told) {
                        let id = id.and_then(|id| id.to_json());
                        let problem = format!(
                            "the message is longer than {} MB, the most that is read",
                            MAX_LINE >> 20
                        );
                        self.refuse(id.as_deref(), ErrorCode::INVALID_REQUEST, &problem);
                    }
                    if bytes > MAX_SKIPPED_LINE {
                        tracing::warn!(bytes, "a line does not end");
                        self.gone.cancel();
                    }
                }
                Ok(None) => self.is_at_end = true,
                Err(error) => {
                    tracing::debug!(%error, "reading from the client failed");
                    self.gone.cancel();
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // Ends the writing task after it has written the queue.
        self.outgoing = None;
        Ok(())
    }
}

#[cfg(any(test, fuzzing))]
#[path = "../../fuzz/entries/server_lines.rs"]
pub(crate) mod fuzzing;
#[cfg(test)]
mod tests;
