//! The requests of one client: from its lines to messages for rmcp, and from rmcp's answers back to
//! the client's ids.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::Arc;

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, ErrorData, GetExtensions as _,
    GetMeta as _, JsonRpcMessage, JsonRpcNotification, JsonRpcResponse, RequestId, ServerJsonRpcMessage,
    ServerNotification, ServerResult,
};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::backpressure::{InFlight, LookAhead, MAX_UNREAD_BYTES, Slot};
use super::message::{Answer, Cancelled, is_id, read_call};
use crate::lines::{IdScan, LineQueue};
use crate::server::incoming::{self, DetachedInput, MessageEnvelope, detach};
use crate::server::request_id::ClientRequestId;
use crate::server::unserved;

/// The requests of one client. Lives as long as its connection.
pub(crate) struct Requests {
    /// The requests that were passed to rmcp and are not answered yet, by this module's ids.
    unanswered: HashMap<i64, Request>,
    last_id: i64,
    in_flight: InFlight,
    /// The server's own requests that the client has not answered. Requests in flight wait for these answers.
    questions: HashSet<RequestId>,
    /// Messages for rmcp. One line can result in several.
    ready: VecDeque<ClientJsonRpcMessage>,
    /// `None` when the connection is closed.
    outgoing: Option<LineQueue>,
    /// Cancelled to disconnect the client.
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

impl Requests {
    /// Starts with no requests. Answers are written to `outgoing`.
    pub(crate) fn new(outgoing: LineQueue, gone: CancellationToken) -> Self {
        Self {
            unanswered: HashMap::new(),
            last_id: 0,
            in_flight: InFlight::default(),
            questions: HashSet::new(),
            ready: VecDeque::new(),
            outgoing: Some(outgoing),
            gone,
        }
    }

    /// The next message for rmcp.
    pub(crate) fn next_message(&mut self) -> Option<ClientJsonRpcMessage> {
        self.ready.pop_front()
    }

    /// Whether a message of this many bytes may be handled now: there is a slot for it, and the
    /// client has read enough of the earlier answers.
    pub(crate) fn may_handle(&self, bytes: usize) -> bool {
        self.in_flight.has_room(bytes) && self.is_read()
    }

    /// Whether a request in flight waits for an answer of the client. The answer may come after any number of lines, so
    /// reading must not stop before it. A client that does not read may not even have received the question.
    pub(crate) fn awaits_answer(&self) -> bool {
        !self.questions.is_empty() && self.is_read()
    }

    /// Whether the client has read enough of the written answers.
    fn is_read(&self) -> bool {
        self.outgoing.as_ref().map_or(0, LineQueue::unwritten_bytes) < MAX_UNREAD_BYTES
    }

    /// The queue of lines for the client. `None` when the connection is closed.
    pub(crate) fn outgoing(&self) -> Option<&LineQueue> {
        self.outgoing.as_ref()
    }

    /// Completes when a request in flight has ended, or at once if one has since the last
    /// completion. For one task only.
    pub(crate) async fn slot_freed(&self) {
        self.in_flight.freed().await;
    }

    /// Closes the connection: what is queued is still written.
    pub(crate) fn close(&mut self) {
        self.outgoing = None;
    }

