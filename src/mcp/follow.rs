//! Subscribes to resources of a server, and ends the subscriptions.
//!
//! The server is asked once for each resource, however many subscribers it has, and is told when the last one is gone.
//! The handshake revisions have requests for that; in the stateless revision each resource has a stream of its own.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::SubscriptionFilter;
use rmcp::service::{ServiceError, Subscription};
use serde_json::json;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::answers::RequestTrace;
use super::connection::{CallFailure, Connection};
use super::errors;
use super::followed::Added;
use crate::json::Json;
use crate::tools::{ResourceUpdates, ToolError, ToolErrorCode};

/// How long the server may take to answer that a subscription has begun or is over, both of which it only notes.
const ANSWER_TIME: Duration = Duration::from_secs(5);

impl Connection {
    /// Whether somebody is subscribed to a resource of the server.
    pub(crate) fn is_followed(&self) -> bool {
        !self.notifications.followed().is_empty()
    }

    /// Subscribes to a resource. Each change that the server announces is reported until the subscriber is gone, or the
    /// connection or the subscription is over.
    ///
    /// A server that does not answer in time, or not as it should, may well answer calls, so that only the end of the
    /// connection is a failure of it: clients that subscribe must not open its circuit for the calls of others.
    pub(crate) async fn follow(
        self: &Arc<Self>,
        uri: &str,
        updates: ResourceUpdates,
        trace: &RequestTrace,
        call_timeout: Duration,
    ) -> Result<Json, CallFailure> {
        if !self.announces_resources() {
            return Err(CallFailure::after_sending(announces_none(&self.server)));
        }
        let time = ANSWER_TIME.min(call_timeout);
        let followed = match timeout(time, self.follow_in_turn(uri, updates, trace)).await {
            Ok(followed) => followed,
            Err(_elapsed) => {
                let (server, time) = (&self.server, time.as_millis());
                let message = format!("server `{server}` has not answered a subscription within {time} ms");
                Err(CallFailure::after_sending(ToolError::new(ToolErrorCode::ToolTimeout, message)))
            }
        };
        followed
            .map_err(|failure| CallFailure { is_limited: failure.is_limited || self.is_alive(), ..failure })
    }

    async fn follow_in_turn(
        self: &Arc<Self>,
        uri: &str,
        updates: ResourceUpdates,
        trace: &RequestTrace,
    ) -> Result<Json, CallFailure> {
        let followed = self.notifications.followed();
        let _turn = followed.turn(uri).await;
        let Added { is_confirmed, over } = followed.add(uri, &updates).map_err(|refused| {
            let error = ToolError::new(ToolErrorCode::RateLimited, refused.message(&self.server));
            CallFailure { error, is_unsent: false, is_limited: true }
        })?;
        // Started first: it also ends a subscription that is not confirmed, whose subscriber goes.
        self.handle.spawn(Arc::clone(self).end_following(uri.to_owned(), updates, over));
        if !is_confirmed {
            let stream = if self.is_stateless() {
                Some(self.open_stream_of(uri).await?)
            } else {
                self.request("resources/subscribe", json!({ "uri": uri }), trace).await?;
                None
            };
            followed.confirm(uri, stream);
        }
        Ok(Json::from(json!({})))
    }

    /// Whether the server says that it announces changes of its resources to subscribers.
    fn announces_resources(&self) -> bool {
        self.peer.peer_info().is_some_and(|info| {
            let resources = info.capabilities.resources.as_ref();
            resources.is_some_and(|resources| resources.subscribe == Some(true))
        })
    }

    /// Opens the stream of a resource. Returns what ends it when it is dropped.
    async fn open_stream_of(self: &Arc<Self>, uri: &str) -> Result<DropGuard, CallFailure> {
        let filter = SubscriptionFilter::builder().resource_subscription(uri).build();
        let subscription = match self.peer.listen(filter).await {
            Ok(subscription) => subscription,
            Err(ServiceError::McpError(error)) => {
                let error = errors::call_error(&self.server, "subscriptions/listen", &error);
                return Err(CallFailure::after_sending(error));
            }
            Err(error) => {
                let error = self.lost(error, "it was asked").await;
                return Err(CallFailure { error, is_unsent: false, is_limited: false });
            }
        };
        let accepted = subscription.acknowledged().resource_subscriptions.as_deref().unwrap_or_default();
        if !accepted.iter().any(|accepted| accepted == uri) {
            return Err(CallFailure::after_sending(announces_none(&self.server)));
        }
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        self.handle.spawn(Arc::clone(self).hold_stream(uri.to_owned(), subscription, ended));
        Ok(guard)
    }

    /// Keeps a stream open, and notices if the server ends it. The transport reads the notifications.
    async fn hold_stream(
        self: Arc<Self>,
        uri: String,
        mut subscription: Subscription,
        ended: CancellationToken,
    ) {
        let ended_by_server = async { while let Ok(Some(_read_already)) = subscription.next().await {} };
        tokio::select! {
            // First: a stream that was ended here ends no later subscription to the same resource.
            biased;
            () = ended.cancelled() => {}
            () = self.over() => {}
            () = ended_by_server => self.notifications.followed().end(&uri),
        }
    }

    /// Removes a subscriber when it is gone or the connection is over. When the server has ended the subscription,
    /// which `over` says, it is removed already.
    async fn end_following(self: Arc<Self>, uri: String, updates: ResourceUpdates, over: CancellationToken) {
        tokio::select! {
            () = updates.closed() => {}
            () = over.cancelled() => return,
            () = self.over() => {}
        }
        let followed = self.notifications.followed();
        let _turn = followed.turn(&uri).await;
        let was_last = followed.remove(&uri, &updates);
        // If the connection is over, the subscriber is told so by this.
        drop(updates);
        if was_last && !self.is_stateless() && self.is_alive() {
            let trace = RequestTrace::default();
            let request = self.request("resources/unsubscribe", json!({ "uri": uri }), &trace);
            let _answered_in_time = timeout(ANSWER_TIME, request).await;
        }
    }

    /// Completes when nothing more can be sent.
    pub(super) async fn over(&self) {
        tokio::select! {
            () = self.ended.cancelled() => {}
            () = self.retired().cancelled() => {}
            () = self.stop.cancelled() => {}
        }
    }
}

fn announces_none(server: &str) -> ToolError {
    let message = format!(
        "server `{server}` does not announce changes of its resources (`resources.subscribe`); read them again instead"
    );
    ToolError::new(ToolErrorCode::ToolNotFound, message)
}
