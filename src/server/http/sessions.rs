//! The sessions of clients of the handshake revisions.
//!
//! rmcp's own session manager does not bound what it keeps for clients that may reconnect, blocks a whole session if
//! its client does not read one stream, and identifies requests by the client's ids. Here what is kept has bounds, a
//! request ends when its client has been away for too long, streams do not block each other, and rmcp sees ids of
//! cx's, as over stdio.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use parking_lot::Mutex;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId};
use tokio_util::sync::CancellationToken;

use super::accepted::AcceptedToken;
use super::events::NotResumed;
use super::kept::{KeptEvents, MAX_BYTES};
use super::session::{HttpSession, SessionError, SessionTransport};
use super::shares::{Holder, TenantKey, select_for_eviction};
use super::tenant_state::Requester;
use crate::server::answer_size::AnswerSize;
use crate::server::calls::CallsInFlight;
use crate::server::metrics;
use crate::server::session::McpSession;
use crate::server::shared::Shared;
use crate::text::ids::random_id;

/// Maximum interval between two checks for expired sessions.
const EXPIRY: Duration = Duration::from_secs(15);

tokio::task_local! {
    /// Whether the request of this task was refused a session because there are too many. rmcp returns the same error
    /// for all reasons, and a client that may retry must be told.
    pub(crate) static REFUSED: Cell<bool>;

    /// Why the request of this task cannot resume a stream. rmcp answers with an empty stream, and a client that gets
    /// one reconnects.
    pub(crate) static NOT_RESUMED: Cell<Option<NotResumed>>;

    /// Is told how much waits in the stream that this task's request resumes.
    pub(crate) static RESUMED_ANSWER: Option<AnswerSize>;

    /// The sender of this task's request.
    pub(crate) static REQUESTER: Requester;
}

/// Maximum number of sessions, and their maximum idle time.
#[derive(Clone, Copy)]
pub(crate) struct SessionBounds {
    pub(crate) max: usize,
    pub(crate) idle: Duration,
}

/// All sessions over HTTP.
pub(crate) struct Sessions {
    shared: Arc<Shared>,
    bounds: SessionBounds,
    /// Cancels the runs of all sessions.
    runs: CancellationToken,
    /// The calls of all sessions.
    calls: Arc<CallsInFlight>,
    open: Mutex<HashMap<SessionId, Arc<HttpSession>>>,
    /// What is kept for clients that resume a stream.
    kept: Arc<KeptEvents>,
}

impl Sessions {
    pub(crate) fn new(
        shared: Arc<Shared>,
        bounds: SessionBounds,
        runs: CancellationToken,
        calls: Arc<CallsInFlight>,
    ) -> Self {
        let kept = Arc::new(KeptEvents::new(MAX_BYTES));
        Self { shared, bounds, runs, calls, open: Mutex::default(), kept }
    }

    /// The number of sessions.
    pub(crate) fn count(&self) -> usize {
        self.open.lock().len()
    }

    /// Whether there is a session of this id.
    pub(crate) fn knows(&self, id: &str) -> bool {
        self.open.lock().contains_key(id)
    }

    /// Whether there is a session of this id that is another tenant's.
    pub(crate) fn is_of_other(&self, id: &str, tenant: TenantKey) -> bool {
        self.open.lock().get(id).is_some_and(|session| !session.is_of(tenant))
    }

    /// Whether the session's client has a standalone stream open.
    pub(crate) fn is_listening(&self, id: &str) -> bool {
        let session = self.open.lock().get(id).cloned();
        session.is_some_and(|session| session.is_listening())
    }

    /// Interval of the checks for expired sessions.
    pub(crate) fn expiry_interval(&self) -> Duration {
        self.bounds.idle.clamp(Duration::from_millis(10), EXPIRY)
    }

    /// Ends the sessions that were idle for too long, and the requests whose clients were away for too long.
    pub(crate) fn expire(&self) {
        let idle = self.bounds.idle;
        let mut open = self.open.lock();
        open.retain(|_, session| {
            session.expire_streams();
            let is_kept = session.idle_time().is_none_or(|time| time <= idle);
            if !is_kept {
                session.end();
            }
            is_kept
        });
    }

