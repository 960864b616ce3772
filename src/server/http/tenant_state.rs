//! The state of one tenant's clients, or of all clients of a server without tenants.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::RwLock;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::accepted::AcceptedToken;
use super::body::BodyReader;
use super::rest_runs::{AnswerBytes, RestRuns};
use super::shares::{PeerKey, TenantKey};
use super::tenants::HttpTenant;
use crate::executor::Executor;
use crate::rate::RateLimit;
use crate::run::history::client_of_tenant;
use crate::server::calls::CallsInFlight;
use crate::server::run_rate::RunRates;
#[cfg(feature = "mcp")]
use crate::server::run_rate::default_client_rate;
use crate::server::session::McpSession;
use crate::server::shared::Shared;

/// The state of one tenant. Lives until its last token is revoked, or as long as the listener.
pub(crate) struct TenantState {
    /// `None` if the server has no tenants.
    pub(crate) name: Option<Arc<str>>,
    pub(crate) key: TenantKey,
    /// The session of all clients without one: those of the stateless revision and those of REST.
    pub(crate) session: Arc<McpSession>,
    pub(crate) rest: RestRuns,
    pub(crate) rates: Arc<RunRates>,
    /// The bytes that the bodies of its requests may have. `None` if the server has no tenants.
    pub(crate) bodies: Option<Arc<Semaphore>>,
}

/// The sender of a request.
#[derive(Clone)]
pub(crate) struct Requester {
    pub(crate) tenant: Arc<TenantState>,
    /// The token of the request, if clients must send one.
    pub(crate) token: Option<Arc<AcceptedToken>>,
    pub(crate) peer: PeerKey,
}

impl Requester {
    /// The name of a client without a session, as far as it can be identified: its tenant and its peer.
    pub(crate) fn client_name(&self) -> String {
        client_of_tenant(self.tenant.name.as_deref(), &format!("{:?}", self.peer))
    }

    /// Cancelled when the token of the request is revoked.
    pub(crate) fn revoked(&self) -> Option<&CancellationToken> {
        self.token.as_ref().map(|token| &token.revoked)
    }
}

/// What the states of all tenants are made from.
pub(crate) struct TenantParts {
    pub(crate) shared: Arc<Shared>,
    /// Cancels the runs of all clients.
    pub(crate) runs: CancellationToken,
    /// The calls of all clients.
    pub(crate) calls: Arc<CallsInFlight>,
    pub(crate) client_rate: Option<RateLimit>,
    pub(crate) run_rate: Option<RateLimit>,
}

/// The states of the tenants that have a token in force. A server without tenants has one, which has no name.
pub(crate) struct TenantStates {
    parts: TenantParts,
    answers: Arc<AnswerBytes>,
    states: RwLock<Vec<Arc<TenantState>>>,
    /// The number of states that were ever made. Every state has a different key.
    made: AtomicUsize,
}

impl TenantStates {
    /// Makes the states of these tenants, or one for all clients if there are none.
    pub(crate) fn new(parts: TenantParts, tenants: &[HttpTenant]) -> Self {
        let states =
            Self { parts, answers: Arc::default(), states: RwLock::default(), made: AtomicUsize::new(0) };
        if tenants.is_empty() {
            states.states.write().push(states.make(None, TenantKey::Only));
        }
        states.add(tenants);
        states
    }

    /// The state of the tenant with this name; `None` after its last token was revoked.
    pub(crate) fn find(&self, name: Option<&str>) -> Option<Arc<TenantState>> {
        self.states.read().iter().find(|state| state.name.as_deref() == name).cloned()
    }

    /// Makes the missing states of these tenants.
    pub(crate) fn add(&self, tenants: &[HttpTenant]) {
        let mut states = self.states.write();
        for name in HttpTenant::names(tenants) {
            if !states.iter().any(|state| state.name.as_deref() == Some(name)) {
                let key = TenantKey::Number(self.made.fetch_add(1, Ordering::Relaxed));
                states.push(self.make(Some(name), key));
            }
        }
        self.answers.share_among(NonZeroUsize::new(states.len()).unwrap_or(NonZeroUsize::MIN));
    }

    /// Drops the state of every other tenant: its runs, its answers and its run records.
    pub(crate) fn retain(&self, tenants: &[HttpTenant]) {
        let names = HttpTenant::names(tenants);
        let mut states = self.states.write();
        states.retain(|state| {
            let is_kept = state.name.as_deref().is_some_and(|name| names.contains(&name));
            if !is_kept {
                state.session.runs.cancel();
                state.session.forget();
            }
            is_kept
        });
        self.answers.share_among(NonZeroUsize::new(states.len()).unwrap_or(NonZeroUsize::MIN));
    }

    fn make(&self, name: Option<&str>, key: TenantKey) -> Arc<TenantState> {
        let TenantParts { shared, runs, calls, .. } = &self.parts;
        let name: Option<Arc<str>> = name.map(Arc::from);
        let rates = Arc::new(run_rates(&self.parts, &shared.executor));
        let session = McpSession::new(Arc::clone(shared), runs.child_token(), Arc::clone(calls));
        let session = session.of_many_clients().with_rates(Arc::clone(&rates));
        let session = Arc::new(session.of_tenant(name.as_ref()));
        let bodies = name.is_some().then(BodyReader::share);
        let rest = RestRuns::new(Arc::clone(&self.answers));
        Arc::new(TenantState { name, key, session, rest, rates, bodies })
    }
}

/// The rate limits of a tenant's clients. The limit of each client follows the executor's configuration.
#[cfg(feature = "mcp")]
fn run_rates(parts: &TenantParts, executor: &Executor) -> RunRates {
    let executor = executor.clone();
    let configured = move || executor.configured_client_rate();
    RunRates::new(parts.client_rate, parts.run_rate).following(configured, Some(default_client_rate()))
}

/// The rate limits of a tenant's clients. There is no configuration to follow.
#[cfg(not(feature = "mcp"))]
fn run_rates(parts: &TenantParts, _executor: &Executor) -> RunRates {
    RunRates::new(parts.client_rate, parts.run_rate)
}

#[cfg(test)]
mod tests;
