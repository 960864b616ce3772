//! Starts the parts of the HTTP transport, and shuts them down in order.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::authentication::Authentication;
use super::body::BodyReader;
use super::connections::Connections;
use super::listener::{Endpoint, MAX_CONNECTIONS, accept};
use super::options::HttpOptions;
use super::routes::router;
use super::sessions::{SessionBounds, Sessions};
use super::state::HttpState;
use super::tenant_state::{TenantParts, TenantStates};
use super::token_changes;
use super::workers::Lending;
use crate::error::Error;
use crate::lines::MAX_LINE;
use crate::server::calls::CallsInFlight;
use crate::server::handler::RequestHandler;
use crate::server::metrics;
use crate::server::session::McpSession;
use crate::server::shared::Shared;
use crate::server::shutdown::{MAX_CANCELLATION, MAX_DRAIN, MAX_LAST_WRITE, ShutdownReason};

/// Interval of keep-alive events on a stream without messages. They keep proxies from closing it,
/// and detect dead clients.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Serves any number of clients until `stop` is cancelled or too many workers are hung. See
/// [`Server::serve_http`](crate::server::Server::serve_http).
///
/// # Errors
///
/// [`Error::InvalidOptions`] if the options do not allow the listener's address; [`Error::Start`] if
/// the listener has no local address.
pub(crate) async fn serve(
    shared: &Arc<Shared>,
    listener: TcpListener,
    mut options: HttpOptions,
    stop: &CancellationToken,
) -> Result<ShutdownReason, Error> {
    let address = listener.local_addr().map_err(|source| Error::Start { what: "the HTTP server", source })?;
    let lending = Lending::new(&shared.executor, options.lent_workers)?;
    let (token, tenants) = (options.token.clone(), options.tenants.clone());
    let authentication = Authentication::new(address.ip(), &options.allow_origins, token, tenants)?;
    let runs = CancellationToken::new();
    let _runs_end_with_this = runs.clone().drop_guard();
    // Everything that rmcp runs ends when this token is cancelled.
    let open = CancellationToken::new();
    let _rmcp_ends_with_this = open.clone().drop_guard();
    let calls = Arc::<CallsInFlight>::default();
    let bounds = SessionBounds { max: options.max_sessions, idle: options.session_idle };
    let sessions = Arc::new(Sessions::new(Arc::clone(shared), bounds, runs.clone(), Arc::clone(&calls)));
    // For rmcp's own requests. Every other request has a session: its client's, or that of its tenant's clients without
    // one.
    let sessionless =
        McpSession::new(Arc::clone(shared), runs.child_token(), Arc::clone(&calls)).of_many_clients();
    let mcp = mcp_service(Arc::new(sessionless), &sessions, &open);
    let parts = TenantParts {
        shared: Arc::clone(shared),
        runs: runs.clone(),
        calls: Arc::clone(&calls),
        client_rate: options.client_rate,
        run_rate: options.run_rate,
    };
    let tenants = TenantStates::new(parts, &options.tenants);
    let connections = Connections::new(MAX_CONNECTIONS, !options.tenants.is_empty());
    let state = Arc::new(HttpState {
        shared: Arc::clone(shared),
        authentication,
        metrics: options.metrics.take(),
        page: options.page.take(),
        sessions: Arc::clone(&sessions),
        connections: Arc::clone(&connections),
        mcp,
        tenants,
        lending,
        bodies: BodyReader::new(),
        calls: Arc::clone(&calls),
        closing: CancellationToken::new(),
    });
    let closing = state.closing.clone();
    let _connections_end_with_this = closing.clone().drop_guard();
    let mut serving_each = JoinSet::new();
    let _tokens_are_followed = follow_tokens(&state, &options);
    let ended = {
        let endpoint = Endpoint { router: router(state), connections, closing: closing.clone() };
        let serving = pin!(accept(&listener, &endpoint, &sessions, &mut serving_each));
        serve_until_end(serving, shared, &calls, &options, stop).await
    };
    drop(listener);
    closing.cancel();
    sessions.end_listening();
    runs.cancel();
    // The calls are awaited before rmcp is stopped, because stopping drops the streams, and the
    // calls should be answered.
    calls.wait_until_empty(MAX_CANCELLATION).await;
    let written = async { while serving_each.join_next().await.is_some() {} };
    if timeout(MAX_LAST_WRITE, written).await.is_err() {
        tracing::debug!("some clients did not read their last answers");
    }
    serving_each.shutdown().await;
    Ok(ended)
}

/// Follows the files of the tokens until the returned value is dropped. Each file has its own task, because one of them
/// may be on a file system that hangs.
fn follow_tokens(state: &Arc<HttpState>, options: &HttpOptions) -> JoinSet<()> {
    let mut following = JoinSet::new();
    let (has_token, has_tenants) = (options.token.is_some(), !options.tenants.is_empty());
    if has_tenants {
        metrics::set_tokens(options.tenants.len());
    }
    if let Some(read) = options.token_reader.clone().filter(|_| has_token) {
        following.spawn(token_changes::follow_token(Arc::clone(state), read));
    }
    if let Some(read) = options.tenant_reader.clone().filter(|_| has_tenants) {
        following.spawn(token_changes::follow_tenants(Arc::clone(state), read));
    }
    following
}

/// Serves connections until `stop` is cancelled or too many workers are hung, and then lets calls in flight end, within
/// bounds. Meanwhile requests are still answered: clients may poll their tasks, answer prompts and read the health
/// report.
async fn serve_until_end(
    mut serving: Pin<&mut impl Future<Output = Infallible>>,
    shared: &Shared,
    calls: &CallsInFlight,
    options: &HttpOptions,
    stop: &CancellationToken,
) -> ShutdownReason {
    tokio::select! {
        never = &mut serving => match never {},
        () = stop.cancelled() => {
            if !options.drain_time.is_zero() {
                calls.close();
                tokio::select! {
                    never = &mut serving => match never {},
                    () = calls.wait_until_empty(options.drain_time) => {}
                    () = options.end_drain.cancelled() => {}
                    () = shared.hung_workers.end_of_server() => {}
                }
            }
            ShutdownReason::Stopped
        }
        () = shared.hung_workers.end_of_server() => {
            tokio::select! {
                never = &mut serving => match never {},
                () = calls.wait_until_empty(MAX_DRAIN) => {}
                () = stop.cancelled() => {}
            }
            ShutdownReason::WorkersHung
        }
    }
}

/// The MCP service of rmcp. Its checks of hosts and origins are disabled; [`Authentication`] does them.
fn mcp_service(
    session: Arc<McpSession>,
    sessions: &Arc<Sessions>,
    open: &CancellationToken,
) -> StreamableHttpService<RequestHandler, Sessions> {
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .with_max_request_body_bytes(MAX_LINE)
        .with_json_response(true)
        .with_sse_keep_alive(Some(KEEP_ALIVE_INTERVAL))
        // Streams that can be resumed begin with an event that `Sessions` makes, which also has the interval.
        .with_sse_retry(None)
        .with_cancellation_token(open.clone());
    StreamableHttpService::new(
        move || Ok(RequestHandler::new(Arc::clone(&session))),
        Arc::clone(sessions),
        config,
    )
}
