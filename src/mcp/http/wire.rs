//! The transport over HTTP: a POST for each message, answers on its response or on a stream.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use parking_lot::Mutex;
use reqwest::Response;
use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorCode, ErrorData, JsonRpcMessage,
    ProtocolVersion, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use url::Url;

use super::body::{self, Kind};
use super::client::HttpClient;
use super::events::{Events, EventsError};
use super::failure::Problem;
use super::inbox::{Inbox, Pending, Taken};
use super::{Deadlines, HttpState, Known};
use crate::mcp::answers::{encoded, expected};
use crate::mcp::errors::unavailable;
use crate::mcp::settings::HttpKind;
use crate::mcp::sse;
use crate::tools::ToolError;

/// Maximum number of control messages that are being sent at once: answers to the server's
/// requests, and notifications of cancelled calls. A server that sends requests faster than it
/// accepts answers is disconnected.
const MAX_CONTROL_POSTS: usize = 16;
const CONTROL_TIME: Duration = Duration::from_secs(5);

/// How long ending the session at the server may take.
const DELETE_TIME: Duration = Duration::from_secs(2);

/// How often a broken stream is resumed, and the pauses before that. A pause doubles each time
/// unless the server asks for another one.
const MAX_RESUMES: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Maximum bytes of a session id, which is a token or a UUID.
const MAX_SESSION_ID: usize = 1024;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The state that all tasks of one connection share.
pub(in crate::mcp) struct Link {
    pub(in crate::mcp) client: HttpClient,
    url: Url,
    configured: HttpKind,
    known: Arc<Known>,
    inbox: Inbox,
    pub(in crate::mcp) state: Arc<HttpState>,
    deadlines: Deadlines,
    negotiated: Mutex<Negotiated>,
    control: Arc<Semaphore>,
    /// Ends all tasks.
    pub(in crate::mcp) stop: CancellationToken,
}

/// The results of the first exchanges.
#[derive(Default)]
struct Negotiated {
    session: Option<HeaderValue>,
    version: Option<HeaderValue>,
    /// Whether messages carry the headers of revision 2026-07-28, which has no sessions.
    is_modern: bool,
    /// The URL for messages, with the older transport.
    endpoint: Option<Url>,
    /// Whether it is known which of the two transports the server uses.
    is_settled: bool,
}

/// The client's end of an HTTP connection. Its tasks end when it is dropped.
pub(in crate::mcp) struct HttpWire {
    link: Arc<Link>,
    incoming: mpsc::Receiver<ServerJsonRpcMessage>,
    _stop: DropGuard,
}

impl HttpWire {
    pub(super) fn new(
        client: HttpClient,
        url: Url,
        configured: HttpKind,
        known: Arc<Known>,
        state: Arc<HttpState>,
        deadlines: Deadlines,
    ) -> Self {
        let stop = CancellationToken::new();
        let (inbox, incoming) = Inbox::new(Arc::clone(&client.server), state.notifications.clone());
        let link = Link {
            client,
            url,
            configured,
            known,
            inbox,
            state,
            deadlines,
            negotiated: Mutex::default(),
            control: Arc::new(Semaphore::new(MAX_CONTROL_POSTS)),
            stop: stop.clone(),
        };
        Self { link: Arc::new(link), incoming, _stop: stop.drop_guard() }
    }
}

impl Transport<RoleClient> for HttpWire {
    type Error = io::Error;

