//! The subscription to the changes of a server's tools. In the stateless revision a server announces them only to
//! subscribers.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::SubscriptionFilter;
use rmcp::service::ServiceError;
use tokio::time::{Instant, sleep};

use super::connection::Connection;
use super::errors;

/// Pauses before a subscription that has ended is made again: proxies end streams on which nothing is sent, many after
/// a minute. Each pause is twice as long as the one before, unless a subscription has lasted.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// How long a subscription must have lasted for the pauses to begin again. A server that ends each of them at once gets
/// one request a minute.
const LASTING: Duration = Duration::from_secs(30);

/// Starts to follow the changes of a server of the stateless revision, if it announces any.
pub(super) fn begin(connection: &Arc<Connection>) {
    if connection.is_stateless() && connection.announces_changes() {
        // The task ends with the connection.
        tokio::spawn(follow(Arc::clone(connection)));
    }
}

/// Follows the changes until nothing more can be sent over the connection.
async fn follow(connection: Arc<Connection>) {
    tokio::select! {
        () = keep_subscribed(&connection) => {}
        () = connection.over() => {}
    }
}

/// Subscribes, and subscribes again whenever the subscription has ended. Completes if the server refuses it.
async fn keep_subscribed(connection: &Connection) {
    let mut pause = FIRST_PAUSE;
    let mut may_have_missed = false;
    loop {
        let began = Instant::now();
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        match connection.peer.listen(filter).await {
            Ok(mut subscription) => {
                if may_have_missed {
                    connection.notifications.tools_changed();
                }
                // The transport reads the notifications.
                while let Ok(Some(_read_already)) = subscription.next().await {}
            }
            Err(error) if may_pass(&connection.server, &error) => {}
            Err(_refused) => return,
        }
        tracing::debug!(server = &*connection.server, "the subscription to changes of tools has ended");
        may_have_missed = true;
        if began.elapsed() >= LASTING {
            pause = FIRST_PAUSE;
        }
        sleep(pause).await;
        pause = (2 * pause).min(MAX_PAUSE);
    }
}

/// Whether a request failed on the way, so that the next one may not.
fn may_pass(server: &str, error: &ServiceError) -> bool {
    let ServiceError::McpError(error) = error else { return false };
    errors::own_error(server, error).is_some_and(|own| errors::is_passing(own.code))
}
