//! The tokens that are in force.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::tenants::HttpTenant;

/// A token of a tenant that is in force.
pub(crate) struct AcceptedToken {
    tenant: HttpTenant,
    /// Cancelled when the token is revoked, and with it what its clients have begun.
    pub(crate) revoked: CancellationToken,
}

impl AcceptedToken {
    pub(super) fn new(tenant: HttpTenant) -> Arc<Self> {
        Arc::new(Self { tenant, revoked: CancellationToken::new() })
    }

    /// The name and the token.
    pub(crate) const fn tenant(&self) -> &HttpTenant {
        &self.tenant
    }
}

/// How a list of tenants differs from the last one. A token that another tenant has now is revoked and added.
pub(crate) struct TokenChanges {
    pub(crate) added: usize,
    pub(crate) revoked: Vec<Arc<AcceptedToken>>,
    /// The number of tokens that are in force now.
    pub(crate) in_force: usize,
}
