//! The subscriptions to resources of a server, over one connection. `follow.rs` has the requests for them.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::tools::ResourceUpdates;

/// Maximum number of resources that are followed over one connection: the server has a subscription for each.
const MAX_RESOURCES: usize = 256;

/// Maximum number of subscribers of one resource. They cost the server nothing, and each client has few, so that no
/// client can take those of others.
const MAX_SUBSCRIBERS: usize = 4_096;

/// The subscriptions over one connection.
#[derive(Default)]
pub(crate) struct FollowedResources {
    by_uri: Mutex<HashMap<String, Followed>>,
    /// The resources about which the server is asked, or will be.
    turns: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

/// The turn to ask the server about one resource: it gets the requests for each in the order of the changes here. What
/// it does not answer about one resource delays nothing for another.
pub(super) struct Turn<'a> {
    followed: &'a FollowedResources,
    uri: &'a str,
    lock: Option<Arc<tokio::sync::Mutex<()>>>,
    /// `None` while others have the turn.
    guard: Option<OwnedMutexGuard<()>>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        drop(self.guard.take());
        // Under the lock under which all turns of a resource begin, so that the last one removes it.
        let mut turns = self.followed.turns.lock();
        drop(self.lock.take());
        if turns.get(self.uri).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            turns.remove(self.uri);
        }
    }
}

/// A resource with subscribers.
#[derive(Default)]
struct Followed {
    subscribers: Vec<ResourceUpdates>,
    /// Whether the server has confirmed the subscription.
    is_confirmed: bool,
    /// Ends the stream of the subscription, in the stateless revision.
    stream: Option<DropGuard>,
    /// Cancelled when the server has ended the subscription.
    over: CancellationToken,
}

/// Why a subscriber is not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotAdded {
    /// The resource has [`MAX_SUBSCRIBERS`].
    ManySubscribers,
    /// It is the first one of a resource, and there are [`MAX_RESOURCES`].
    ManyResources,
    /// It is the first one of a resource, and its owner has the first ones of `own` others, when `left` more can be
    /// followed.
    FullShare { own: usize, left: usize },
}

impl NotAdded {
    /// The message of the error, with what to do.
    pub(super) fn message(self, server: &str) -> String {
        match self {
            Self::ManySubscribers => format!(
                "{MAX_SUBSCRIBERS} clients are subscribed to this resource of server `{server}`, the most at once; try \
                 again later"
            ),
            Self::ManyResources => format!(
                "clients are subscribed to {MAX_RESOURCES} resources of server `{server}`, the most at once; end \
                 another subscription first"
            ),
            Self::FullShare { own, left } => format!(
                "this client is subscribed to {own} resources of server `{server}`, and only {left} more can be \
                 followed for all clients; end one of these subscriptions first"
            ),
        }
    }
}

/// A subscriber that was added.
pub(super) struct Added {
    /// Whether the server has confirmed the subscription to this resource already.
    pub(super) is_confirmed: bool,
    /// Cancelled when the server has ended the subscription.
    pub(super) over: CancellationToken,
}

/// The parameters of `notifications/resources/updated`.
#[derive(Deserialize)]
struct Updated {
    uri: String,
}

impl FollowedResources {
    /// Reports the change that a notification is about to the subscribers of its resource. A notification that cannot
    /// be read is ignored.
    pub(crate) fn report(&self, parameters: Option<&RawValue>) {
        let updated = parameters.and_then(|text| serde_json::from_str::<Updated>(text.get()).ok());
        let Some(Updated { uri }) = updated else { return };
        if let Some(followed) = self.by_uri.lock().get(&uri) {
            followed.subscribers.iter().for_each(ResourceUpdates::report);
        }
    }

    /// Waits for the turn to ask the server about a resource.
    pub(super) async fn turn<'a>(&'a self, uri: &'a str) -> Turn<'a> {
        let lock = Arc::clone(self.turns.lock().entry(uri.to_owned()).or_default());
        let mut turn = Turn { followed: self, uri, lock: Some(Arc::clone(&lock)), guard: None };
        turn.guard = Some(lock.lock_owned().await);
        turn
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_uri.lock().is_empty()
    }

    /// Adds a subscriber. Each owner can have half of the resources that others leave, so that a few of them never have
    /// all. A resource counts as that of its first subscriber.
    ///
    /// # Errors
    ///
    /// If there are too many.
    pub(super) fn add(&self, uri: &str, updates: &ResourceUpdates) -> Result<Added, NotAdded> {
        let mut by_uri = self.by_uri.lock();
        match by_uri.get(uri) {
            Some(followed) if followed.subscribers.len() >= MAX_SUBSCRIBERS => {
                return Err(NotAdded::ManySubscribers);
            }
            Some(_) => {}
            None => {
                let is_own = |followed: &&Followed| {
                    followed.subscribers.first().is_some_and(|first| first.owner() == updates.owner())
                };
                let own = by_uri.values().filter(is_own).count();
                match MAX_RESOURCES.saturating_sub(by_uri.len()) {
                    0 => return Err(NotAdded::ManyResources),
                    left if own >= left => return Err(NotAdded::FullShare { own, left }),
                    _ => {}
                }
            }
        }
        let followed = by_uri.entry(uri.to_owned()).or_default();
        followed.subscribers.push(updates.clone());
        Ok(Added { is_confirmed: followed.is_confirmed, over: followed.over.clone() })
    }

    /// Removes a subscriber. Returns whether it was the last one of a confirmed subscription.
    pub(super) fn remove(&self, uri: &str, updates: &ResourceUpdates) -> bool {
        let mut by_uri = self.by_uri.lock();
        let Some(followed) = by_uri.get_mut(uri) else { return false };
        followed.subscribers.retain(|other| other != updates);
        if !followed.subscribers.is_empty() {
            return false;
        }
        by_uri.remove(uri).is_some_and(|followed| followed.is_confirmed)
    }

    /// Records that the server has confirmed the subscription. `stream` ends it when it is dropped.
    pub(super) fn confirm(&self, uri: &str, stream: Option<DropGuard>) {
        if let Some(followed) = self.by_uri.lock().get_mut(uri) {
            (followed.is_confirmed, followed.stream) = (true, stream);
        }
    }

    /// Records that the server has ended the subscription to a resource.
    pub(super) fn end(&self, uri: &str) {
        if let Some(followed) = self.by_uri.lock().remove(uri) {
            followed.over.cancel();
        }
    }
}

#[cfg(test)]
mod tests;
