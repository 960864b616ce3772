//! The client's stdio transport: one JSON-RPC message per line.
//!
//! rmcp's own line transport drops a line that is too long or not JSON, and the call that waits for
//! that answer waits forever. It also starts a task for every request and notification that the
//! server sends. This one fails the call that an invalid line answers, has the server's requests
//! answered within bounds, and passes on only answers to pending requests.

use std::collections::HashMap;
use std::future::{Future, ready};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::timeout_at;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::answers::{Expected, caller, encoded, expected, read_result};
use super::errors::{OVERSIZED_ANSWER, UNREADABLE_ANSWER};
use super::message::{IncomingMessage, MAX_NOTIFICATION_BYTES, ProgressNotification, read_error};
use super::notifications::Notifications;
use super::questions::{Caller, Reply};
use crate::json::TreeError;
use crate::lines::{FoundId, IdScan, LineQueue, LineReader, MAX_LINE, MAX_SKIPPED_LINE, Piece, trimmed};

/// The error of a probe that was not answered in time.
pub(crate) const NO_ANSWER: &str = "no answer to server/discover";

/// Maximum number of answers that wait for the server to read them. A real server has one or two
/// requests; one that keeps sending requests and never reads the answers is disconnected.
const MAX_WAITING_ANSWERS: usize = 1024;

/// The client's end of a server's stdout and stdin. Lives as long as the connection.
pub(crate) struct LineTransport<R> {
    server: Arc<str>,
    lines: LineReader<R>,
    outgoing: Option<LineQueue>,
    /// The expected answers of the pending requests.
    pending: HashMap<i64, Pending>,
    notifications: Notifications,
    /// The server's questions to the user, each with its answer. Dropping this withdraws them.
    questions: JoinSet<Option<Value>>,
    /// The id of the probe for the newest revision, which old servers may never answer, and its
    /// deadline.
    probe: Option<(i64, Instant)>,
    probe_time: Duration,
    reported_noise: bool,
    /// Cancels `ended` when rmcp has dropped this.
    _ended: DropGuard,
}

/// A pending request: how its answer is parsed, and the call that it belongs to.
pub(crate) struct Pending {
    pub(crate) expected: Expected,
    pub(crate) caller: Option<Arc<Caller>>,
}

/// The result of reading one line.
enum Read {
    Message(Box<ServerJsonRpcMessage>),
    Nothing,
    /// The server violates the protocol so badly that the connection must be closed.
    Disconnect,
}

