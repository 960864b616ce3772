//! Notifies clients of changes of the list of tools: clients of a handshake revision on their own, those of the
//! stateless revision on the streams that they have requested (`subscriptions/listen`).
//!
//! The list names servers and limits, and contains tools of servers that are shown directly. All of these can change
//! while the server runs.

use std::fmt::Display;
use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ServerNotification, SubscriptionFilter, ToolListChangedNotification};
use rmcp::service::{Peer, SubscriptionContext};
use tokio_util::sync::CancellationToken;

use super::notifications::send_within;
use super::shared::Shared;

/// How long sending a notification of a change may take. It only queues the message.
pub(crate) const MAX_SEND: Duration = Duration::from_secs(1);

/// Sends a notification to the client whenever the list of tools has changed, until the session
/// ends. Over HTTP only a client with a standalone stream receives it.
pub(crate) async fn announce(shared: Arc<Shared>, peer: Peer<RoleServer>, ended: CancellationToken) {
    let send = || {
        let notification = ToolListChangedNotification::default();
        peer.send_notification(ServerNotification::ToolListChangedNotification(notification))
    };
    tokio::select! {
        () = ended.cancelled() => {}
        () = each_change(&shared, send) => {}
    }
}

/// The notifications that a client can subscribe to, with those of `resources`.
pub(crate) fn filter(resources: Vec<String>) -> SubscriptionFilter {
    SubscriptionFilter::builder().tools_list_changed().resource_subscriptions(resources).build()
}

/// Serves one subscription until its client cancels it or is gone, or `ended` is cancelled.
pub(crate) async fn serve(
    shared: &Arc<Shared>,
    subscription: &SubscriptionContext,
    ended: &CancellationToken,
) {
    let changes = async {
        if subscription.accepted().tools_list_changed == Some(true) {
            each_change(shared, || subscription.sink().notify_tool_list_changed()).await;
        }
        // No change can follow, but only the client ends the subscription.
        pending::<()>().await;
    };
    tokio::select! {
        () = ended.cancelled() => {}
        () = subscription.cancelled() => {}
        () = changes => {}
    }
}

/// Calls `send` whenever the list of tools has changed, until the executor is gone.
async fn each_change<E: Display, S: Future<Output = Result<(), E>>>(
    shared: &Arc<Shared>,
    send: impl Fn() -> S,
) {
    let mut changes = shared.executor.changes();
    shared.follow_lists();
    let mut lists = shared.list_changes();
    let mut announced = shared.tools();
    loop {
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            changed = lists.changed() => if changed.is_err() { return },
        }
        let tools = shared.asked_tools(true).await;
        if tools == announced {
            continue;
        }
        announced = tools;
        send_within(MAX_SEND, send()).await;
    }
}
