//! Receives a server's messages: answers to pending requests, and a few notifications.

use std::collections::HashMap;
use std::sync::Arc;

use http::HeaderValue;
use parking_lot::Mutex;
use rmcp::model::{CustomResult, JsonRpcMessage, RequestId, ServerJsonRpcMessage, ServerResult};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::failure::RequestFailure;
use super::headers::Promotions;
use crate::json::{self, TreeError};
use crate::lines::{FoundId, IdScan};
use crate::mcp::answers::{Expected, read_result};
use crate::mcp::message::{IncomingMessage, MAX_NOTIFICATION_BYTES, ProgressNotification, read_error};
use crate::mcp::notifications::Notifications;
use crate::mcp::questions::{Caller, Reply};

/// Maximum number of messages that wait for rmcp, which receives them without delay.
const MAX_WAITING: usize = 64;

/// Maximum number of messages in one array, which revision 2025-03-26 allowed.
const MAX_IN_BATCH: usize = 1024;

/// A pending request: how its answer is parsed, how its exchange is ended, and the call that it belongs
/// to.
pub(crate) struct Pending {
    pub(crate) expected: Expected,
    pub(crate) cancel: CancellationToken,
    pub(crate) caller: Option<Arc<Caller>>,
}

/// The receiving half of an HTTP connection.
pub(crate) struct Inbox {
    server: Arc<str>,
    pending: Mutex<HashMap<i64, Pending>>,
    messages: mpsc::Sender<ServerJsonRpcMessage>,
    notifications: Notifications,
    pub(crate) promotions: Promotions,
    /// The version that the older handshake negotiated. It is stored before the answer is passed
    /// on, because the next message already carries it.
    pub(crate) version: Mutex<Option<HeaderValue>>,
}

/// The result of handling one message.
pub(crate) enum Received {
    /// A request of the server, and the answer to it.
    Request(Reply),
    Handled,
}

impl Inbox {
    pub(crate) fn new(
        server: Arc<str>,
        notifications: Notifications,
    ) -> (Self, mpsc::Receiver<ServerJsonRpcMessage>) {
        let (messages, receiver) = mpsc::channel(MAX_WAITING);
        let pending = Mutex::default();
        let promotions = Promotions::default();
        let version = Mutex::default();
        (Self { server, pending, messages, notifications, promotions, version }, receiver)
    }

    pub(crate) fn expect(&self, id: i64, pending: Pending) {
        self.pending.lock().insert(id, pending);
    }

    pub(crate) fn is_pending(&self, id: i64) -> bool {
        self.pending.lock().contains_key(&id)
    }

