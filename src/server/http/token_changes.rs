//! Applies changes of the tokens while the server runs: added and revoked tokens.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::accepted::{AcceptedToken, TokenChanges};
use super::authentication::Authentication;
use super::following::{Followed, Target, problem_reporter};
use super::state::HttpState;
use super::tenants::{HttpTenant, TenantReader};
use super::token::{HttpToken, TokenReader};
use crate::error::Error;
use crate::run::observer::{TokenEvent, TokenOwner};
use crate::server::metrics;
use crate::server::shared::Shared;
use crate::server::shutdown::{MAX_CANCELLATION, MAX_LAST_WRITE};

/// How long clients of a revoked token have to receive the answers of their cancelled runs, the same as at the end of a
/// server. Shorter than the interval of reading tokens, so that the next change is not delayed.
const MAX_ANSWER: Duration = MAX_CANCELLATION.saturating_add(MAX_LAST_WRITE);

/// Follows the token of all clients, or of the operator, until it is dropped.
pub(super) async fn follow_token(state: Arc<HttpState>, read: TokenReader) {
    let on_problem = problem_reporter(&state.shared, state.authentication.token_owner());
    Followed::new(read, ServerToken(RevokedTokens::new(state)), on_problem).follow().await;
}

/// Follows the tokens of the tenants until it is dropped.
pub(super) async fn follow_tenants(state: Arc<HttpState>, read: TenantReader) {
    let on_problem = problem_reporter(&state.shared, TokenOwner::Tenants);
    Followed::new(read, Tenants(RevokedTokens::new(state)), on_problem).follow().await;
}

/// Follows the token of a metrics page until it is dropped. Its requests are short, so a revoked token ends nothing
/// else.
pub(super) async fn follow_page(shared: Arc<Shared>, authentication: Arc<Authentication>, read: TokenReader) {
    let on_problem = problem_reporter(&shared, TokenOwner::Operator);
    Followed::new(read, PageToken { shared, authentication }, on_problem).follow().await;
}

/// The token of all clients, or of the operator.
struct ServerToken(RevokedTokens);

impl Target for ServerToken {
    type Value = HttpToken;

    async fn replace(&mut self, token: HttpToken) -> Result<(), Error> {
        let HttpState { shared, authentication, .. } = &*self.0.state;
        let changes = authentication.replace_token(token)?;
        report(shared, authentication.token_owner(), &changes);
        self.0.end(changes.revoked, None).await;
        Ok(())
    }
}

/// The tokens of the tenants.
struct Tenants(RevokedTokens);

impl Target for Tenants {
    type Value = Vec<HttpTenant>;

    async fn replace(&mut self, tenants: Vec<HttpTenant>) -> Result<(), Error> {
        self.0.state.authentication.check_tenants(&tenants)?;
        // A tenant that is added again must not find its previous state. The operator's token may change meanwhile, so
        // the list is checked once more.
        self.0.wait_for_end().await;
        let HttpState { shared, authentication, tenants: states, .. } = &*self.0.state;
        let changes = authentication.replace_tenants(tenants.clone(), |tenants| states.add(tenants))?;
        report(shared, TokenOwner::Tenants, &changes);
        if changes.added > 0 || !changes.revoked.is_empty() {
            metrics::set_tokens(changes.in_force);
        }
        self.0.end(changes.revoked, Some(tenants)).await;
        Ok(())
    }
}

/// The token of a metrics page.
struct PageToken {
    shared: Arc<Shared>,
    authentication: Arc<Authentication>,
}

impl Target for PageToken {
    type Value = HttpToken;

    async fn replace(&mut self, token: HttpToken) -> Result<(), Error> {
        let changes = self.authentication.replace_token(token)?;
        // The sessions of the page of runs check this.
        for token in &changes.revoked {
            token.revoked.cancel();
        }
        report(&self.shared, TokenOwner::Operator, &changes);
        Ok(())
    }
}

/// Reports a change of tokens in the log, the metrics and the audit trail.
fn report(shared: &Shared, owner: TokenOwner, changes: &TokenChanges) {
    let TokenChanges { added, revoked, in_force } = changes;
    let (added, revoked, in_force) = (*added, revoked.len(), *in_force);
    if added == 0 && revoked == 0 {
        return;
    }
    tracing::info!(of = owner.as_str(), added, revoked, in_force, "the tokens have changed");
    metrics::count_token_changes(added, revoked);
    shared.executor.observe_tokens(&TokenEvent::Changed { owner, added, revoked, in_force });
}

/// Ends what was begun with revoked tokens: runs at once; sessions and connections when the cancelled runs have been
/// answered, in a task that ends with this value. There is at most one such task.
struct RevokedTokens {
    state: Arc<HttpState>,
    ending: JoinSet<()>,
}

impl RevokedTokens {
    fn new(state: Arc<HttpState>) -> Self {
        Self { state, ending: JoinSet::new() }
    }

    /// Waits until everything has ended that was begun with tokens which were revoked before.
    async fn wait_for_end(&mut self) {
        while self.ending.join_next().await.is_some() {}
    }

    /// Ends what was begun with these tokens, and the states of all tenants except those in `kept`.
    async fn end(&mut self, revoked: Vec<Arc<AcceptedToken>>, kept: Option<Vec<HttpTenant>>) {
        if revoked.is_empty() {
            return;
        }
        for token in &revoked {
            token.revoked.cancel();
            self.state.sessions.cancel_runs_of(token);
        }
        self.wait_for_end().await;
        let state = Arc::clone(&self.state);
        self.ending.spawn(async move {
            sleep(MAX_ANSWER).await;
            for token in &revoked {
                state.sessions.end_of(token);
                state.connections.end_of(token);
            }
            if let Some(kept) = kept {
                state.tenants.retain(&kept);
            }
        });
    }
}

#[cfg(test)]
mod tests;
