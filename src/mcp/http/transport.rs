//! The transport over HTTP in the form that rmcp expects: a POST for each message, answers in its response or on a
//! stream.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, JsonRpcMessage, ProtocolVersion, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::client::HttpClient;
use super::connection::{Control, HttpConnection, MAX_PAUSE, MAX_RESUMES, pause};
use super::events::EventsError;
use super::inbox::Pending;
use super::state::{Deadlines, HttpState, LastKind};
use crate::mcp::answers::{caller, encoded, expected};
use crate::mcp::notifications::Notifications;
use crate::mcp::oauth::Authorization;
use crate::mcp::settings::HttpTransport;
use crate::tools::ToolError;

/// The client's end of an HTTP connection. Its tasks end when it is dropped.
pub(crate) struct PostTransport {
    connection: Arc<HttpConnection>,
    incoming: mpsc::Receiver<ServerJsonRpcMessage>,
    _stop: DropGuard,
}

/// Makes the transport for a server. Nothing is sent yet: the first message connects, and its
/// answer shows which transport the server uses. The caller keeps `last_kind` from one connection to
/// the next.
///
/// # Errors
///
/// If the configuration is invalid.
pub(crate) fn connect_transport(
    server: Arc<str>,
    config: &HttpTransport,
    authorization: Option<Arc<Authorization>>,
    last_kind: Arc<LastKind>,
    notifications: Notifications,
    deadlines: Deadlines,
) -> Result<(PostTransport, Arc<HttpState>), ToolError> {
    let client = HttpClient::new(server, config, authorization, deadlines.connect)?;
    let state = Arc::new(HttpState::new(notifications));
    let (connection, incoming) =
        HttpConnection::new(client, config, last_kind, Arc::clone(&state), deadlines);
    let transport = PostTransport { _stop: connection.stop.clone().drop_guard(), connection, incoming };
    Ok((transport, state))
}

impl Transport<RoleClient> for PostTransport {
    type Error = io::Error;

    /// Requests are registered at once and sent by tasks of their own. The notification that ends
    /// the handshake is awaited, because servers refuse messages that overtake it.
    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let connection = Arc::clone(&self.connection);
        let sending = connection.clone().prepare(message);
        async move {
            let Some((body, headers)) = sending? else { return Ok(()) };
            connection.finish_handshake(body, headers).await;
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        tokio::select! {
            biased;
            message = self.incoming.recv() => message,
            () = self.connection.state.ended.cancelled() => None,
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.connection.close().await;
        Ok(())
    }
}

impl Drop for PostTransport {
    fn drop(&mut self) {
        self.connection.state.end("was closed");
    }
}

impl HttpConnection {
    /// Starts sending a message that need not be awaited, or returns the notification that must be awaited.
    fn prepare(self: Arc<Self>, message: ClientJsonRpcMessage) -> io::Result<Option<(Vec<u8>, HeaderMap)>> {
        if self.state.ended.is_cancelled() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        match message {
            JsonRpcMessage::Request(ref request) => {
                let RequestId::Number(id) = request.id else {
                    return Err(io::ErrorKind::InvalidInput.into());
                };
                let method = request.request.method().to_owned();
                let expected = expected(&request.request);
                let caller = caller(&request.request);
                let patience = caller.as_ref().map(|caller| Arc::clone(&caller.patience)).unwrap_or_default();
                let (body, headers) = self.encode(&message)?;
                let cancel = CancellationToken::new();
                self.inbox.expect(id, Pending { expected, cancel: cancel.clone(), caller });
                // The task ends with its request, or with the connection.
                tokio::spawn(async move {
                    tokio::select! {
                        biased;
                        () = self.stop.cancelled() => {}
                        () = cancel.cancelled() => {}
                        () = self.request(id, &method, &body, headers, &patience) => {}
                    }
                });
                Ok(None)
            }
            JsonRpcMessage::Notification(ref notification) => {
                let (body, headers) = self.encode(&message)?;
                match &notification.notification {
                    ClientNotification::CancelledNotification(cancelled) => {
                        if let Some(RequestId::Number(id)) = cancelled.params.request_id {
                            self.inbox.forget(id);
                        }
                        // Since 2026-07-28, closing the response is the cancellation.
                        if !self.negotiated.lock().is_stateless {
                            self.post_control(body, headers, Control::Cancellation);
                        }
                        Ok(None)
                    }
                    _ => Ok(Some((body, headers))),
                }
            }
            // The server's requests are never passed to rmcp, so it has nothing to answer.
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => Ok(None),
        }
    }

