//! One HTTP connection: the state that its tasks share, and its exchanges with the server.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use parking_lot::Mutex;
use reqwest::Response;
use rmcp::model::ServerJsonRpcMessage;
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::coop::consume_budget;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::body::{self, ContentType};
use super::client::HttpClient;
use super::events::{Events, EventsError};
use super::failure::RequestFailure;
use super::inbox::{Inbox, Received};
use super::state::{Deadlines, HttpState, LastKind};
use crate::mcp::errors::unavailable;
use crate::mcp::questions::Reply;
use crate::mcp::settings::{HttpKind, HttpTransport};
use crate::net::media_type::JSON;
use crate::tools::ToolError;

/// Maximum number of control messages of each kind that are being sent at once: answers to the server's
/// requests, and notifications of cancelled calls. A server that sends requests faster than it
/// accepts answers is disconnected.
const MAX_CONTROL_POSTS: usize = 16;
const CONTROL_TIME: Duration = Duration::from_secs(5);

/// A request that every server answers in a session that it knows. Its id cannot be one of rmcp's, which are numbers.
const PING: &[u8] = br#"{"jsonrpc":"2.0","id":"cx-session","method":"ping"}"#;

/// How long ending the session at the server may take.
const DELETE_TIME: Duration = Duration::from_secs(2);

/// Maximum bytes of a session id, which is a token or a UUID.
const MAX_SESSION_ID: usize = 1024;

/// How often a broken stream is resumed, and the pauses before that. A pause doubles each time
/// unless the server asks for another one.
pub(crate) const MAX_RESUMES: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
pub(crate) const MAX_PAUSE: Duration = Duration::from_secs(30);

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The state that all tasks of one connection share.
pub(crate) struct HttpConnection {
    pub(crate) client: HttpClient,
    pub(crate) url: Url,
    pub(crate) configured: HttpKind,
    pub(crate) last_kind: Arc<LastKind>,
    pub(crate) inbox: Inbox,
    pub(crate) state: Arc<HttpState>,
    pub(crate) deadlines: Deadlines,
    pub(crate) negotiated: Mutex<Negotiated>,
    /// Answers and cancellations have separate permits: the server waits for answers, and there are many cancellations
    /// when a run ends.
    answers: Arc<Semaphore>,
    cancellations: Arc<Semaphore>,
    /// Ends all tasks.
    pub(crate) stop: CancellationToken,
}

/// A message that has no answer, and the consequence if too many are being sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Control {
    /// An answer to a request of the server. If too many wait, the server is at fault, and the connection ends.
    Answer,
    /// Tells the server that a call is cancelled. If too many wait, it is dropped: the server does some unnecessary
    /// work, but other runs keep their connection.
    Cancellation,
}

/// The results of the first exchanges.
#[derive(Default)]
pub(crate) struct Negotiated {
    pub(crate) session: Option<HeaderValue>,
    pub(crate) version: Option<HeaderValue>,
    /// Whether messages carry the headers of revision 2026-07-28, which has no sessions.
    pub(crate) is_stateless: bool,
    /// The URL for messages, with the older transport.
    pub(crate) endpoint: Option<Url>,
    /// Whether it is known which of the two transports the server uses.
    pub(crate) is_kind_known: bool,
}

impl HttpConnection {
    /// Returns the shared state, and the receiver of the messages for rmcp.
    pub(crate) fn new(
        client: HttpClient,
        config: &HttpTransport,
        last_kind: Arc<LastKind>,
        state: Arc<HttpState>,
        deadlines: Deadlines,
    ) -> (Arc<Self>, mpsc::Receiver<ServerJsonRpcMessage>) {
        let (inbox, incoming) = Inbox::new(Arc::clone(&client.server), state.notifications.clone());
        let connection = Self {
            client,
            url: config.url.clone(),
            configured: config.kind,
            last_kind,
            inbox,
            state,
            deadlines,
            negotiated: Mutex::default(),
            answers: Arc::new(Semaphore::new(MAX_CONTROL_POSTS)),
            cancellations: Arc::new(Semaphore::new(MAX_CONTROL_POSTS)),
            stop: CancellationToken::new(),
        };
        (Arc::new(connection), incoming)
    }