    /// Cancels the runs of the sessions that began with this token, and ends their standalone streams. Their calls can
    /// still be answered.
    pub(crate) fn cancel_runs_of(&self, token: &Arc<AcceptedToken>) {
        for session in self.open.lock().values().filter(|session| session.was_begun_with(token)) {
            session.mcp.runs.cancel();
            session.end_listening();
        }
    }

    /// Ends the sessions that began with this token, which was revoked. No session begins with it afterwards.
    pub(crate) fn end_of(&self, token: &Arc<AcceptedToken>) {
        self.open.lock().retain(|_, session| {
            let is_kept = !session.was_begun_with(token);
            if !is_kept {
                session.end();
            }
            is_kept
        });
    }

    /// Ends all standalone streams, so that their connections can end.
    pub(crate) fn end_listening(&self) {
        for session in self.open.lock().values() {
            session.end_listening();
        }
    }

    fn session(&self, id: &SessionId) -> Result<Arc<HttpSession>, SessionError> {
        self.open.lock().get(id).cloned().ok_or(SessionError::Ended)
    }
}

/// Evicts a session for a new one of `newcomer`: a session whose client sent nothing after its first request, one that
/// has been idle for long enough, or one of a tenant or peer above its share.
fn make_room(
    open: &mut HashMap<SessionId, Arc<HttpSession>>,
    newcomer: Holder,
    max: usize,
) -> Result<(), SessionError> {
    let held = open.iter().map(|(id, session)| session.held(Arc::clone(id))).collect();
    let id = select_for_eviction(held, newcomer, max).ok_or(SessionError::TooMany)?;
    if let Some(session) = open.remove(&id) {
        metrics::count_evicted("session");
        session.end();
    }
    Ok(())
}

/// The token of this task's request.
fn requester_token() -> Option<Arc<AcceptedToken>> {
    REQUESTER.try_with(|requester| requester.token.clone()).ok().flatten()
}

impl SessionManager for Sessions {
    type Error = SessionError;
    type Transport = SessionTransport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), SessionError> {
        let id = SessionId::from(random_id().map_err(SessionError::NoId)?);
        let requester = REQUESTER.try_with(Clone::clone).map_err(|_unset| SessionError::NoRequester)?;
        let Requester { tenant, token, peer } = requester;
        let holder = Holder { tenant: tenant.key, peer };
        let mut open = self.open.lock();
        // Checked under the lock that `end_of` takes afterwards.
        if token.as_ref().is_some_and(|token| token.revoked.is_cancelled()) {
            return Err(SessionError::Ended);
        }
        if open.len() >= self.bounds.max
            && let Err(refused) = make_room(&mut open, holder, self.bounds.max)
        {
            let _elsewhere = REFUSED.try_with(|is_refused| is_refused.set(true));
            return Err(refused);
        }
        let calls = Arc::new(CallsInFlight::within(&self.calls));
        let session = McpSession::new(Arc::clone(&self.shared), self.runs.child_token(), calls);
        let session = session.with_own_state(&id).with_rates(Arc::clone(&tenant.rates));
        let session = session.of_tenant(tenant.name.as_ref());
        let (session, transport) = HttpSession::new(session, holder, token, Arc::clone(&self.kept));
        open.insert(Arc::clone(&id), session);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionError> {
        let session = self.session(id)?;
        let mut answers = Arc::clone(&session).begin(message, None).await?;
        let answer = answers.next().await.and_then(|event| event.message).ok_or(SessionError::Ended)?;
        session.note_revision(&answer);
        Ok(Arc::unwrap_or_clone(answer))
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionError> {
        Ok(self.knows(id))
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionError> {
        if let Some(session) = self.open.lock().remove(id) {
            session.end();
        }
        Ok(())
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        let session = self.session(id)?;
        session.streams.lock().is_used = true;
        let token = requester_token();
        session.begin(message, token).await
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionError> {
        self.session(id)?.accept(message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        Ok(self.session(id)?.listen())
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        let token = requester_token();
        let size = RESUMED_ANSWER.try_with(Clone::clone).ok().flatten();
        self.session(id)?.resume(&last_event_id, token.as_ref(), size).map_err(|reason| {
            let _elsewhere = NOT_RESUMED.try_with(|told| told.set(Some(reason)));
            SessionError::NotResumed(reason)
        })
    }
}

#[cfg(test)]
mod tests;
