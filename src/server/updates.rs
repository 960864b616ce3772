//! Changes of the resources that clients can read, and the clients that are told of them
//! (`notifications/resources/updated`): those of a handshake revision with `resources/subscribe`, those of the
//! stateless revision with `subscriptions/listen`.
//!
//! A client can subscribe to what it can read. It is told that a resource has changed, not how.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Display;
use std::future::{Future, pending};
use std::time::Duration;

use futures::future::join_all;
use rmcp::RoleServer;
use rmcp::model::{
    ErrorData, ResourceUpdatedNotification, ResourceUpdatedNotificationParam, ServerNotification,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::client_slots::ClientSlot;
use super::interface_updates::InterfaceUpdates;
use super::list_changes::MAX_SEND;
use super::notifications::send_within;
use super::session::McpSession;
use super::shared::{MAX_RESOURCES, Shared, SkillDigests};
use super::subscriptions::Subscription;
use super::yielded::RunProgress;
use super::{resources, skills};
use crate::tools::INTERFACE_SCHEME;

/// Maximum bytes of the URI of a resource that a client subscribes to. Those of cx are far shorter.
const MAX_URI_BYTES: usize = 2_048;

/// Minimum time between two notifications of one resource for one client. Changes in between are one change.
const INTERVAL: Duration = Duration::from_secs(1);

/// How changes of a resource are noticed.
enum Changes {
    /// It does not change.
    Never,
    /// A part of a run that goes on.
    Run {
        progress: watch::Receiver<RunProgress>,
        /// Whether the part is there only when the run has ended.
        at_end: bool,
        is_over: bool,
    },
    /// A file of a skill, and its last digest; `None` if the file is gone.
    Skill { digests: watch::Receiver<SkillDigests>, uri: String, last: Option<u64> },
    /// A user interface of a server's tool.
    Interface(Box<InterfaceUpdates>),
}

impl Changes {
    /// The changes of the resource at a URI, which the client of `context` must be able to read. What is done later to
    /// notice them ends with `ended`.
    async fn of_resource(
        session: &McpSession,
        uri: &str,
        context: &RequestContext<RoleServer>,
        ended: &CancellationToken,
    ) -> Result<Self, ErrorData> {
        if uri.len() > MAX_URI_BYTES {
            let problem = format!(
                "`uri` has {} bytes; expected the address of a resource, which has at most {MAX_URI_BYTES}: \
                 `resources/list` has all",
                uri.len()
            );
            return Err(ErrorData::invalid_params(problem, None));
        }
        if uri.starts_with(INTERFACE_SCHEME) {
            let updates = InterfaceUpdates::begin(session, uri, context, ended).await?;
            return Ok(Self::Interface(Box::new(updates)));
        }
        let executor = &session.shared.executor;
        if uri.starts_with(skills::PREFIX) {
            skills::read(executor, uri)?;
            // Before the digest is taken, so that a change between both is noticed.
            let digests = session.shared.follow_skills();
            let last = skills::digest(executor, uri);
            return Ok(Self::Skill { digests, uri: uri.to_owned(), last });
        }
        let printed = resources::run_of(uri).and_then(|id| session.yielded.printed(id));
        if let Some(progress) = printed.map(|printed| printed.follow()) {
            let goes_on = !progress.borrow().has_ended;
            if goes_on && resources::is_part(uri) {
                return Ok(Self::Run { progress, at_end: !resources::is_output(uri), is_over: false });
            }
        }
        resources::read_for(&session.client, uri, executor.history(), &session.yielded).await?;
        Ok(Self::Never)
    }

    /// Waits until the resource may have changed. Returns false if it will not, or no change will be noticed.
    async fn next(&mut self) -> bool {
        match self {
            Self::Never => false,
            Self::Run { progress, at_end, is_over } => loop {
                if *is_over {
                    return false;
                }
                // A run that is dropped has ended too.
                let is_dropped = progress.changed().await.is_err();
                *is_over = is_dropped || progress.borrow_and_update().has_ended;
                if *is_over || !*at_end {
                    return true;
                }
            },
            Self::Skill { digests, uri, last } => loop {
                if digests.changed().await.is_err() {
                    return false;
                }
                let now = digests.borrow_and_update().get(uri.as_str()).copied();
                if now != *last {
                    *last = now;
                    return true;
                }
            },
            Self::Interface(updates) => updates.next().await,
        }
    }
}

/// Calls `send` for the changes of a resource, at most once in each [`INTERVAL`], until no change follows.
async fn tell<E: Display, S: Future<Output = Result<(), E>>>(mut changes: Changes, send: impl Fn() -> S) {
    while changes.next().await {
        send_within(MAX_SEND, send()).await;
        sleep(INTERVAL).await;
    }
}

fn too_many() -> ErrorData {
    let problem = format!(
        "a client may be subscribed to {MAX_RESOURCES} resources at once; end a subscription with \
         `resources/unsubscribe`, or by cancelling its `subscriptions/listen`"
    );
    ErrorData::invalid_request(problem, None)
}

/// Subscribes the client of a session to a resource.
///
/// # Errors
///
/// If it cannot read the resource, or has too many subscriptions.
pub(crate) async fn subscribe(
    session: &McpSession,
    uri: String,
    context: &RequestContext<RoleServer>,
) -> Result<(), ErrorData> {
    if session.has_many_clients {
        let problem = "`resources/subscribe` needs a session: begin with `initialize`, or use `subscriptions/listen` \
                       of the revision 2026-07-28";
        return Err(ErrorData::invalid_request(problem, None));
    }
    if session.subscriptions.has(&uri) {
        return Ok(());
    }
    let slot = session.shared.resource_slots.acquire(&session.client).ok_or_else(too_many)?;
    let ended = session.cancellation(context);
    // Ends the subscription if this fails, or is dropped.
    let guard = ended.clone().drop_guard();
    let changes = Changes::of_resource(session, &uri, context, &ended).await?;
    if matches!(changes, Changes::Never) {
        return Ok(());
    }
    let (peer, of) = (context.peer.clone(), uri.clone());
    let added = session.subscriptions.insert(uri, Subscription { _ended: guard, _slot: slot });
    let send = move || {
        let params = ResourceUpdatedNotificationParam::new(of.clone());
        let notification = ResourceUpdatedNotification::new(params);
        let peer = peer.clone();
        async move { peer.send_notification(ServerNotification::ResourceUpdatedNotification(notification)).await }
    };
    tokio::spawn(async move {
        tokio::select! {
            biased;
            () = ended.cancelled() => {}
            // No further change follows, so that the client has room for another resource.
            () = tell(changes, send) => added.remove(),
        }
    });
    Ok(())
}

/// The requested resources whose changes a client of the stateless revision is notified of. Records of runs are not
/// among them: a run of such a client has a record only when it has ended, and that does not change. Reads files.
pub(crate) fn accepted(shared: &Shared, requested: Option<&[String]>) -> Vec<String> {
    let requested = requested.unwrap_or_default();
    // `serve` says that there are too many.
    if requested.len() > MAX_RESOURCES {
        return Vec::new();
    }
    let has = |scheme: &str| requested.iter().any(|uri| uri.starts_with(scheme));
    let files = if has(skills::PREFIX) { skills::addresses(&shared.executor) } else { HashSet::new() };
    let tools = has(INTERFACE_SCHEME).then(|| shared.tools());
    let is_known =
        |uri: &str| files.contains(uri) || tools.as_ref().is_some_and(|tools| tools.interface(uri).is_some());
    requested.iter().filter(|uri| uri.len() <= MAX_URI_BYTES && is_known(uri)).cloned().collect()
}

/// Tells a client of the stateless revision of the changes of the resources of its subscription. Completes only with an
/// error: the client ends the subscription.
pub(crate) async fn serve(
    session: &McpSession,
    subscription: &SubscriptionContext,
    ended: &CancellationToken,
) -> ErrorData {
    let count = subscription.requested().resource_subscriptions.as_ref().map_or(0, Vec::len);
    if count > MAX_RESOURCES {
        return too_many();
    }
    let context = subscription.request_context();
    let uris: BTreeSet<&String> = subscription.accepted().resource_subscriptions.iter().flatten().collect();
    let client = session.client_of(context);
    let slots: Option<Vec<ClientSlot>> =
        uris.iter().map(|_| session.shared.resource_slots.acquire(client)).collect();
    let Some(_slots) = slots else { return too_many() };
    let following = uris.into_iter().map(|uri| async move {
        match Changes::of_resource(session, uri, context, ended).await {
            Ok(changes) => tell(changes, || subscription.sink().notify_resource_updated(uri.as_str())).await,
            Err(error) => tracing::debug!(uri, error = %error.message, "a resource is not followed"),
        }
    });
    join_all(following).await;
    pending().await
}

#[cfg(test)]
mod tests;