    /// Requests are registered at once and sent by tasks of their own. The notification that ends
    /// the handshake is awaited, because servers refuse messages that overtake it.
    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let link = Arc::clone(&self.link);
        let sending = link.clone().prepare(message);
        async move {
            let Some((body, headers)) = sending? else { return Ok(()) };
            link.finish_handshake(body, headers).await;
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        tokio::select! {
            biased;
            message = self.incoming.recv() => message,
            () = self.link.state.ended.cancelled() => None,
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.link.close().await;
        Ok(())
    }
}

impl Drop for HttpWire {
    fn drop(&mut self) {
        self.link.state.end("was closed");
    }
}

impl Link {
    /// Starts sending what need not be awaited, and returns the notification that has to be
    /// awaited.
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
                let (body, headers) = self.encode(&message)?;
                let cancel = CancellationToken::new();
                self.inbox.expect(id, Pending { expected, cancel: cancel.clone() });
                // The task ends with its request, or with the connection.
                tokio::spawn(async move {
                    tokio::select! {
                        biased;
                        () = self.stop.cancelled() => {}
                        () = cancel.cancelled() => {}
                        () = self.request(id, &method, &body, headers) => {}
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
                        if !self.negotiated.lock().is_modern {
                            self.post_control(body, headers, false);
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
                negotiated.is_modern = version.as_str() >= ProtocolVersion::STANDARD_HEADERS.as_str();
                negotiated.version = HeaderValue::from_str(version.as_str()).ok();
            } else if matches!(&request.request, ClientRequest::InitializeRequest(_)) {
                negotiated.is_modern = false;
                negotiated.version = None;
                *self.inbox.version.lock() = None;
            }
        }
        let mut headers = HeaderMap::new();
        if negotiated.is_modern {
            headers = self.inbox.promotions.headers(&body);
        }
        drop(negotiated);
        Ok((body, headers))
    }

    /// The headers of every exchange after the first.
    fn headers(&self) -> HeaderMap {
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

    async fn post(&self, body: &[u8], more: HeaderMap) -> Result<Response, Problem> {
        let mut headers = self.headers();
        headers.extend(more);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(body::JSON));
        let accepted = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(header::ACCEPT, accepted);
        let url = self.negotiated.lock().endpoint.clone();
        self.client.exchange(Method::POST, url.as_ref().unwrap_or(&self.url), headers, Some(body)).await
    }

    /// Opens the standalone stream for the server's own messages, or resumes a broken stream.
    pub(in crate::mcp) async fn open_stream(&self, last_id: Option<&str>) -> Result<Events, Problem> {
        let mut headers = self.headers();
        headers.insert(header::ACCEPT, HeaderValue::from_static(body::EVENT_STREAM));
        if let Some(id) = last_id.and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(LAST_EVENT_ID, id);
        }
        let response = self.client.exchange(Method::GET, &self.url, headers, None).await?;
        if !response.status().is_success() {
            return Err(self.client.status_error(&response).into());
        }
        match body::kind(&response) {
            Kind::EventStream => Ok(Events::new(response)),
            Kind::Json | Kind::Other(_) => {
                Err(Problem::Unreadable("it is not a stream of events".to_owned()))
            }
        }
    }

    /// Sends a request and ensures that it is answered, if necessary with an error.
    async fn request(self: &Arc<Self>, id: i64, method: &str, body: &[u8], headers: HeaderMap) {
        let is_start = matches!(method, "initialize" | "server/discover");
        let limit = match method {
            _ if is_start => self.deadlines.connect,
            // A subscription has no deadline; it ends when it is cancelled.
            "subscriptions/listen" => Duration::MAX,
            _ => self.deadlines.request,
        };
        let answered = async {
            if is_start {
                self.first(id, method, body, headers).await
            } else {
                self.ask(id, body, headers).await
            }
        };
        let problem = match timeout(limit, answered).await {
            Ok(Ok(())) => return,
            Ok(Err(problem)) => problem,
            Err(_elapsed) => {
                let server = &self.client.server;
                let message = format!("server `{server}` did not answer within {} ms", limit.as_millis());
                Problem::Failed(unavailable(message))
            }
        };
        match &problem {
            // No message follows a failed start; rmcp would only try the older handshake.
            Problem::Failed(error) if is_start => self.state.fail(error.clone()),
            Problem::NotSpoken(error) if method == "initialize" => self.state.fail(error.clone()),
            _ => {}
        }
        let ends = matches!(problem, Problem::SessionGone);
        self.inbox.fail(id, problem).await;
        if ends {
            self.state.end("ended the session");
        }
    }

    /// Sends the first request, and detects which of the two transports the server uses.
    async fn first(
        self: &Arc<Self>,
        id: i64,
        method: &str,
        body: &[u8],
        headers: HeaderMap,
    ) -> Result<(), Problem> {
        let kind = match self.configured {
            HttpKind::Detect => self.known.get(),
            kind => kind,
        };
        let is_settled = self.negotiated.lock().is_settled;
        if kind == HttpKind::Sse && !is_settled {
            self.use_sse().await?;
        }
        let problem = match self.ask(id, body, headers.clone()).await {
            Ok(()) => {
                self.settle(HttpKind::Streamable);
                return Ok(());
            }
            Err(Problem::Refused(error)) => {
                // The server answers with JSON-RPC, so it uses this transport.
                self.settle(HttpKind::Streamable);
                return Err(Problem::Refused(error));
            }
            Err(problem) => problem,
        };
        if !matches!(problem, Problem::NotSpoken(_)) {
            return Err(problem);
        }
        if kind == HttpKind::Detect && !is_settled && self.use_sse().await.is_ok() {
            return self.ask(id, body, headers).await;
        }
        // Another server may use this URL by now. The next connection detects the transport again.
        self.known.set(HttpKind::Detect);
        if method == "server/discover" {
            // Older servers refuse requests before the handshake in different ways. The client then
            // tries the handshake and reports its failure.
            return Err(Problem::Refused(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "not spoken", None)));
        }
        Err(problem)
    }

