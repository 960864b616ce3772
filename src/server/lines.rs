//! The server's end of the wire: one JSON-RPC message a line.
//!
//! rmcp's own line transport says nothing to a line that is too long, not JSON or of the wrong form, and it tells
//! requests apart by the client's ids, so that two with one id lose an answer. Here every request that can be told
//! apart gets an answer, rmcp sees ids of ours, and answers carry the client's as it wrote them.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::future::{Future, ready};
use std::io;

use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::lines::{IdScan, LONGEST_LINE, LONGEST_SKIPPED_LINE, LineQueue, LineReader, Piece, trimmed};

/// Errors in what the client writes whose answers wait for it to read them. One that goes on and on and never reads
/// is cut off.
const MOST_WAITING_ANSWERS: usize = 10_000;

/// The longest id that is echoed, in bytes of JSON.
const LONGEST_ID: usize = 256;

/// One client's pipes. Lives as long as the connection.
pub(super) struct ClientLines<R> {
    lines: LineReader<R>,
    outgoing: Option<LineQueue>,
    /// The client's ids of the requests that rmcp has, by ours.
    requests: HashMap<i64, Box<RawValue>>,
    last_id: i64,
    /// Messages for rmcp beyond the one that a line is.
    ready: VecDeque<ClientJsonRpcMessage>,
    /// The client is gone, or must be.
    gone: CancellationToken,
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
            ready: VecDeque::new(),
            gone,
        };
        (lines, writing)
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
            (Some(method), Some(id)) => self.read_request(method, id, envelope.params),
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

    fn read_request(&mut self, method: &str, id: &RawValue, params: Option<&RawValue>) {
        if !is_id(id) {
            return self.refuse(
                None,
                ErrorCode::INVALID_REQUEST,
                "expected `id` to be a string or a whole number",
            );
        }
        match read_call::<ClientRequest>(method, params) {
            Ok(request) => {
                self.last_id += 1;
                self.requests.insert(self.last_id, id.to_owned());
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
        let requests = self.requests.iter();
        let of_that_id = requests.filter(|(_, id)| id.get() == cancelled.request_id.get());
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
        let too_many =
            self.outgoing.as_ref().is_none_or(|queue| queue.waiting_answers() >= MOST_WAITING_ANSWERS);
        if too_many || self.push_answer::<()>(id, None, Some(&error), true).is_err() {
            self.gone.cancel();
        }
    }

    fn push_answer<T: Serialize>(
        &self,
        id: Option<&RawValue>,
        result: Option<&T>,
        error: Option<&ErrorData>,
        is_refusal: bool,
    ) -> io::Result<()> {
        let outgoing = self.outgoing.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let line = serde_json::to_vec(&Answer { jsonrpc: "2.0", id, result, error })?;
        outgoing.push(line, is_refusal)
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
                // Without room a notification is dropped, which is what they are there for.
                return outgoing.push(serde_json::to_vec(message)?, false);
            }
        };
        let RequestId::Number(id) = id else { return Ok(()) };
        // A request that was cancelled gets no answer.
        let Some(id) = self.requests.remove(id) else { return Ok(()) };
        let pushed = match message {
            JsonRpcMessage::Response(response) => {
                self.push_answer(Some(&*id), Some(&response.result), None, false)
            }
            JsonRpcMessage::Error(error) => {
                self.push_answer::<()>(Some(&*id), None, Some(&error.error), false)
            }
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => Ok(()),
        };
        if pushed.is_err() {
            // An answer that cannot be given must not be waited for: with so much unread the client is stuck.
            self.gone.cancel();
        }
        pushed
    }
}

/// Whether an id may be one, and is short enough to be echoed as it came.
fn is_id(id: &RawValue) -> bool {
    let text = id.get();
    let is_whole = || text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    text.len() <= LONGEST_ID && (text.starts_with('"') || is_whole())
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
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            let gone = self.gone.clone();
            let piece = tokio::select! {
                biased;
                () = gone.cancelled() => return None,
                piece = self.lines.next() => piece,
            };
            match piece {
                Ok(Some(Piece::Part)) => {}
                Ok(Some(Piece::Line(line))) => {
                    self.read_line(trimmed(&line));
                    self.lines.reuse(line);
                }
                Ok(Some(Piece::Long { id, told, bytes, ends })) => {
                    if id.is_some() || (ends && !told) {
                        let id = id.and_then(|id| id.to_json());
                        let problem = format!(
                            "the message is longer than {} MB, the most that is read",
                            LONGEST_LINE >> 20
                        );
                        self.refuse(id.as_deref(), ErrorCode::INVALID_REQUEST, &problem);
                    }
                    if bytes > LONGEST_SKIPPED_LINE {
                        tracing::warn!(bytes, "a line does not end");
                        self.gone.cancel();
                    }
                }
                Ok(None) => {
                    self.gone.cancel();
                    return None;
                }
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