    fn encode(&self, message: &ClientJsonRpcMessage) -> io::Result<(Vec<u8>, HeaderMap)> {
        let body = encoded(message)?;
        let mut negotiated = self.negotiated.lock();
        if let JsonRpcMessage::Request(request) = message {
            // Each request of the stateless revision contains its version. In the handshake
            // revisions the handshake negotiates it.
            let version = match &request.request {
                ClientRequest::InitializeRequest(_) => None,
                other => rmcp::model::GetMeta::get_meta(other).protocol_version(),
            };
            if let Some(version) = version {
                negotiated.is_stateless = version.as_str() >= ProtocolVersion::STANDARD_HEADERS.as_str();
                negotiated.version = HeaderValue::from_str(version.as_str()).ok();
            } else if matches!(&request.request, ClientRequest::InitializeRequest(_)) {
                negotiated.is_stateless = false;
                negotiated.version = None;
                *self.inbox.version.lock() = None;
            }
        }
        let mut headers = HeaderMap::new();
        if negotiated.is_stateless {
            headers = self.inbox.promotions.headers(&body);
        }
        drop(negotiated);
        Ok((body, headers))
    }

    /// Posts the notification that ends the handshake, and then opens the standalone stream.
    async fn finish_handshake(self: Arc<Self>, body: Vec<u8>, headers: HeaderMap) {
        match timeout(self.deadlines.connect, self.post(&body, headers)).await {
            Ok(Ok(response)) if response.status().is_success() => {}
            Ok(Ok(response)) => {
                let error = self.client.status_error(&response);
                tracing::warn!(server = &*self.client.server, %error, "a notification was refused");
            }
            Ok(Err(_)) | Err(_) => {
                tracing::warn!(server = &*self.client.server, "a notification was not delivered");
            }
        }
        let listens = {
            let negotiated = self.negotiated.lock();
            negotiated.endpoint.is_none() && !negotiated.is_stateless
        };
        if listens {
            let connection = self;
            // The task ends with the connection, or when the server has no such stream or it breaks
            // too often.
            tokio::spawn(async move {
                tokio::select! {
                    () = connection.stop.cancelled() => {}
                    () = connection.listen() => {}
                }
            });
        }
    }

    /// Reads the standalone stream, and reopens it a bounded number of times. Calls do not need it.
    async fn listen(self: &Arc<Self>) {
        let mut breaks = 0;
        let mut was_open = false;
        let mut last_id: Option<String> = None;
        let mut retry = Duration::ZERO;
        while breaks <= MAX_RESUMES {
            // The count starts again after a stream that lasted longer than this: servers and
            // proxies close idle streams every few minutes.
            let mut has_lasted = false;
            match self.open_stream(last_id.as_deref()).await {
                Ok(mut events) => {
                    if was_open {
                        // Changes that were announced meanwhile may be lost.
                        self.state.notifications.tools_changed();
                    }
                    was_open = true;
                    let opened = Instant::now();
                    let ended = self.read_events(&mut events, None).await;
                    if !matches!(ended, Ok(()) | Err(EventsError::Broken(_))) {
                        let server = &*self.client.server;
                        tracing::warn!(server, "the server's own stream is not reopened");
                        return;
                    }
                    has_lasted = opened.elapsed() > MAX_PAUSE;
                    last_id = events.last_id().map(str::to_owned).or(last_id);
                    retry = events.retry().unwrap_or_default();
                }
                // Many servers have no such stream.
                Err(_) if !was_open => return,
                // The server, or a proxy before it, may be starting again.
                Err(_) => {}
            }
            breaks = if has_lasted { 0 } else { breaks + 1 };
            sleep(retry.max(pause(breaks))).await;
        }
    }
}
