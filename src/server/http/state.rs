//! The state that all requests over HTTP share.

use std::sync::Arc;

use rmcp::transport::streamable_http_server::StreamableHttpService;
use tokio_util::sync::CancellationToken;

use super::authentication::Authentication;
use super::body::BodyReader;
use super::connections::Connections;
use super::options::MetricsPrinter;
use super::page::Page;
use super::sessions::Sessions;
use super::tenant_state::TenantStates;
use super::workers::Lending;
use crate::server::calls::CallsInFlight;
use crate::server::handler::RequestHandler;
use crate::server::shared::Shared;

/// State that all requests share. Lives as long as the listener.
pub(crate) struct HttpState {
    pub(crate) shared: Arc<Shared>,
    pub(crate) authentication: Authentication,
    pub(crate) metrics: Option<MetricsPrinter>,
    pub(crate) page: Option<Page>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) mcp: StreamableHttpService<RequestHandler, Sessions>,
    pub(crate) tenants: TenantStates,
    /// The workers that are lent to other machines, if any are.
    pub(crate) lending: Option<Lending>,
    pub(crate) bodies: BodyReader,
    /// The calls in flight of all clients. Closed when no more runs start.
    pub(crate) calls: Arc<CallsInFlight>,
    /// Cancelled when no more requests are accepted.
    pub(crate) closing: CancellationToken,
}