    /// The headers of every exchange after the first.
    pub(crate) fn headers(&self) -> HeaderMap {
        let negotiated = self.negotiated.lock();
        let mut headers = HeaderMap::new();
        if let Some(session) = &negotiated.session {
            headers.insert(SESSION_ID, session.clone());
        }
        let version = negotiated.version.clone().or_else(|| self.inbox.version.lock().clone());
        if let Some(version) = version {
            headers.insert(PROTOCOL_VERSION, version);
        }
        headers
    }

    pub(crate) async fn post(&self, body: &[u8], more: HeaderMap) -> Result<Response, RequestFailure> {
        let mut headers = self.headers();
        headers.extend(more);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
        let accepted = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(header::ACCEPT, accepted);
        let url = self.negotiated.lock().endpoint.clone();
        self.client.exchange(Method::POST, url.as_ref().unwrap_or(&self.url), headers, Some(body)).await
    }

    /// Opens the standalone stream for the server's own messages, or resumes a broken stream.
    pub(crate) async fn open_stream(&self, last_id: Option<&str>) -> Result<Events, RequestFailure> {
        let mut headers = self.headers();
        headers.insert(header::ACCEPT, HeaderValue::from_static(body::EVENT_STREAM));
        if let Some(id) = last_id.and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(LAST_EVENT_ID, id);
        }
        let response = self.client.exchange(Method::GET, &self.url, headers, None).await?;
        if !response.status().is_success() {
            return Err(self.client.status_error(&response).into());
        }
        match body::content_type(&response) {
            ContentType::EventStream => Ok(Events::new(response)),
            ContentType::Json | ContentType::Other(_) => {
                Err(RequestFailure::Unreadable("it is not a stream of events".to_owned()))
            }
        }
    }

    /// Reads events to the end of the stream, or until `id` has been answered.
    pub(crate) async fn read_events(
        self: &Arc<Self>,
        events: &mut Events,
        id: Option<i64>,
    ) -> Result<(), EventsError> {
        loop {
            // Reading never waits while a server sends faster than events are handled. Without this, neither the end
            // of the request nor that of the connection would be noticed, and no other task would run on this thread.
            consume_budget().await;
            let Some(event) = events.next().await? else { return Ok(()) };
            if event.name.is_empty() || event.name == "message" {
                self.receive(&event.data, id).await;
            }
            if id.is_some_and(|id| !self.inbox.is_pending(id)) {
                return Ok(());
            }
        }
    }

    pub(crate) async fn receive(self: &Arc<Self>, text: &[u8], id: Option<i64>) {
        for received in self.inbox.receive(text, id).await {
            match received {
                Received::Request(Reply::Now(answer)) => self.post_answer(&answer),
                Received::Request(Reply::Later(answer)) => {
                    let connection = Arc::clone(self);
                    // The task ends with the question, which ends with its call, or with the connection.
                    tokio::spawn(async move {
                        tokio::select! {
                            () = connection.stop.cancelled() => {}
                            answer = answer => answer.iter().for_each(|answer| connection.post_answer(answer)),
                        }
                    });
                }
                Received::Request(Reply::None) | Received::Handled => {}
            }
        }
    }

    fn post_answer(self: &Arc<Self>, answer: &Value) {
        self.post_control(answer.to_string().into_bytes(), HeaderMap::new(), Control::Answer);
    }

    /// Interprets a status other than success.
    pub(crate) async fn refused(&self, response: Response) -> RequestFailure {
        let status = response.status();
        let error = self.client.status_error(&response);
        let (has_session, is_stateless) = {
            let negotiated = self.negotiated.lock();
            (negotiated.session.is_some(), negotiated.is_stateless)
        };
        if status == StatusCode::NOT_FOUND && has_session && !is_stateless {
            return RequestFailure::SessionGone;
        }
        let is_plain = !status.is_client_error()
            || matches!(
                status,
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS
            );
        if is_plain {
            return RequestFailure::Failed(error);
        }
        if let Some(refusal) = body::read_refusal(response).await {
            // Some servers that have lost their sessions in a restart say so only in the error's text. The error of a
            // tool may have the same words, which a script can have chosen, so the text alone proves nothing.
            let may_be_gone = has_session
                && status == StatusCode::BAD_REQUEST
                && refusal.message.to_lowercase().contains("session");
            if may_be_gone && self.has_lost_session().await {
                return RequestFailure::SessionGone;
            }
            return RequestFailure::Refused(refusal);
        }
        RequestFailure::UnsupportedTransport(error)
    }

    /// Whether the server refuses a request without effects in this session too. A server that does not answer the ping
    /// has not refused it.
    async fn has_lost_session(&self) -> bool {
        match timeout(CONTROL_TIME, self.post(PING, HeaderMap::new())).await {
            Ok(Ok(answer)) => matches!(answer.status(), StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND),
            Ok(Err(_)) | Err(_) => false,
        }
    }

    /// Stores the session id of the server's first answer. Later answers cannot change it.
    pub(crate) fn keep_session(&self, response: &Response) -> Result<(), RequestFailure> {
        let Some(session) = response.headers().get(SESSION_ID) else { return Ok(()) };
        let mut negotiated = self.negotiated.lock();
        if negotiated.session.is_some() || negotiated.is_stateless {
            return Ok(());
        }
        let is_visible = session.as_bytes().iter().all(|byte| (b'!'..=b'~').contains(byte));
        if !is_visible || session.is_empty() || session.len() > MAX_SESSION_ID {
            return Err(RequestFailure::Unreadable("its session id is invalid".to_owned()));
        }
        let mut session = session.clone();
        session.set_sensitive(true);
        negotiated.session = Some(session);
        Ok(())
    }

    /// Posts a message that has no answer, without waiting for it.
    pub(crate) fn post_control(self: &Arc<Self>, body: Vec<u8>, headers: HeaderMap, kind: Control) {
        let permits = match kind {
            Control::Answer => &self.answers,
            Control::Cancellation => &self.cancellations,
        };
        let Ok(permit) = Arc::clone(permits).try_acquire_owned() else {
            if kind == Control::Cancellation {
                return;
            }
            tracing::warn!(
                server = &*self.client.server,
                "the server sends requests faster than it accepts answers"
            );
            self.state.end("asked too much at once");
            return;
        };
        let connection = Arc::clone(self);
        // The task ends by its deadline.
        tokio::spawn(async move {
            let posted = timeout(CONTROL_TIME, connection.post(&body, headers));
            tokio::select! {
                () = connection.stop.cancelled() => {}
                _ = posted => {}
            }
            drop(permit);
        });
    }

    /// Ends the session at the server, if there is one.
    pub(crate) async fn close(&self) {
        let session = self.negotiated.lock().session.take();
        if let Some(session) = session {
            let mut headers = self.headers();
            headers.insert(SESSION_ID, session);
            let told = self.client.exchange(Method::DELETE, &self.url, headers, None);
            let _answer = timeout(DELETE_TIME, told).await;
        }
        self.state.end("was closed");
        self.stop.cancel();
    }

    /// The error for a connection whose stream has ended.
    pub(crate) fn broken(&self, problem: &str) -> ToolError {
        unavailable(format!("server `{}` {problem}", self.client.server))
    }
}

/// The pause before the next attempt, after `attempts` of them.
pub(crate) fn pause(attempts: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(2u32.saturating_pow(attempts)).min(MAX_PAUSE)
}
