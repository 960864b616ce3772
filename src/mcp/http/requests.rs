//! Requests over an HTTP connection: each is answered, by the server or with an error. The first
//! one detects which of the two transports the server uses.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use rmcp::model::{ErrorCode, ErrorData};
use tokio::time::{Instant, sleep};

use super::body::{self, ContentType};
use super::connection::{HttpConnection, MAX_RESUMES, pause};
use super::events::{Events, EventsError};
use super::failure::RequestFailure;
use super::sse;
use crate::lines::events::EventError;
use crate::mcp::errors::{connect_timeout, unavailable};
use crate::mcp::patience::Patience;
use crate::mcp::settings::HttpKind;
use crate::net::media_type::JSON;

/// How long the other requests of a session that has ended may wait for their answers, and the interval at which
/// they are checked.
const LAST_ANSWERS_TIME: Duration = Duration::from_secs(1);
const LAST_ANSWERS_PAUSE: Duration = Duration::from_millis(10);

impl HttpConnection {
    /// Sends a request and ensures that it is answered, if necessary with an error. `patience` stops its
    /// time limit while the server waits for the user.
    pub(crate) async fn request(
        self: &Arc<Self>,
        id: i64,
        method: &str,
        body: &[u8],
        headers: HeaderMap,
        patience: &Patience,
    ) {
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
        let answered = tokio::select! {
            biased;
            answered = answered => Some(answered),
            () = patience.elapsed(limit, None) => None,
        };
        let problem = match answered {
            Some(Ok(())) => return,
            Some(Err(problem)) => problem,
            None => {
                let server = &self.client.server;
                let problem = format!("server `{server}` did not answer within {} ms", limit.as_millis());
                let error = if is_start { connect_timeout(&problem, "") } else { unavailable(problem) };
                RequestFailure::Failed(error)
            }
        };
        match &problem {
            // No message follows a failed start; rmcp would only try the older handshake.
            RequestFailure::Failed(error) if is_start => self.state.fail(error.clone()),
            RequestFailure::UnsupportedTransport(error) if method == "initialize" => {
                self.state.fail(error.clone());
            }
            _ => {}
        }
        let ends = matches!(problem, RequestFailure::SessionGone);
        if ends {
            // Cancelled first, so that a caller that sees the failure finds the connection retired.
            self.state.retired.cancel();
        }
        self.inbox.fail(id, problem).await;
        if ends {
            self.end_session().await;
        }
    }

    /// Ends the connection of a session that the server no longer knows. Answers to other requests, which are in
    /// flight, report the same; a request without an answer by then may have been executed before the session ended.
    async fn end_session(&self) {
        let until = Instant::now() + LAST_ANSWERS_TIME;
        while self.inbox.has_pending() && Instant::now() < until {
            sleep(LAST_ANSWERS_PAUSE).await;
        }
        self.state.end("ended the session");
    }

    /// Sends the first request, and detects which of the two transports the server uses.
    async fn first(
        self: &Arc<Self>,
        id: i64,
        method: &str,
        body: &[u8],
        headers: HeaderMap,
    ) -> Result<(), RequestFailure> {
        let kind = match self.configured {
            HttpKind::Detect => self.last_kind.get(),
            kind => kind,
        };
        let is_kind_known = self.negotiated.lock().is_kind_known;
        if kind == HttpKind::Sse && !is_kind_known {
            self.use_sse().await?;
        }
        let problem = match self.ask(id, body, headers.clone()).await {
            Ok(()) => {
                self.record_kind(HttpKind::Streamable);
                return Ok(());
            }
            Err(RequestFailure::Refused(error)) => {
                // The server answers with JSON-RPC, so it uses this transport.
                self.record_kind(HttpKind::Streamable);
                return Err(RequestFailure::Refused(error));
            }
            Err(problem) => problem,
        };
        if !matches!(problem, RequestFailure::UnsupportedTransport(_)) {
            return Err(problem);
        }
        if kind == HttpKind::Detect && !is_kind_known && self.use_sse().await.is_ok() {
            return self.ask(id, body, headers).await;
        }
        // Another server may use this URL by now. The next connection detects the transport again.
        self.last_kind.set(HttpKind::Detect);
        if method == "server/discover" {
            // Older servers refuse requests before the handshake in different ways. The client then
            // tries the handshake and reports its failure.
            return Err(RequestFailure::Refused(ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                "not supported",
                None,
            )));
        }
        Err(problem)
    }

    fn record_kind(&self, kind: HttpKind) {
        let mut negotiated = self.negotiated.lock();
        if !negotiated.is_kind_known {
            negotiated.is_kind_known = true;
            self.last_kind.set(kind);
        }
    }

    async fn use_sse(self: &Arc<Self>) -> Result<(), RequestFailure> {
        let (endpoint, events) = sse::open(self, &self.url).await?;
        self.negotiated.lock().endpoint = Some(endpoint);
        self.record_kind(HttpKind::Sse);
        let connection = Arc::clone(self);
        // The task ends with the stream, and with it the connection ends.
        tokio::spawn(async move {
            tokio::select! {
                () = connection.stop.cancelled() => {}
                () = sse::read(&connection, events) => {}
            }
        });
        Ok(())
    }

    /// Sends a request and reads until its answer has arrived, unless the answer comes on another
    /// stream.
    async fn ask(self: &Arc<Self>, id: i64, body: &[u8], headers: HeaderMap) -> Result<(), RequestFailure> {
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
        match body::content_type(&response) {
            _ if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) => {
                Err(RequestFailure::Unreadable(format!("it is empty ({status})")))
            }
            ContentType::Json => {
                let text = body::read(response).await?;
                self.receive(&text, Some(id)).await;
                if self.inbox.is_pending(id) {
                    return Err(RequestFailure::Unreadable("it does not answer the request".to_owned()));
                }
                Ok(())
            }
            ContentType::EventStream => self.read_answer(id, Events::new(response)).await,
            ContentType::Other(kind) => {
                Err(RequestFailure::Unreadable(format!("its content type is {kind}, expected `{JSON}`")))
            }
        }
    }

    /// Reads events until the answer has arrived. A stream that breaks before that is resumed if
    /// the server gave its events ids; the request itself is never sent again.
    async fn read_answer(self: &Arc<Self>, id: i64, mut events: Events) -> Result<(), RequestFailure> {
        let mut resumes = 0;
        loop {
            let end = match self.read_events(&mut events, Some(id)).await {
                Ok(()) if !self.inbox.is_pending(id) => return Ok(()),
                Ok(()) => "the stream ended".to_owned(),
                Err(EventsError::Refused(error @ EventError::TooLarge(_))) => {
                    return Err(RequestFailure::Oversized(error.to_string()));
                }
                Err(EventsError::Refused(error @ EventError::Noise(_))) => {
                    return Err(RequestFailure::Unreadable(error.to_string()));
                }
                Err(EventsError::Broken(cause)) => cause,
            };
            let Some(last_id) = events.last_id().map(str::to_owned).filter(|_| resumes < MAX_RESUMES) else {
                let server = &self.client.server;
                return Err(RequestFailure::Failed(unavailable(format!(
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
                RequestFailure::Failed(unavailable(format!(
                    "server `{server}` broke off before it answered; whether the call took effect is unknown: {cause}"
                )))
            })?;
        }
    }
}
