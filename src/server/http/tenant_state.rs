//! What the clients of one tenant have for themselves, or all clients of a server without tenants.

use std::sync::Arc;

use super::rest::runs::RestRuns;
use super::shares::{PeerKey, TenantKey};
use crate::run::history::client_of_tenant;
use crate::server::run_rate::RunRates;
use crate::server::session::McpSession;

/// The state of one tenant. Lives as long as the listener.
pub(crate) struct TenantState {
    /// `None` if the server has no tenants.
    pub(crate) name: Option<Arc<str>>,
    pub(crate) key: TenantKey,
    /// The session of all its clients that have none: those of the stateless revision and those of REST.
    pub(crate) session: Arc<McpSession>,
    pub(crate) rest: RestRuns,
    pub(crate) rates: Arc<RunRates>,
}

impl TenantState {
    /// The name of a client without a session, as far as it can be told: its tenant and its peer.
    pub(crate) fn client_name(&self, peer: PeerKey) -> String {
        client_of_tenant(self.name.as_deref(), &format!("{peer:?}"))
    }
}
