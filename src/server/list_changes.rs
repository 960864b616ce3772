//! Tells clients that the list of tools has changed.
//!
//! The list names servers and limits, and both can change while the server runs.

use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ServerNotification, ToolListChangedNotification};
use rmcp::service::Peer;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::shared::Shared;

/// How long sending a notification may take. It only queues the message.
const MAX_SEND: Duration = Duration::from_secs(1);

/// Sends a notification to the client whenever the list of tools has changed, until the session
/// ends. Over HTTP only a client with a standalone stream receives it.
pub(crate) async fn announce(shared: Arc<Shared>, peer: Peer<RoleServer>, ended: CancellationToken) {
    let mut changes = shared.executor.changes();
    let mut announced = shared.tools();
    loop {
        tokio::select! {
            () = ended.cancelled() => return,
            changed = changes.changed() => if changed.is_err() { return },
        }
        let tools = shared.tools();
        if tools == announced {
            continue;
        }
        announced = tools;
        let notification = ToolListChangedNotification::default();
        let notification = ServerNotification::ToolListChangedNotification(notification);
        match timeout(MAX_SEND, peer.send_notification(notification)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a notification was not sent"),
            Err(_elapsed) => tracing::debug!("a notification was not sent in time"),
        }
    }
}