    /// Handles a line. A cancellation also applies to the lines of `look_ahead`.
    pub(crate) fn read_line(&mut self, line: &[u8], look_ahead: &mut LookAhead) {
        if line.is_empty() {
            return;
        }
        if line.starts_with(b"[") {
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
        let envelope = match serde_json::from_slice::<MessageEnvelope<'_>>(line) {
            Ok(envelope) => envelope,
            Err(error) if line.starts_with(b"{") => {
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
            (Some(method), None) => self.read_notification(method, envelope.params, look_ahead),
            (None, id) if envelope.is_answer() => {
                // An answer to a request of this server. rmcp ignores answers that nothing waits for.
                match incoming::answer(line) {
                    Some(message) => self.pass_answer(message),
                    None => self.fail_question(id, "the answer cannot be read"),
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
        match serde_json::from_slice::<MessageEnvelope<'_>>(line) {
            Ok(MessageEnvelope { method: Some(_), id: None, .. }) => {}
            Ok(envelope) if envelope.is_answer() => self.fail_question(envelope.id, problem),
            _ => {
                let id = IdScan::of_line(line).and_then(|id| id.to_json());
                self.refuse(id.as_deref(), ErrorCode::INVALID_REQUEST, problem);
            }
        }
    }

    /// Handles an answer to a request of this server that cannot be parsed. The client gets no response, and the task
    /// that waits for the answer gets an error.
    fn fail_question(&mut self, id: Option<&RawValue>, problem: &str) {
        if let Some(Ok(id)) = id.filter(|id| is_id(id)).map(|id| serde_json::from_str(id.get())) {
            let error = ErrorData::new(ErrorCode::INVALID_REQUEST, problem.to_owned(), None);
            self.pass_answer(JsonRpcMessage::error(error, Some(id)));
        }
    }

    /// Passes the answer to a request of this server to rmcp.
    fn pass_answer(&mut self, message: ClientJsonRpcMessage) {
        let question = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        if let Some(id) = question {
            self.questions.remove(id);
        }
        self.ready.push_back(message);
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
                request.extensions_mut().insert(ClientRequestId::from_json(id));
                self.last_id += 1;
                let slot = Arc::new(self.in_flight.enter(bytes));
                request.extensions_mut().insert(Arc::clone(&slot));
                self.unanswered.insert(self.last_id, Request { id: id.to_owned(), _slot: slot });
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

    fn read_notification(&mut self, method: &str, params: Option<&RawValue>, look_ahead: &mut LookAhead) {
        if method == "notifications/cancelled" {
            return self.cancel(params, look_ahead);
        }
        // Notifications that cannot be parsed or are unknown are ignored, because they get no
        // answer.
        if let Ok(notification) = read_call::<ClientNotification>(method, params) {
            self.ready.push_back(JsonRpcMessage::notification(notification));
        }
    }

    /// Cancels the requests with this id. They get no answer. An unknown id belongs to a request
    /// that was answered.
    fn cancel(&mut self, params: Option<&RawValue>, look_ahead: &mut LookAhead) {
        let Some(cancelled) =
            params.and_then(|params| serde_json::from_str::<Cancelled<'_>>(params.get()).ok())
        else {
            return;
        };
        look_ahead.cancel(cancelled.request_id.get());
        let requests = self.unanswered.iter();
        let of_that_id = requests.filter(|(_, request)| request.id.get() == cancelled.request_id.get());
        let ids: Vec<i64> = of_that_id.map(|(&id, _)| id).collect();
        for id in ids {
            self.unanswered.remove(&id);
            let params = serde_json::json!({ "requestId": id, "reason": cancelled.reason });
            let call = serde_json::json!({ "method": "notifications/cancelled", "params": params });
            if let Ok(notification) = serde_json::from_value::<ClientNotification>(call) {
                self.ready.push_back(JsonRpcMessage::notification(notification));
            }
        }
    }

    /// Refuses a request for which there is no space while an earlier request waits for an answer of the client. `id`
    /// is JSON.
    pub(crate) fn refuse_beyond(&self, id: Box<str>) {
        let id = RawValue::from_string(id.into_string()).ok();
        let problem = "more requests were sent than are read ahead, and one of them waits for an answer of this \
                       client; answer it, and send this request again";
        self.refuse(id.as_deref(), ErrorCode::INTERNAL_ERROR, problem);
    }

    /// Answers a message that is not passed to rmcp.
    pub(crate) fn refuse(&self, id: Option<&RawValue>, code: ErrorCode, problem: &str) {
        let error = ErrorData::new(code, problem.to_owned(), None);
        if self.push_answer::<()>(id, None, Some(&error)).is_err() {
            self.gone.cancel();
        }
    }

    /// Writes a notification of a subscription, which names the client's request.
    fn push_of_subscription(&self, mut message: JsonRpcNotification<ServerNotification>) -> io::Result<()> {
        let Some(RequestId::Number(id)) = subscription_of(&message) else { return Ok(()) };
        // Nothing more is sent for a cancelled subscription.
        let Some(request) = self.unanswered.get(&id) else { return Ok(()) };
        if let Ok(id) = serde_json::from_str(request.id.get()) {
            message.notification.get_meta_mut().set_subscription_id(id);
        }
        self.queue(&message, false)
    }

    fn push_answer<T: Serialize>(
        &self,
        id: Option<&RawValue>,
        result: Option<&T>,
        error: Option<&ErrorData>,
    ) -> io::Result<()> {
        self.queue(&Answer { jsonrpc: "2.0", id, result, error }, true)
    }

    /// Queues a line for the client.
    fn queue(&self, message: &impl Serialize, is_answer: bool) -> io::Result<()> {
        let outgoing = self.outgoing.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        outgoing.push(serde_json::to_vec(message)?, is_answer)
    }

    /// Writes a message of rmcp. Notifications are dropped if too much is unread.
    ///
    /// # Errors
    ///
    /// If another message cannot be queued, because the client does not read or is gone.
    pub(crate) fn push(&mut self, message: &ServerJsonRpcMessage) -> io::Result<()> {
        match message {
            JsonRpcMessage::Response(response) => self.push_reply(&response.id, message),
            JsonRpcMessage::Error(error) => match &error.id {
                Some(id) => self.push_reply(id, message),
                None => Ok(()),
            },
            JsonRpcMessage::Notification(notification) if subscription_of(notification).is_some() => {
                self.push_of_subscription(notification.clone())
            }
            JsonRpcMessage::Request(request) => {
                self.queue(message, false)?;
                self.questions.insert(request.id.clone());
                Ok(())
            }
            JsonRpcMessage::Notification(notification) => {
                if let ServerNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.questions.remove(id);
                }
                // Notifications are best effort: they are dropped when the queue is full.
                self.queue(message, false)
            }
        }
    }

    /// Writes rmcp's reply to a request, with the id that the client has given to it.
    fn push_reply(&mut self, id: &RequestId, message: &ServerJsonRpcMessage) -> io::Result<()> {
        let RequestId::Number(id) = id else { return Ok(()) };
        // A cancelled request gets no answer.
        let Some(request) = self.unanswered.remove(id) else { return Ok(()) };
        let id = Some(&*request.id);
        let pushed = match message {
            JsonRpcMessage::Response(JsonRpcResponse {
                result: ServerResult::SubscriptionsListenResult(result),
                ..
            }) => {
                let mut result = result.clone();
                if let Ok(id) = serde_json::from_str(request.id.get()) {
                    result.meta.set_subscription_id(id);
                }
                self.push_answer(id, Some(&result), None)
            }
            JsonRpcMessage::Response(response) => self.push_answer(id, Some(&response.result), None),
            JsonRpcMessage::Error(error) => {
                let mut error = error.error.clone();
                unserved::explain(&mut error);
                self.push_answer::<()>(id, None, Some(&error))
            }
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

/// The request of the subscription that a notification belongs to.
fn subscription_of(message: &JsonRpcNotification<ServerNotification>) -> Option<RequestId> {
    message.notification.get_meta().subscription_id()
}
