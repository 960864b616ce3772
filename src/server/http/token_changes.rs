//! Takes up changes of the tenants while the server serves: the tokens that are added, and those that are revoked.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use super::accepted::{AcceptedToken, TokenChanges};
use super::state::HttpState;
use super::tenants::{HttpTenant, TenantReader};
use crate::error::Error;
use crate::run::observer::TokenEvent;
use crate::server::metrics;
use crate::server::shutdown::{MAX_CANCELLATION, MAX_LAST_WRITE};

/// How often the tenants are read again.
const INTERVAL: Duration = Duration::from_secs(2);

/// How long reading may take before that is reported. It takes milliseconds, and a second while something writes.
const MAX_READ: Duration = Duration::from_secs(10);

/// How long the clients of a revoked token have to receive the answers of their cancelled runs. The end of a server
/// gives them as much.
const MAX_ANSWER: Duration = MAX_CANCELLATION.saturating_add(MAX_LAST_WRITE);

/// Follows the tenants until it is dropped.
pub(super) async fn follow(state: Arc<HttpState>, read: TenantReader) {
    let mut refused = Refused::default();
    loop {
        sleep(INTERVAL).await;
        let read = Arc::clone(&read);
        let mut reading = spawn_blocking(move || read());
        let earlier = refused.problem.clone();
        let read = match timeout(MAX_READ, &mut reading).await {
            Ok(read) => read,
            Err(_elapsed) => {
                refused.report(&state, &format!("they could not be read within {} s", MAX_READ.as_secs()));
                // A second reader would hang in the same place.
                reading.await
            }
        };
        match read {
            // Nothing has changed: what was wrong before a slow reading still is, and nothing else.
            Ok(None) => refused.restore(&state, earlier),
            Ok(Some(Ok(tenants))) => match replace(&state, tenants).await {
                Ok(()) => refused.clear(&state),
                Err(error) => refused.report(&state, &error.to_string()),
            },
            Ok(Some(Err(problem))) => refused.report(&state, &problem),
            // The panic hook has logged the rest.
            Err(_panic) => refused.report(&state, "the reader of tenants panicked"),
        }
    }
}

/// Replaces the tenants, and ends what was begun with the tokens that are revoked by that.
///
/// # Errors
///
/// [`Error::InvalidOptions`] if these tenants cannot be used. The last ones stay in force.
async fn replace(state: &HttpState, tenants: Vec<HttpTenant>) -> Result<(), Error> {
    state.authentication.check_tenants(&tenants)?;
    // Before the tokens, so that each token that is accepted has a tenant.
    state.tenants.add(&tenants);
    let TokenChanges { added, revoked, in_force } = state.authentication.replace_tenants(tenants.clone());
    if added == 0 && revoked.is_empty() {
        return Ok(());
    }
    tracing::info!(added, revoked = revoked.len(), in_force, "the tokens of tenants have changed");
    metrics::count_token_changes(added, revoked.len());
    metrics::set_tokens(in_force);
    let event = TokenEvent::Changed { added, revoked: revoked.len(), in_force };
    state.shared.executor.observe_tokens(&event);
    end_all(state, &revoked).await;
    state.tenants.retain(&tenants);
    Ok(())
}

/// Ends what was begun with these tokens: runs at once, then sessions and connections, when the cancelled runs have
/// been answered.
async fn end_all(state: &HttpState, revoked: &[Arc<AcceptedToken>]) {
    if revoked.is_empty() {
        return;
    }
    for token in revoked {
        token.revoked.cancel();
        state.sessions.cancel_runs_of(token);
    }
    sleep(MAX_ANSWER).await;
    for token in revoked {
        state.sessions.end_of(token);
        state.connections.end_of(token);
    }
}

/// Why the last tenants stay in force, if newer ones cannot be used.
#[derive(Default)]
struct Refused {
    problem: Option<String>,
}

impl Refused {
    /// Reports a problem, once as long as it stays the same.
    fn report(&mut self, state: &HttpState, problem: &str) {
        if self.problem.as_deref() == Some(problem) {
            return;
        }
        tracing::warn!(problem, "the last tokens of tenants stay in force, newer ones cannot be used");
        metrics::set_tokens_failing(true);
        state.shared.set_tokens_failing(true);
        state.shared.executor.observe_tokens(&TokenEvent::Refused { reason: problem });
        self.problem = Some(problem.to_owned());
    }

    /// Goes back to what was wrong earlier, which was reported.
    fn restore(&mut self, state: &HttpState, earlier: Option<String>) {
        match earlier {
            Some(_) => self.problem = earlier,
            None => self.clear(state),
        }
    }

    fn clear(&mut self, state: &HttpState) {
        if self.problem.take().is_some() {
            metrics::set_tokens_failing(false);
            state.shared.set_tokens_failing(false);
        }
    }
}
