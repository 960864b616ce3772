//! The tokens that are in force.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::tenants::HttpTenant;
use super::token::HttpToken;

/// A token that is in force.
pub(crate) struct AcceptedToken {
    token: HttpToken,
    /// The tenant that the token belongs to. `None` for the token of all clients, or of the operator.
    tenant: Option<HttpTenant>,
    /// Cancelled when the token is revoked. That ends everything that its clients have begun.
    pub(crate) revoked: CancellationToken,
}

impl AcceptedToken {
    /// The token of all clients, or of the operator.
    pub(super) fn of_server(token: HttpToken) -> Arc<Self> {
        Arc::new(Self { token, tenant: None, revoked: CancellationToken::new() })
    }

    /// The token of a tenant.
    pub(super) fn of_tenant(tenant: HttpTenant) -> Arc<Self> {
        let token = tenant.token().clone();
        Arc::new(Self { token, tenant: Some(tenant), revoked: CancellationToken::new() })
    }

    pub(super) const fn token(&self) -> &HttpToken {
        &self.token
    }

    /// The tenant's name and token; `None` if it is not a tenant's token.
    pub(super) const fn tenant(&self) -> Option<&HttpTenant> {
        self.tenant.as_ref()
    }

    /// The tenant's name; `None` if it is not a tenant's token.
    pub(super) fn tenant_name(&self) -> Option<&str> {
        self.tenant().map(HttpTenant::name)
    }
}

/// How tokens differ from the previous ones. A token that has moved to another tenant counts as revoked and added.
#[derive(Default)]
pub(crate) struct TokenChanges {
    pub(crate) added: usize,
    pub(crate) revoked: Vec<Arc<AcceptedToken>>,
    /// The number of tokens of the same owner that are in force now.
    pub(crate) in_force: usize,
}