impl<R: AsyncRead + Send + Unpin> LineTransport<R> {
    /// Makes the transport and the task that writes to `writer`. The caller must run the task.
    /// `ended` is cancelled when the transport is dropped.
    pub(crate) fn new<W: AsyncWrite + Send + Unpin + 'static>(
        server: Arc<str>,
        reader: R,
        writer: W,
        notifications: Notifications,
        probe_time: Duration,
        ended: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (outgoing, writing) = LineQueue::new(writer);
        // The reading side notices a failure too, and can explain it better.
        let writing = writing.map(drop);
        let transport = Self {
            server,
            lines: LineReader::new(reader),
            outgoing: Some(outgoing),
            pending: HashMap::new(),
            notifications,
            questions: JoinSet::new(),
            probe: None,
            probe_time,
            reported_noise: false,
            _ended: ended.drop_guard(),
        };
        (transport, writing)
    }

    /// Reads one line, or the part of it that has arrived. Cancel-safe: rmcp drops the future
    /// whenever it has something to send, and nothing is lost.
    async fn read_on(&mut self) -> io::Result<Option<Read>> {
        let piece = self.lines.next().await?;
        Ok(piece.map(|piece| self.read_piece(piece)))
    }

    fn read_piece(&mut self, piece: Piece) -> Read {
        match piece {
            Piece::Part => Read::Nothing,
            Piece::Line(line) => {
                let read = self.read_line(trimmed(&line));
                self.lines.reuse(line);
                read
            }
            Piece::Long { id, bytes, ends, .. } => self.skip(id.as_ref(), bytes, ends),
        }
    }

    /// Fails the call that the skipped line answers, as soon as its id is known.
    fn skip(&mut self, id: Option<&FoundId>, bytes: usize, ends: bool) -> Read {
        if ends {
            tracing::warn!(server = %self.server, bytes, "a line was too long and was skipped");
        } else if bytes > MAX_SKIPPED_LINE {
            tracing::warn!(server = %self.server, bytes, "a line does not end");
            return Read::Disconnect;
        }
        let problem = format!("more than {} MB in one message", MAX_LINE / (1024 * 1024));
        id.and_then(FoundId::as_number).map_or(Read::Nothing, |id| self.failed(id, OVERSIZED_ANSWER, problem))
    }

    fn read_line(&mut self, line: &[u8]) -> Read {
        if line.is_empty() {
            return Read::Nothing;
        }
        let mut mended = None;
        let message = match IncomingMessage::parse(line, &mut mended) {
            Ok(message) => message,
            Err(error) => return self.unreadable(line, &error),
        };
        match (&message.method, message.id) {
            (Some(method), Some(id)) => self.answer(method, id, message.params),
            (Some(method), None) => self.read_notification(method, message.params, line),
            (None, Some(id)) => self.read_answer(&message, id, line),
            (None, None) => {
                if let Some(error) = message.error {
                    // It cannot be assigned to a request, so it is treated as noise.
                    tracing::debug!(server = %self.server, bytes = error.get().len(), "an error without an id");
                }
                Read::Nothing
            }
        }
    }

    fn read_notification(&self, method: &str, parameters: Option<&RawValue>, line: &[u8]) -> Read {
        match method {
            "notifications/tools/list_changed" => self.notifications.tools_changed(),
            _ if line.len() > MAX_NOTIFICATION_BYTES => {}
            "notifications/progress" => {
                if let Ok(ProgressNotification { params }) = serde_json::from_slice(line) {
                    self.notifications.progress(params);
                }
            }
            "notifications/cancelled" => self.notifications.questions().cancelled(parameters),
            "notifications/tasks/status" => self.notifications.questions().task_changed(parameters),
            "notifications/resources/updated" => self.notifications.followed().report(parameters),
            // rmcp waits for this notification before a subscription begins. Those of the changes are
            // handled above.
            "notifications/subscriptions/acknowledged" => {
                if let Ok(message) = serde_json::from_slice(line) {
                    return Read::Message(Box::new(message));
                }
            }
            _ => {}
        }
        Read::Nothing
    }

    fn read_answer(&mut self, message: &IncomingMessage<'_>, id: &RawValue, line: &[u8]) -> Read {
        // The client's ids are numbers, which some servers return as strings. Answers with wrong
        // ids, second answers, and answers to cancelled requests end here.
        let Ok(id) = id.get().trim_matches('"').parse::<i64>() else { return Read::Nothing };
        let Some(expected) = self.pending.get(&id).map(|pending| pending.expected) else {
            tracing::debug!(server = %self.server, id, "an answer to no pending request");
            return Read::Nothing;
        };
        // Only scripts can interpret the marks; a schema has null in their place.
        let is_call = expected == Expected::CallTool;
        let marked = if is_call { message.marked_result(line) } else { None };
        let answer = match (marked.as_deref().or(message.result), message.error) {
            (Some(result), None) => read_result(expected, result)
                .map(|result| JsonRpcMessage::response(result, RequestId::Number(id))),
            (_, Some(error)) => read_error(error)
                .map(|error| JsonRpcMessage::error(error, Some(RequestId::Number(id))))
                .map_err(TreeError::from),
            (None, None) => {
                return self.failed(id, UNREADABLE_ANSWER, "it has neither a result nor an error".to_owned());
            }
        };
        match answer {
            Ok(answer) => {
                self.pending.remove(&id);
                self.probe.take_if(|(probe, _)| *probe == id);
                Read::Message(Box::new(answer))
            }
            Err(error) => self.failed(id, UNREADABLE_ANSWER, error.to_string()),
        }
    }

    /// Handles a line that is not JSON: an invalid answer, or noise such as a banner.
    fn unreadable(&mut self, line: &[u8], error: &serde_json::Error) -> Read {
        if let Some(id) = IdScan::of_line(line).as_ref().and_then(FoundId::as_number) {
            return self.failed(id, UNREADABLE_ANSWER, error.to_string());
        }
        if !self.reported_noise {
            self.reported_noise = true;
            tracing::warn!(
                server = %self.server, bytes = line.len(),
                "the server writes text to its stdout that is not part of the protocol; it is ignored"
            );
        }
        Read::Nothing
    }

    /// Ends the probe for the newest revision with the error of a server that does not know it.
    /// Some servers answer nothing before the handshake that they know.
    fn fail_probe(&mut self) -> Read {
        let Some((id, _)) = self.probe.take() else { return Read::Nothing };
        tracing::debug!(server = %self.server, "no answer to the probe for the newest revision");
        self.failed(id, ErrorCode::METHOD_NOT_FOUND, NO_ANSWER.to_owned())
    }

    /// Ends a pending request with an error of this client.
    fn failed(&mut self, id: i64, code: ErrorCode, problem: String) -> Read {
        if self.pending.remove(&id).is_none() {
            return Read::Nothing;
        }
        self.probe.take_if(|(probe, _)| *probe == id);
        let error = ErrorData::new(code, problem, None);
        Read::Message(Box::new(JsonRpcMessage::error(error, Some(RequestId::Number(id)))))
    }

    /// Answers a request of the server, now or when the user has answered.
    fn answer(&mut self, method: &str, id: &RawValue, parameters: Option<&RawValue>) -> Read {
        let questions = self.notifications.questions();
        let callers =
            || questions.in_flight(self.pending.values().filter_map(|pending| pending.caller.clone()));
        match questions.answer(method, id, parameters, callers) {
            Reply::None => Read::Nothing,
            Reply::Now(answer) => self.push_answer(&answer),
            Reply::Later(answer) => {
                self.questions.spawn(answer);
                Read::Nothing
            }
        }
    }

    fn push_answer(&self, answer: &Value) -> Read {
        let Some(outgoing) = &self.outgoing else { return Read::Nothing };
        if outgoing.waiting_answers() >= MAX_WAITING_ANSWERS {
            tracing::warn!(server = %self.server, "the server sends requests without reading the answers");
            return Read::Disconnect;
        }
        match outgoing.push(answer.to_string().into_bytes(), true) {
            Ok(()) => Read::Nothing,
            Err(_) => Read::Disconnect,
        }
    }

    /// Reads on, or sends the answer to a question. Cancel-safe: an answer is taken and sent in one
    /// step.
    async fn step(&mut self) -> io::Result<Option<Read>> {
        if self.questions.is_empty() {
            return self.read_on().await;
        }
        let answered = {
            let questions = &mut self.questions;
            let lines = &mut self.lines;
            tokio::select! {
                answered = questions.join_next() => answered,
                piece = lines.next() => return Ok(piece?.map(|piece| self.read_piece(piece))),
            }
        };
        Ok(Some(match answered {
            Some(Ok(Some(answer))) => self.push_answer(&answer),
            // The server has cancelled the question.
            _ => Read::Nothing,
        }))
    }

    /// Records the expected answer and queues the message for the writing task.
    fn push(&mut self, message: &ClientJsonRpcMessage) -> io::Result<()> {
        if let JsonRpcMessage::Notification(notification) = message
            && let ClientNotification::CancelledNotification(cancelled) = &notification.notification
            && let Some(RequestId::Number(id)) = cancelled.params.request_id
        {
            self.pending.remove(&id);
        }
        let outgoing = self.outgoing.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        outgoing.push(encoded(message)?, false)?;
        if let JsonRpcMessage::Request(request) = message
            && let RequestId::Number(id) = request.id
        {
            let expected = expected(&request.request);
            self.pending.insert(id, Pending { expected, caller: caller(&request.request) });
            if expected == Expected::Discover {
                self.probe = Some((id, Instant::now() + self.probe_time));
            }
        }
        Ok(())
    }
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleClient> for LineTransport<R> {
    type Error = io::Error;

    /// Queues the message at once, in the order of the calls: rmcp runs the returned future in a
    /// task of its own, in which a cancellation could overtake its request.
    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        ready(self.push(&message))
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            let read = match self.probe {
                Some((_, until)) => match timeout_at(until.into(), self.step()).await {
                    Ok(read) => read,
                    Err(_elapsed) => Ok(Some(self.fail_probe())),
                },
                None => self.step().await,
            };
            match read {
                Ok(Some(Read::Message(message))) => return Some(*message),
                Ok(Some(Read::Nothing)) => {}
                Ok(None | Some(Read::Disconnect)) => return None,
                Err(error) => {
                    tracing::debug!(server = %self.server, %error, "reading from the server failed");
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        // Ends the writing task after it has written the queue, which closes the server's stdin.
        self.outgoing = None;
        Ok(())
    }
}

#[cfg(any(test, fuzzing))]
#[path = "../../fuzz/entries/mcp_lines.rs"]
pub(crate) mod fuzzing;