    /// Whether any request has no answer yet.
    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.lock().is_empty()
    }

    /// Ends an abandoned request without an answer.
    pub(crate) fn forget(&self, id: i64) {
        if let Some(pending) = self.pending.lock().remove(&id) {
            pending.cancel.cancel();
        }
    }

    /// Ends a pending request with an error.
    pub(crate) async fn fail(&self, id: i64, problem: RequestFailure) {
        if self.pending.lock().remove(&id).is_some() {
            let error = problem.into_error_data(&self.server);
            self.pass_on(JsonRpcMessage::error(error, Some(RequestId::Number(id)))).await;
        }
    }

    /// Handles a text that was received: a message, or an array of messages. `request` is the
    /// request whose answer this is, if it came on that request's response.
    pub(crate) async fn receive(&self, text: &[u8], request: Option<i64>) -> Vec<Received> {
        let text = text.trim_ascii();
        if text.first() == Some(&b'[')
            && let Ok(batch) = std::str::from_utf8(text)
            && let Ok(messages) = json::items(batch, MAX_IN_BATCH)
        {
            let mut all = Vec::new();
            for message in messages {
                all.push(self.receive_one(message.get().as_bytes(), request).await);
            }
            return all;
        }
        vec![self.receive_one(text, request).await]
    }

    async fn receive_one(&self, text: &[u8], request: Option<i64>) -> Received {
        let mut mended = None;
        let message = match IncomingMessage::parse(text, &mut mended) {
            Ok(message) => message,
            Err(error) => {
                // The answer to the request with this id, or, without an id, to the request of this
                // response.
                let Some(id) = IdScan::of_line(text).as_ref().and_then(FoundId::as_number).or(request) else {
                    return Received::Handled;
                };
                self.fail(id, RequestFailure::Unreadable(error.to_string())).await;
                return Received::Handled;
            }
        };
        match (&message.method, message.id) {
            (Some(method), Some(id)) => {
                let questions = self.notifications.questions();
                Received::Request(questions.answer(method, id, message.params, || self.callers(request)))
            }
            (Some(method), None) => {
                self.receive_notification(method, message.params, text).await;
                Received::Handled
            }
            (None, id) => self.receive_answer(&message, id, text, request).await,
        }
    }

    /// The calls that a request of the server may belong to: the one on whose response it came, or
    /// all in flight.
    fn callers(&self, request: Option<i64>) -> Vec<Arc<Caller>> {
        let pending = self.pending.lock();
        match request.and_then(|id| pending.get(&id)?.caller.clone()) {
            Some(caller) => vec![caller],
            None => {
                let callers = pending.values().filter_map(|pending| pending.caller.clone());
                self.notifications.questions().in_flight(callers)
            }
        }
    }

    async fn receive_answer(
        &self,
        message: &IncomingMessage<'_>,
        id: Option<&RawValue>,
        text: &[u8],
        request: Option<i64>,
    ) -> Received {
        let named = id.and_then(|id| id.get().trim_matches('"').parse::<i64>().ok());
        // An error without an id, on the response to a request, belongs to that request.
        let Some(id) = named.or(request.filter(|_| message.error.is_some())) else {
            return Received::Handled;
        };
        let Some(expected) = self.pending.lock().get(&id).map(|pending| pending.expected) else {
            tracing::debug!(server = %self.server, id, "an answer to no pending request");
            return Received::Handled;
        };
        // Only scripts can interpret the marks; a schema has null in their place.
        let is_call = expected == Expected::CallTool;
        let marked = if is_call { message.marked_result(text) } else { None };
        let answer = match (marked.as_deref().or(message.result), message.error) {
            (Some(result), None) => read_result(expected, result).map(|result| {
                JsonRpcMessage::response(self.learned(expected, result), RequestId::Number(id))
            }),
            (_, Some(error)) => read_error(error)
                .map(|error| JsonRpcMessage::error(error, Some(RequestId::Number(id))))
                .map_err(TreeError::from),
            (None, None) => {
                self.fail(id, RequestFailure::Unreadable("it has neither a result nor an error".to_owned()))
                    .await;
                return Received::Handled;
            }
        };
        match answer {
            Ok(answer) => {
                if self.pending.lock().remove(&id).is_some() {
                    self.pass_on(answer).await;
                }
            }
            Err(error) => self.fail(id, RequestFailure::Unreadable(error.to_string())).await,
        }
        Received::Handled
    }

    fn learned(&self, expected: Expected, mut result: ServerResult) -> ServerResult {
        match &mut result {
            ServerResult::CustomResult(CustomResult(Value::String(page)))
                if expected == Expected::ListTools =>
            {
                if let Some(kept) = self.promotions.learn(page) {
                    *page = kept;
                }
            }
            ServerResult::InitializeResult(result) => {
                *self.version.lock() = HeaderValue::from_str(result.protocol_version.as_str()).ok();
            }
            _ => {}
        }
        result
    }

    /// Handles a notification: counts changes, passes progress to its listener, and passes on what
    /// rmcp needs. rmcp starts a task for each notification, so all others are dropped here.
    async fn receive_notification(&self, method: &str, parameters: Option<&RawValue>, text: &[u8]) {
        match method {
            "notifications/tools/list_changed" => self.notifications.tools_changed(),
            _ if text.len() > MAX_NOTIFICATION_BYTES => {}
            "notifications/progress" => {
                if let Ok(ProgressNotification { params }) = serde_json::from_slice(text) {
                    self.notifications.progress(params);
                }
            }
            "notifications/cancelled" => self.notifications.questions().cancelled(parameters),
            "notifications/tasks/status" => self.notifications.questions().task_changed(parameters),
            "notifications/resources/updated" => self.notifications.followed().report(parameters),
            "notifications/subscriptions/acknowledged" if !self.pending.lock().is_empty() => {
                if let Ok(message) = serde_json::from_slice::<ServerJsonRpcMessage>(text) {
                    self.pass_on(message).await;
                }
            }
            _ => {}
        }
    }

    async fn pass_on(&self, message: ServerJsonRpcMessage) {
        // Fails if rmcp has dropped the transport; the message is not needed then.
        let _gone = self.messages.send(message).await;
    }
}