    fn settle(&self, kind: HttpKind) {
        let mut negotiated = self.negotiated.lock();
        if !negotiated.is_settled {
            negotiated.is_settled = true;
            self.known.set(kind);
        }
    }

    async fn use_sse(self: &Arc<Self>) -> Result<(), Problem> {
        let (endpoint, events) = sse::open(self, &self.url).await?;
        self.negotiated.lock().endpoint = Some(endpoint);
        self.settle(HttpKind::Sse);
        let link = Arc::clone(self);
        // The task ends with the stream, and with it the connection ends.
        tokio::spawn(async move {
            tokio::select! {
                () = link.stop.cancelled() => {}
                () = sse::read(&link, events) => {}
            }
        });
        Ok(())
    }

    /// Sends a request and reads until its answer has arrived, unless the answer comes on another
    /// stream.
    async fn ask(self: &Arc<Self>, id: i64, body: &[u8], headers: HeaderMap) -> Result<(), Problem> {
        let response = self.post(body, headers).await?;
        let status = response.status();
        if !status.is_success() {
            return Err(self.refused(response).await);
        }
        let has_stream = self.negotiated.lock().endpoint.is_some();
        if has_stream {
            return Ok(());
        }
        self.keep_session(&response)?;
        match body::kind(&response) {
            _ if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) => {
                Err(Problem::Unreadable(format!("it is empty ({status})")))
            }
            Kind::Json => {
                let text = body::read(response).await?;
                self.take(&text, Some(id)).await;
                if self.inbox.is_pending(id) {
                    return Err(Problem::Unreadable("it does not answer the request".to_owned()));
                }
                Ok(())
            }
            Kind::EventStream => self.read_answer(id, Events::new(response)).await,
            Kind::Other(kind) => {
                Err(Problem::Unreadable(format!("its content type is {kind}, expected `{}`", body::JSON)))
            }
        }
    }

    /// Reads events until the answer has arrived. A stream that breaks before that is resumed if
    /// the server gave its events ids; the request itself is never sent again.
    async fn read_answer(self: &Arc<Self>, id: i64, mut events: Events) -> Result<(), Problem> {
        let mut resumes = 0;
        loop {
            let end = match self.read_events(&mut events, Some(id)).await {
                Ok(()) if !self.inbox.is_pending(id) => return Ok(()),
                Ok(()) => "the stream ended".to_owned(),
                Err(EventsError::TooLarge) => {
                    return Err(Problem::Oversized(EventsError::TooLarge.to_string()));
                }
                Err(error @ EventsError::Noise) => return Err(Problem::Unreadable(error.to_string())),
                Err(EventsError::Broken(cause)) => cause,
            };
            let Some(last_id) = events.last_id().map(str::to_owned).filter(|_| resumes < MAX_RESUMES) else {
                let server = &self.client.server;
                return Err(Problem::Failed(unavailable(format!(
                    "server `{server}` broke off before it answered; whether the call took effect is unknown: {end}"
                ))));
            };
            sleep(events.retry().unwrap_or_else(|| pause(resumes))).await;
            resumes += 1;
            events = self.open_stream(Some(&last_id)).await.map_err(|problem| {
                // Whatever the reason why the stream cannot be resumed: the call itself was
                // received.
                let server = &self.client.server;
                let cause = problem.into_error_data(server).message;
                Problem::Failed(unavailable(format!(
                    "server `{server}` broke off before it answered; whether the call took effect is unknown: {cause}"
                )))
            })?;
        }
    }

    /// Reads events to the end of the stream, or until `id` has been answered.
    pub(in crate::mcp) async fn read_events(
        self: &Arc<Self>,
        events: &mut Events,
        id: Option<i64>,
    ) -> Result<(), EventsError> {
        while let Some(event) = events.next().await? {
            if event.name.is_empty() || event.name == "message" {
                self.take(&event.data, id).await;
            }
            if id.is_some_and(|id| !self.inbox.is_pending(id)) {
                break;
            }
        }
        Ok(())
    }

    async fn take(self: &Arc<Self>, text: &[u8], id: Option<i64>) {
        for taken in self.inbox.take(text, id).await {
            if let Taken::Asked(answer) = taken {
                self.post_control(answer.to_string().into_bytes(), HeaderMap::new(), true);
            }
        }
    }

    /// Interprets a status other than success.
    async fn refused(&self, response: Response) -> Problem {
        let status = response.status();
        let error = self.client.status_error(&response);
        let (has_session, is_modern) = {
            let negotiated = self.negotiated.lock();
            (negotiated.session.is_some(), negotiated.is_modern)
        };
        if status == StatusCode::NOT_FOUND && has_session && !is_modern {
            return Problem::SessionGone;
        }
        let is_plain = !status.is_client_error()
            || matches!(
                status,
                StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS
            );
        if is_plain {
            return Problem::Failed(error);
        }
        if let Some(refusal) = body::read_refusal(response).await {
            // Some servers that have lost their sessions in a restart say so only in the error's
            // text.
            if has_session
                && status == StatusCode::BAD_REQUEST
                && refusal.message.to_lowercase().contains("session")
            {
                return Problem::SessionGone;
            }
            return Problem::Refused(refusal);
        }
        Problem::NotSpoken(error)
    }

    /// Stores the session id of the server's first answer. Later answers cannot change it.
    fn keep_session(&self, response: &Response) -> Result<(), Problem> {
        let Some(session) = response.headers().get(SESSION_ID) else { return Ok(()) };
        let mut negotiated = self.negotiated.lock();
        if negotiated.session.is_some() || negotiated.is_modern {
            return Ok(());
        }
        let is_visible = session.as_bytes().iter().all(|byte| (b'!'..=b'~').contains(byte));
        if !is_visible || session.is_empty() || session.len() > MAX_SESSION_ID {
            return Err(Problem::Unreadable("its session id is not one".to_owned()));
        }
        let mut session = session.clone();
        session.set_sensitive(true);
        negotiated.session = Some(session);
        Ok(())
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
                tracing::warn!(server = &*self.client.server, "a notification was not taken");
            }
        }
        let listens = {
            let negotiated = self.negotiated.lock();
            negotiated.endpoint.is_none() && !negotiated.is_modern
        };
        if listens {
            let link = self;
            // The task ends with the connection, or when the server has no such stream or it breaks
            // too often.
            tokio::spawn(async move {
                tokio::select! {
                    () = link.stop.cancelled() => {}
                    () = link.listen() => {}
                }
            });
        }
    }

    /// Reads the standalone stream, and reopens it a bounded number of times. Calls do not need it.
    async fn listen(self: &Arc<Self>) {
        let mut breaks = 0;
        let mut last_id: Option<String> = None;
        while breaks <= MAX_RESUMES {
            let Ok(mut events) = self.open_stream(last_id.as_deref()).await else { return };
            let opened = tokio::time::Instant::now();
            let ended = self.read_events(&mut events, None).await;
            if !matches!(ended, Ok(()) | Err(EventsError::Broken(_))) {
                tracing::warn!(server = &*self.client.server, "the server's own stream is given up");
                return;
            }
            // The count starts again after a stream that lasted longer than this: servers and
            // proxies close idle streams every few minutes.
            breaks = if opened.elapsed() > MAX_PAUSE { 0 } else { breaks + 1 };
            last_id = events.last_id().map(str::to_owned).or(last_id);
            sleep(events.retry().unwrap_or_default().max(pause(breaks))).await;
        }
    }

    /// Posts a message that has no answer, without waiting for it. If too many answers are being
    /// sent, the server is at fault and the connection ends. If too many cancellations are being
    /// sent, further ones are dropped: that costs the server some work, but no other run its
    /// connection.
    fn post_control(self: &Arc<Self>, body: Vec<u8>, headers: HeaderMap, is_answer: bool) {
        let Ok(permit) = Arc::clone(&self.control).try_acquire_owned() else {
            if !is_answer {
                return;
            }
            tracing::warn!(server = &*self.client.server, "the server asks faster than it takes answers");
            self.state.end("asked too much at once");
            return;
        };
        let link = Arc::clone(self);
        // The task ends by its deadline.
        tokio::spawn(async move {
            let posted = timeout(CONTROL_TIME, link.post(&body, headers));
            tokio::select! {
                () = link.stop.cancelled() => {}
                _ = posted => {}
            }
            drop(permit);
        });
    }

    /// Ends the session at the server, if there is one.
    async fn close(&self) {
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
    pub(in crate::mcp) fn broken(&self, problem: &str) -> ToolError {
        unavailable(format!("server `{}` {problem}", self.client.server))
    }
}

fn pause(attempts: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(2u32.saturating_pow(attempts)).min(MAX_PAUSE)
}
