//! Access control of the page: the tokens that it accepts, and addresses that work once.
//!
//! A browser keeps its session token in the memory of one tab and sends it in a header. A cookie would also be sent to
//! every other program that listens on this host, because cookies do not distinguish ports.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use parking_lot::Mutex;

use crate::error::Error;
use crate::server::http::accepted::AcceptedToken;
use crate::server::http::authentication::bearer;
use crate::server::http::token::HttpToken;

/// Maximum number of browser sessions, and how long an idle one is kept. Beyond the number, the session that was idle
/// for longest ends.
const MAX_SESSIONS: usize = 16;
const MAX_IDLE: Duration = Duration::from_secs(12 * 60 * 60);

/// How long a one-time token works: long enough for a slow browser to start, or for a user to copy an address.
const MAX_UNUSED: Duration = Duration::from_secs(10 * 60);

/// Maximum number of unused one-time tokens, and of unused addresses of runs.
const MAX_OPEN: usize = 64;

/// How long the address of a run works. The page uses it at once.
const MAX_TICKET: Duration = Duration::from_secs(30);

/// The tokens of a page.
#[derive(Default)]
pub(super) struct Access {
    operator: Option<HttpToken>,
    known: Mutex<PageTokens>,
}

#[derive(Default)]
struct PageTokens {
    one_time: Vec<(HttpToken, Instant)>,
    sessions: Vec<PageSession>,
    tickets: Vec<(HttpToken, Instant, String)>,
}

/// A session of a browser.
struct PageSession {
    token: HttpToken,
    used: Instant,
    /// The server's token with which the session was started; the session ends when it is revoked. `None` for a
    /// one-time token.
    started_with: Option<Arc<AcceptedToken>>,
}

impl Access {
    pub(super) fn new(operator: Option<HttpToken>) -> Self {
        Self { operator, known: Mutex::default() }
    }

    /// Whether the request has the token of the user's other commands.
    fn is_operator(&self, headers: &HeaderMap) -> bool {
        let token = bearer(headers);
        self.operator.as_ref().zip(token).is_some_and(|(operator, token)| operator.matches(token))
    }

    /// Whether the request has the token of the user's other commands, or that of a session.
    pub(super) fn is_allowed(&self, headers: &HeaderMap) -> bool {
        if self.is_operator(headers) {
            return true;
        }
        let Some(token) = bearer(headers) else { return false };
        let mut known = self.known.lock();
        known.forget_old();
        let session = known.sessions.iter_mut().find(|session| session.token.matches(token));
        session.map(|session| session.used = Instant::now()).is_some()
    }

    /// Makes a token that starts one session.
    ///
    /// # Errors
    ///
    /// If the system provides no random numbers.
    pub(super) fn one_time_token(&self) -> Result<String, Error> {
        let (token, text) = HttpToken::generate()?;
        let mut known = self.known.lock();
        known.forget_old();
        if known.one_time.len() >= MAX_OPEN {
            known.one_time.remove(0);
        }
        known.one_time.push((token, Instant::now()));
        Ok(text)
    }

    /// Whether the request has a token that starts a session. The token does not work again.
    pub(super) fn use_one_time_token(&self, headers: &HeaderMap) -> bool {
        let Some(token) = bearer(headers) else { return false };
        let mut known = self.known.lock();
        known.forget_old();
        let found = known.one_time.iter().position(|(one_time, _)| one_time.matches(token));
        found.map(|position| known.one_time.remove(position)).is_some()
    }

    /// Starts a session and returns its token. The session ends when `started_with` is revoked.
    ///
    /// # Errors
    ///
    /// If the system provides no random numbers.
    pub(super) fn start_session(&self, started_with: Option<Arc<AcceptedToken>>) -> Result<String, Error> {
        let (token, text) = HttpToken::generate()?;
        let mut known = self.known.lock();
        known.forget_old();
        if known.sessions.len() >= MAX_SESSIONS
            && let Some(idle) =
                (0..known.sessions.len()).min_by_key(|&position| known.sessions[position].used)
        {
            known.sessions.remove(idle);
        }
        known.sessions.push(PageSession { token, used: Instant::now(), started_with });
        Ok(text)
    }

    /// Makes a name under which a frame of the page can fetch this run once. A frame sends no headers.
    ///
    /// # Errors
    ///
    /// If the system provides no random numbers.
    pub(super) fn ticket(&self, run: &str) -> Result<String, Error> {
        let (token, text) = HttpToken::generate()?;
        let mut known = self.known.lock();
        known.forget_old();
        if known.tickets.len() >= MAX_OPEN {
            known.tickets.remove(0);
        }
        known.tickets.push((token, Instant::now(), run.to_owned()));
        Ok(text)
    }

    /// Returns the run of a name and removes the name.
    pub(super) fn use_ticket(&self, name: &str) -> Option<String> {
        let mut known = self.known.lock();
        known.forget_old();
        let found = known.tickets.iter().position(|(ticket, ..)| ticket.matches(name.as_bytes()))?;
        Some(known.tickets.remove(found).2)
    }
}

impl PageTokens {
    fn forget_old(&mut self) {
        self.one_time.retain(|(_, made)| made.elapsed() < MAX_UNUSED);
        self.sessions.retain(|session| {
            let is_revoked = session.started_with.as_ref().is_some_and(|token| token.revoked.is_cancelled());
            !is_revoked && session.used.elapsed() < MAX_IDLE
        });
        self.tickets.retain(|(_, made, _)| made.elapsed() < MAX_TICKET);
    }
}

#[cfg(test)]
mod tests;
