//! The handshake with a server: which protocol revisions are tried, and why it failed.

use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::ProtocolVersion;
use rmcp::service::{
    ClientCacheConfig, ClientInitializeError, ClientLifecycleMode, RunningService,
    serve_client_with_lifecycle,
};
use rmcp::transport::Transport;
use tokio::runtime::Handle;

use super::activity::{ConnectTime, Elapsed};
use super::connect::ConnectionEnd;
use super::errors::{self, connect_timeout};
use super::notifications::{NotificationHandler, Notifications};
use super::stdio::NO_ANSWER;
use crate::tools::{ServerFailureKind, ToolError};

/// The parameters of a new connection.
pub(crate) struct Start<'a> {
    pub(crate) server: Arc<str>,
    pub(crate) handle: &'a Handle,
    pub(crate) notifications: Notifications,
    /// The time for starting the process and the handshake.
    pub(crate) time: ConnectTime,
    /// Which revisions to try.
    pub(crate) revisions: Revisions,
}

/// Protocol revisions to try. Those before 2026-07-28 are the handshake revisions; later ones are
/// stateless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Revisions {
    /// The stateless revision, then the handshake revisions if the server does not support it.
    Both,
    /// Only the handshake revisions.
    Handshake,
    /// Only the stateless revision.
    Stateless,
}

/// The revisions of the protocol that can be negotiated, newest first.
pub(crate) fn protocol_revisions() -> Vec<&'static str> {
    ProtocolVersion::KNOWN_VERSIONS.iter().rev().map(ProtocolVersion::as_str).collect()
}

/// Why the handshake failed although the process was started.
pub(crate) enum HandshakeFailure {
    Elapsed(Elapsed),
    Refused(Box<ClientInitializeError>),
}

impl HandshakeFailure {
    /// The revisions to try with a new process, for a server that ended at a request it does not know, or left it
    /// unanswered. `None` if no other revision would be answered.
    pub(crate) fn try_instead(&self) -> Option<Revisions> {
        let Self::Refused(error) = self else { return None };
        match &**error {
            ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => {
                Some(Revisions::Handshake)
            }
            ClientInitializeError::LegacyFallbackFailed { discover, .. } => {
                matches!(&**discover, ClientInitializeError::JsonRpcError(error) if error.message == NO_ANSWER)
                    .then_some(Revisions::Stateless)
            }
            _ => None,
        }
    }

    /// The error of the call that needed the connection. Of two refused handshakes, it has the second one's reason.
    pub(crate) fn into_error(self, server: &str, end: &ConnectionEnd) -> ToolError {
        let error = match self {
            Self::Refused(error) => match *error {
                ClientInitializeError::LegacyFallbackFailed { fallback, .. } => Self::Refused(fallback),
                error => Self::Refused(Box::new(error)),
            },
            elapsed @ Self::Elapsed(_) => elapsed,
        };
        let problem = match error {
            Self::Elapsed(Elapsed { after, was_alive }) => {
                let seconds = (after.as_secs_f64() * 10.0).round() / 10.0;
                let alive = if was_alive { ", although it showed signs of life" } else { "" };
                let problem =
                    format!("server `{server}` did not answer the handshake within {seconds} s{alive}");
                return connect_timeout(&problem, &end.stderr_tail);
            }
            Self::Refused(error) => match *error {
                ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
                    let versions: Vec<_> = server_supported.iter().map(ToString::to_string).collect();
                    format!(
                        "server `{server}` supports no protocol revision that this client supports: {}",
                        versions.join(", ")
                    )
                }
                ClientInitializeError::JsonRpcError(error) => {
                    if let Some(error) = errors::own_error(server, &error) {
                        return error;
                    }
                    format!("server `{server}` refused the handshake: {}", errors::message(&error))
                }
                ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => {
                    format!("server `{server}` {} before it answered the handshake", end.status)
                }
                _ => return errors::unreadable(server, "it is not an answer to the handshake"),
            },
        };
        ToolError::of_server(ServerFailureKind::Other, problem, &end.stderr_tail)
    }
}

/// Negotiates the newest revision that both sides support, until the time is over.
pub(crate) async fn shake_hands<T>(
    start: &Start<'_>,
    transport: T,
    elapsed: impl Future<Output = Elapsed>,
) -> Result<RunningService<RoleClient, NotificationHandler>, HandshakeFailure>
where
    T: Transport<RoleClient> + 'static,
{
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let lifecycle = match start.revisions {
        Revisions::Handshake => ClientLifecycleMode::Initialize,
        Revisions::Stateless => ClientLifecycleMode::Discover { preferred_versions },
        Revisions::Both => {
            let legacy_version = Some(ProtocolVersion::LATEST_WITH_INITIALIZE);
            ClientLifecycleMode::Auto { preferred_versions, legacy_version }
        }
    };
    let client = NotificationHandler { notifications: start.notifications.clone() };
    let served = tokio::select! {
        biased;
        served = serve_client_with_lifecycle(client, transport, lifecycle) => served,
        elapsed = elapsed => return Err(HandshakeFailure::Elapsed(elapsed)),
    };
    let running = served.map_err(|error| HandshakeFailure::Refused(Box::new(error)))?;
    // rmcp's response cache would return stale lists, up to a day old, when a server fails.
    running.peer().set_response_cache_config(ClientCacheConfig::disabled()).await;
    Ok(running)
}
