//! One client's session: its settings, and what ends with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::model::Extensions;
use rmcp::service::{Peer, RequestContext};
use tokio_util::sync::CancellationToken;

use super::calls::CallsInFlight;
use super::list_changes;
use super::notifications::{Severity, Wanted};
use super::run_rate::{RequestClient, RunRates};
use super::shared::Shared;
use super::subscriptions::Subscriptions;
use super::tasks::Tasks;
use super::yielded::YieldedRuns;
use crate::run::history::WITHOUT_SESSION;
#[cfg(feature = "http")]
use crate::run::history::client_of_tenant;
use crate::storage::state::{DefaultScope, StateScope};

/// The session of one client, or of all clients that cannot be told apart. Lives until the client is gone.
pub(crate) struct McpSession {
    pub(crate) shared: Arc<Shared>,
    /// The client's name in the run history. It begins with the name of its tenant.
    pub(crate) client: String,
    /// The tenant of the client, if the server has tenants.
    pub(crate) tenant: Option<Arc<str>>,
    /// Whether this session serves several clients that cannot be told apart. Settings of one client then do not apply
    /// to the others, and run records are not listed: a run is found only by its random id.
    pub(crate) has_many_clients: bool,
    /// The state scope of runs that name no session.
    pub(crate) default_scope: DefaultScope,
    /// Cancels all runs of this session.
    pub(crate) runs: CancellationToken,
    pub(crate) calls: Arc<CallsInFlight>,
    /// The rate limits of runs, which several sessions may share.
    pub(crate) rates: Arc<RunRates>,
    pub(crate) tasks: Tasks,
    pub(crate) yielded: YieldedRuns,
    pub(crate) subscriptions: Subscriptions,
    /// The minimum severity of lines that the client wants, as set by a client of a handshake
    /// revision.
    pub(crate) log: Mutex<Option<Severity>>,
    /// Whether the client is being notified of changes of the list of tools.
    announces_changes: AtomicBool,
}

/// The session for a request over HTTP. It is an extension of the HTTP request.
#[derive(Clone)]
pub(crate) struct RequestSession {
    /// The session of the tenant's clients that have none, for requests that name none.
    pub(crate) session: Arc<McpSession>,
    /// Cancelled when the token of the request is revoked.
    pub(crate) revoked: Option<CancellationToken>,
}

impl RequestSession {
    /// The value of a request; `None` if it did not come over HTTP.
    pub(crate) fn from_extensions(extensions: &Extensions) -> Option<&Self> {
        extensions.get::<http::request::Parts>()?.extensions.get()
    }
}

/// What the client of a request calls itself: name and version. Untrusted.
pub(crate) fn client_name(context: &RequestContext<RoleServer>) -> Option<String> {
    context.client_info().map(|client| format!("{} {}", client.name, client.version))
}

impl McpSession {
    /// Makes the session of a new client. Its runs are cancelled by `runs` and counted in `calls`.
    pub(crate) fn new(shared: Arc<Shared>, runs: CancellationToken, calls: Arc<CallsInFlight>) -> Self {
        Self {
            client: shared.next_client(),
            tenant: None,
            tasks: Tasks::new(&shared.all_tasks),
            shared,
            has_many_clients: false,
            default_scope: DefaultScope::Workspace,
            runs,
            calls,
            rates: Arc::default(),
            yielded: YieldedRuns::default(),
            subscriptions: Subscriptions::default(),
            log: Mutex::default(),
            announces_changes: AtomicBool::new(false),
        }
    }

    /// Makes this the session of several clients that cannot be told apart.
    pub(crate) fn of_many_clients(self) -> Self {
        let client = WITHOUT_SESSION.to_owned();
        Self { client, has_many_clients: true, default_scope: DefaultScope::Unavailable, ..self }
    }

    /// Makes this the session of a client of this tenant.
    #[cfg(feature = "http")]
    pub(crate) fn of_tenant(self, tenant: Option<&Arc<str>>) -> Self {
        let client = client_of_tenant(tenant.map(|name| &**name), &self.client);
        Self { client, tenant: tenant.cloned(), ..self }
    }

    /// Sets the rate limits of runs; without them there are none.
    pub(crate) fn with_rates(self, rates: Arc<RunRates>) -> Self {
        Self { rates, ..self }
    }

    /// Gives the session a state scope of its own. No other session ever has the same id.
    pub(crate) fn with_own_state(self, id: &str) -> Self {
        Self { default_scope: DefaultScope::Of(StateScope::client(id)), ..self }
    }

    /// Notifies the client from now on when the list of tools has changed. The task ends with the session.
    pub(crate) fn announce_changes(&self, peer: &Peer<RoleServer>) {
        if !self.has_many_clients && !self.announces_changes.swap(true, Ordering::Relaxed) {
            let (shared, ended) = (Arc::clone(&self.shared), self.runs.clone());
            tokio::spawn(list_changes::announce(shared, peer.clone(), ended));
        }
    }

    /// A token that is cancelled when the request's work has to end: with the session, or when the token that the
    /// request was sent with is revoked. The caller cancels it at the end too, so that nothing waits for it any longer.
    pub(crate) fn cancellation(&self, context: &RequestContext<RoleServer>) -> CancellationToken {
        let request = RequestSession::from_extensions(&context.extensions);
        self.cancellation_with(request.and_then(|request| request.revoked.as_ref()))
    }

    /// As [`cancellation`](Self::cancellation), for a request whose token is revoked when `revoked` is cancelled. Must
    /// be called in a tokio runtime.
    pub(crate) fn cancellation_with(&self, revoked: Option<&CancellationToken>) -> CancellationToken {
        let cancel = self.runs.child_token();
        // The session may have begun with another token of the same tenant, so neither token is a child of the other.
        if let Some(revoked) = revoked.cloned() {
            let cancel = cancel.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = revoked.cancelled() => cancel.cancel(),
                    () = cancel.cancelled() => {}
                }
            });
        }
        cancel
    }

    /// Drops everything that is kept for a client that will not return.
    pub(crate) fn forget(&self) {
        self.shared.forget(&self.client);
        if let DefaultScope::Of(scope) = &self.default_scope {
            self.shared.executor.forget_state(scope.clone());
        }
    }

    /// The client of a request, for bounds and rates of each client. In a session of many clients it is
    /// the peer that sent the request.
    pub(crate) fn client_of<'a>(&'a self, context: &'a RequestContext<RoleServer>) -> &'a str {
        let peer = RequestClient::from_extensions(&context.extensions).filter(|_| self.has_many_clients);
        peer.unwrap_or(&self.client)
    }

    /// The notifications to send during `context`'s request. A client of the stateless revision
    /// sends the minimum severity of lines with each request, other clients set it once.
    pub(crate) fn wanted(&self, context: &RequestContext<RoleServer>) -> Wanted {
        let log = context.meta.log_level().or_else(|| self.log.lock().filter(|_| !self.has_many_clients));
        Wanted { progress: context.meta.get_progress_token(), log }
    }
}
