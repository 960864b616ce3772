//! The server's end of the wire: one JSON-RPC message a line.
//!
//! rmcp's own line transport says nothing to a line that is too long, not JSON or of the wrong form, and it tells
//! requests apart by the client's ids, so that two with one id lose an answer. Here every request that can be told
//! apart gets an answer, rmcp sees ids of ours, and answers carry the client's as it wrote them.
//!
//! rmcp also starts a task for every request that it is given, however many there are. Here the requests in flight are
//! bounded: beyond the bound lines go to a [look-ahead](backpressure::LookAhead), from which only cancellations and
//! answers to our own requests are handled at once, and when that is full too, nothing more is read.

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

/// The longest id that is echoed, in bytes of JSON.
const MAX_ID: usize = 256;

/// One client's pipes. Lives as long as the connection.
pub(super) struct ClientLines<R> {
    lines: LineReader<R>,
    outgoing: Option<LineQueue>,
    /// The requests that rmcp has and that have not been answered, by ids of ours.
    requests: HashMap<i64, Request>,
    last_id: i64,
    in_flight: InFlight,
    /// Lines that came while no more requests may be in flight.
    look_ahead: LookAhead,
    /// The client has closed its end. What is in the look-ahead is still handled.
    is_at_end: bool,
    /// Since when the client has read nothing though nothing more is taken from it, and the write that was its last.
    stalled: Option<(Instant, usize)>,
    max_stall: Duration,
    /// Messages for rmcp beyond the one that a line is.
    ready: VecDeque<ClientJsonRpcMessage>,
    /// The client is gone, or must be.
    gone: CancellationToken,
}

/// A request that has not been answered.
struct Request {
    /// The client's id, as it wrote it.
    id: Box<RawValue>,
    /// rmcp has another one, with the request, until its handler is done: a request that was cancelled counts for as
    /// long as that takes.
    _slot: Arc<Slot>,
}

/// The top level of an incoming message. What is inside is read when it is known what it must be.
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

/// A request or notification as rmcp's types read it.
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
    /// A client's pipes, and the task that writes to `writer`, which the caller must run and whose end it must tell
    /// through `gone`. `gone` is cancelled when the client has closed its end or breaks the rules too badly.
    pub(super) fn new<W: AsyncWrite + Send + Unpin + 'static>(
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

    /// Handles a line, or parks it behind the requests in flight.
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

    /// Whether a message of that many bytes may be handled now: there is a slot for it, and the client has read enough
    /// of the earlier answers.
    fn may_handle(&self, bytes: usize) -> bool {
        let unread = self.outgoing.as_ref().map_or(0, LineQueue::unwritten_bytes);
        self.in_flight.has_room(bytes) && unread < MAX_UNREAD_BYTES
    }

    /// Handles the first line of the look-ahead if it may be. Returns whether it was.
    fn unpark(&mut self) -> bool {
        let Some(bytes) = self.look_ahead.first_bytes() else { return false };
        // At the end of the input no more will come, and a client that waits for answers must not wait in vain.
        if !self.is_at_end && !self.may_handle(bytes) {
            return false;
        }
        let parked = self.look_ahead.pop();
        if let Some(parked) = &parked {
            self.read_line(trimmed(&parked.line));
        }
        parked.is_some()
    }

    /// When the client has to be given up: the look-ahead is full, and the client reads none of the answers that wait
    /// for it. The end of its input would not be seen.
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
                // An answer to a request of ours. One that nobody waits for ends in rmcp.
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

    /// Deals with a message that is too large to be parsed.
    fn refuse_large(&mut self, line: &[u8], problem: &str) {
        match serde_json::from_slice::<Envelope<'_>>(line) {
            Ok(Envelope { method: Some(_), id: None, .. }) => {}
            Ok(Envelope { method: None, id: Some(id), result, error, .. })
                if result.is_some() || error.is_some() =>
            {
                // An answer to a request of ours is not answered, but whoever waits for it need not go on waiting.
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
        // What cannot be read, and what nobody knows, is nothing that anybody waits for.
        if let Ok(notification) = read_call::<ClientNotification>(method, params) {
            self.ready.push_back(JsonRpcMessage::notification(notification));
        }
    }

    /// Cancels the requests of that id. There is no answer to them any more. Unknown ids are of requests that have been
    /// answered.
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

    /// Answers a message that never gets as far as rmcp.
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
        // A request that was cancelled gets no answer.
        let Some(request) = self.requests.remove(id) else { return Ok(()) };
        let id = Some(&*request.id);
        let pushed = match message {
            JsonRpcMessage::Response(response) => self.push_answer(id, Some(&response.result), None),
            JsonRpcMessage::Error(error) => self.push_answer::<()>(id, None, Some(&error.error)),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => Ok(()),
        };
        if pushed.is_err() {
            // An answer that cannot be given must not be waited for: with so much unread the client is stuck.
            self.gone.cancel();
        }
        pushed
    }
}

/// Whether a line may overtake those that are parked.
enum Order {
    /// It is not answered, and may be what requests in flight wait for.
    AtOnce,
    /// It is a request, with its id if that can be one, or has to be refused.
    InTurn { id: Option<Box<str>> },
}

/// Looks at no more of a line than is needed to know whether it may overtake others.
fn order(line: &[u8]) -> Order {
    let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(line) else {
        // An empty line is nothing to answer.
        return if line.is_empty() { Order::AtOnce } else { Order::InTurn { id: None } };
    };
    match (&envelope.method, envelope.id) {
        (Some(_), None) => Order::AtOnce,
        (None, _) if envelope.result.is_some() || envelope.error.is_some() => Order::AtOnce,
        (_, id) => Order::InTurn { id: id.filter(|id| is_id(id)).map(|id| id.get().into()) },
    }
}

/// Whether an id may be one, and is short enough to be echoed as it came.
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

    /// Queues at once, in the order of the calls.
    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        ready(self.push(&message))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            // Reading never waits while a client floods. Without this no request would be handled meanwhile: handlers
            // are tasks beside the one that this runs in.
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
        // Ends the writing task once it has written what waits.
        self.outgoing = None;
        Ok(())
    }
}

#[cfg(any(test, fuzzing))]
#[path = "../../fuzz/entries/server_lines.rs"]
pub(crate) mod fuzzing;
#[cfg(test)]
mod tests;
